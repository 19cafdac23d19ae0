"""Structured fuzzing of everything that lignn reads: `python -m tests.faults.readers --seconds 3600`.

A case is a valid sample with one mutated file. It must be read, or refused by an `InputError` that names the file,
within a few seconds and a GiB of memory. The readers run in a process of their own, which a fault may crash.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import scipy.sparse as sp
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st

import lignn
from lignn import Graph, NodeClassifier, Split
from lignn.classifier import config_file, saving
from lignn.cli import config
from lignn.errors import InputError
from lignn.graph import archive, label_table, table_writer
from lignn.runs import records
from tests.faults import mutations
from tests.faults.mutations import Mutation
from tests.graph import messy

CORPUS = Path(__file__).parent / "corpus"
SECONDS, MEMORY = 5, 2**30
"""The most that a case may take."""


class TooSlowError(BaseException):
    """A case that took too long; no handler of exceptions catches it."""


class NoFileNamedError(Exception):
    """A refusal whose message does not say which file is meant."""


@dataclass(frozen=True)
class Reader:
    """Something that reads files.

    Attributes:
        write: writes a valid sample into a folder.
        read: reads that folder.
        files: names of the files to mutate.
        repair: makes checksums right again, so that mutations get past them.
    """

    write: Callable[[Path], None]
    read: Callable[[Path], Any]
    files: tuple[str, ...]
    repair: Callable[[Path], None] = field(default=lambda _: None)


def graph(features: str = "dense", several: bool = False) -> Graph:
    """A small graph with everything that a graph may have."""
    n = 8
    x = np.arange(2.0 * n, dtype=np.float32).reshape(n, 2) / n
    y = [0, 1, 0, 1, -1, 0, 1, -1]
    return Graph(
        [[*range(n)], [*range(1, n), 0]],
        x={"dense": x, "sparse": sp.csr_array(np.where(x > 1, x, 0)), "none": None}[features],
        y=[[-1, -1] if c < 0 else [c, 1] for c in y] if several else y,
        edge_weight=np.linspace(0.5, 2, n),
        node_ids=[f"node {i}" for i in range(n)],
        class_names=["red", "blue"],
        splits=[Split.from_indices(n, [0, 1, 2], [3], [5, 6])],
        feature_names=["age", "size"] if features == "dense" else None,
    )


def read_graph(folder: Path) -> str:
    """Read the graph in a folder, and look at all that it has."""
    return archive.fingerprint(Graph.read(folder))


def read_npz(folder: Path) -> str:
    """Read the graph in a file, and look at all that it has."""
    return archive.fingerprint(Graph.read(folder / "graph.npz"))


def write_features(folder: Path, name: str) -> None:
    """Write tables and a file of features."""
    table_writer.write(graph("none"), folder)
    matrix = np.eye(8, 3)
    (np.save if name.endswith("npy") else sp.save_npz)(
        folder / name, matrix if name.endswith("npy") else sp.csr_array(matrix)
    )


def write_by_hand(folder: Path) -> None:
    """Write tables as people do."""
    labels = ["red", "blue", "NA", "", "red", " blue", "-1", "blue"]
    nodes = "".join(f"n{i},{label},{i / 2},{i}\n" for i, label in enumerate(labels))
    (folder / "nodes.csv").write_text(f"id,label,age,size\n{nodes}")
    (folder / "edges.csv").write_text("source,target,weight\n" + "".join(f"n{i},n{(i + 1) % 8},1\n" for i in range(8)))
    (folder / "graph.json").write_text('{"classes": ["red", "blue"], "weight_type": "float64"}')


def write_parquet(folder: Path) -> None:
    """Write tables in Parquet's format."""
    write_by_hand(folder)
    for name in ("nodes", "edges"):
        file = folder / f"{name}.csv"
        pq.write_table(pa.csv.read_csv(file), folder / f"{name}.parquet")
        file.unlink()


def write_messy(folder: Path, name: str) -> None:
    """Write tables as people have them."""
    messy.CASES[name].write(folder / "mine")


def read_messy(folder: Path) -> str:
    """Read messy tables: a folder, or a single file in it."""
    files = sorted((folder / "mine").iterdir())
    return archive.fingerprint(Graph.read(files[0] if len(files) == 1 else folder / "mine"))


def typed() -> Graph:
    """A graph with columns of all kinds, types of edges, times and groups."""
    table = pa.table({"age": [1, None] * 4, "city": ["Bonn", None] * 4, "day": pa.array(range(8), pa.date32())})
    return graph("none").replace(
        table=table, edge_type=[0, 1] * 4, edge_types=["pays", "owns"], time=np.arange(8.0), group=np.arange(8) // 2
    )


def classifier() -> NodeClassifier:
    """A small network that trains in no time."""
    return NodeClassifier(
        backbone="mlp", hidden=2, max_epochs=2, patience=2, max_steps=3, backbone_options={"batch_norm": False}
    )


def write_model(folder: Path) -> None:
    """Write a fitted model."""
    classifier().fit(graph()).save(folder / "model")


def read_model(folder: Path) -> Any:
    """Load a model and let it decide."""
    return lignn.load(folder / "model").decision()


def model_file(folder: Path, name: str) -> Path:
    """Return a file of the model, wherever the format keeps it."""
    return next(path for path in sorted((folder / "model").rglob(name)))


def repair_model(folder: Path) -> None:
    """Write the checksums that belong to the files of a model."""
    file = model_file(folder, saving.CONFIG)
    try:
        told = json.loads(file.read_bytes())
        for name in told["files"]:
            told["files"][name] = hashlib.sha256((file.parent / name).read_bytes()).hexdigest()
        told.pop("checksum", None)
        told["checksum"] = config_file.own_checksum(told)
        file.write_text(json.dumps(told))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError):
        return  # no config any more: it is read as it is


def write_checkpoint(folder: Path) -> None:
    """Write the checkpoint of a run that ended after an epoch."""

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    try:
        classifier().fit(graph(), checkpoint=folder / "run.checkpoint", progress=interrupt)
    except KeyboardInterrupt:
        return


def read_checkpoint(folder: Path) -> Any:
    """Go on with the run."""
    return classifier().fit(graph(), checkpoint=folder / "run.checkpoint").decision()


def read_labels(folder: Path, ending: str, several: bool = False) -> Any:
    """Read a table of labels."""
    return label_table.read(folder / f"new.{ending}", graph(several=several), ("red", "blue"))


def write_labels(folder: Path, several: bool = False) -> None:
    """Write a table of labels."""
    rows = "node 1,red|blue\nnode 2,|\nnode 3,\n" if several else "node 1,red\nnode 2,blue\nnode 3,\n"
    (folder / "new.csv").write_text(f"id,{'labels' if several else 'label'}\n{rows}")


def write_label_parquet(folder: Path) -> None:
    """Write a table of labels in Parquet's format."""
    table = pa.table({"id": ["node 1", "node 2"], "label": ["red", None]})
    pq.write_table(table, folder / "new.parquet")


def write_records(folder: Path) -> None:
    """Write two records of runs."""
    record = {"id": "a", "row": "LPA", "dataset": "karate", "seed": 0, "status": "ok", "test": 0.5}
    lines = [json.dumps(record | {"id": name}) for name in "ab"]
    (folder / "study.jsonl").write_text("\n".join(lines) + "\n")


def write_settings(folder: Path) -> None:
    """Write a config file."""
    config.write(folder / "a.toml", {"hidden": 8, "lr": 0.1, "method": "lpa"}, "settings")


def read_settings(folder: Path) -> Any:
    """Read a config file."""
    return config.read(folder / "a.toml", ["hidden", "lr", "method"])


KINDS: dict[str, Mutation] = {
    ".csv": mutations.of_csv,
    ".parquet": mutations.of_parquet,
    ".json": mutations.of_json,
    ".npy": mutations.of_npy,
    ".npz": mutations.of_npz,
    ".safetensors": mutations.of_safetensors,
    ".checkpoint": mutations.of_safetensors,
    ".toml": mutations.of_text,
    ".jsonl": mutations.of_text,
    ".ndjson": mutations.of_text,
    ".tsv": mutations.of_text,
    ".gz": mutations.of_gzip,
    ".db": mutations.of_bytes,
    ".arrow": mutations.of_bytes,
}
"""The mutation of what the bytes mean, by the ending of a file."""

TABLES = ("nodes.csv", "edges.csv", "graph.json")
MODEL = ("config.json", "weights.safetensors", "graph.npz", "history.jsonl")
READERS = {
    "tables": Reader(lambda f: table_writer.write(graph(), f), read_graph, TABLES),
    "multilabel": Reader(lambda f: table_writer.write(graph(several=True), f), read_graph, TABLES),
    "tables-by-hand": Reader(write_by_hand, read_graph, TABLES),
    "parquet": Reader(write_parquet, read_graph, ("nodes.parquet", "edges.parquet")),
    "typed": Reader(lambda f: typed().write(f), read_graph, (*TABLES, "features.arrow")),
    "messy": Reader(lambda f: write_messy(f, "customers"), read_messy, TABLES[:2]),
    "decimal-commas": Reader(lambda f: write_messy(f, "decimal commas"), read_messy, TABLES[:2]),
    "tabs": Reader(lambda f: write_messy(f, "tabs"), read_messy, ("nodes.tsv", "edges.tsv")),
    "gzip": Reader(lambda f: write_messy(f, "gzip"), read_messy, ("nodes.csv.gz", "edges.csv.gz")),
    "json-lines": Reader(lambda f: write_messy(f, "JSON lines"), read_messy, ("nodes.jsonl", "edges.ndjson")),
    "messy-parquet": Reader(lambda f: write_messy(f, "Parquet"), read_messy, ("nodes.parquet", "edges.parquet")),
    "sqlite": Reader(lambda f: write_messy(f, "SQLite"), read_messy, ("shop.db",)),
    "npz": Reader(lambda f: graph().write(f / "graph.npz"), read_npz, ("graph.npz",)),
    "sparse-npz": Reader(lambda f: graph("sparse", True).write(f / "graph.npz"), read_npz, ("graph.npz",)),
    "features-npy": Reader(lambda f: write_features(f, "features.npy"), read_graph, ("features.npy",)),
    "features-npz": Reader(lambda f: write_features(f, "features.npz"), read_graph, ("features.npz",)),
    "labels": Reader(write_labels, lambda f: read_labels(f, "csv"), ("new.csv",)),
    "several-labels": Reader(lambda f: write_labels(f, True), lambda f: read_labels(f, "csv", True), ("new.csv",)),
    "labels-parquet": Reader(write_label_parquet, lambda f: read_labels(f, "parquet"), ("new.parquet",)),
    "settings": Reader(write_settings, read_settings, ("a.toml",)),
    "records": Reader(write_records, lambda f: records.read(f / "study.jsonl"), ("study.jsonl",)),
    "model": Reader(write_model, read_model, MODEL),
    "forged-model": Reader(write_model, read_model, MODEL, repair_model),
    "checkpoint": Reader(write_checkpoint, read_checkpoint, ("run.checkpoint",)),
}


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TooSlowError` in the body after some seconds."""

    def ring(*_: object) -> None:
        raise TooSlowError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def check(name: str, folder: Path) -> str:
    """Return "read" or "refused"; raise for any other outcome."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with limited(SECONDS):
                READERS[name].read(folder)
        except InputError as error:
            if str(folder) not in str(error):
                raise NoFileNamedError(str(error)) from error
            return "refused"
    return "read"


def fuzz(name: str, examples: int, seed: int | None, place: Path) -> Counter[str]:
    """Try mutations of the sample of a reader; the case that is tried lies in `place`."""
    reader, outcomes = READERS[name], Counter[str]()
    with tempfile.TemporaryDirectory() as temporary:
        sample = Path(temporary)
        reader.write(sample)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(sample)

        @with_seed(0 if seed is None else seed)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(st.data())
        def one(data: st.DataObject) -> None:
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(sample, place)
            wanted = data.draw(st.sampled_from(reader.files))
            file = next(path for path in sorted(place.rglob(wanted)))
            mutate = data.draw(st.sampled_from([KINDS[file.suffix], mutations.of_bytes]))
            file.write_bytes(mutate(data, file.read_bytes()))
            reader.repair(place)
            outcomes[check(name, place)] += 1

        one()
    return outcomes


def keep(name: str, place: Path) -> Path:
    """Copy a case into the corpus."""
    content = b"".join(path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file())
    kept = CORPUS / f"{name}.{hashlib.sha256(content).hexdigest()[:8]}"
    shutil.copytree(place, kept, dirs_exist_ok=True)
    return kept


def limit_memory() -> None:
    """Let this process have little more memory than it has now."""
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[5]) if sys.platform == "linux" else 2**22
    resource.setrlimit(resource.RLIMIT_DATA, (pages * os.sysconf("SC_PAGE_SIZE") + MEMORY,) * 2)


def tell(record: dict[str, Any]) -> None:
    """Print a line of JSON."""
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Fuzz all readers in turn, and print one line of JSON for each and their sum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, help="fuzz for so long, with new seeds; default: one round, always the same"
    )
    parser.add_argument("--examples", type=int, default=25, help="cases for each reader in a round")
    parser.add_argument("--only", choices=READERS, action="append")
    parser.add_argument("--place", type=Path, help="folder of the case that is tried")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pa.set_memory_pool(pa.system_memory_pool())  # another one reserves a GiB at once
    end = None if options.seconds is None else time.monotonic() + options.seconds
    place = options.place or Path(tempfile.mkdtemp()) / "case"
    names = options.only or list(READERS)
    sys.stderr.write(f"the case that is tried lies in {place}\n")
    read_warm_up(place)
    limit_memory()
    total, faults = Counter[str](), 0
    while True:
        for name in names:
            tell({"reader": name})
            seed = None if end is None else int.from_bytes(os.urandom(4))
            try:
                outcomes = fuzz(name, options.examples, seed, place)
            except (Exception, TooSlowError):
                faults += 1
                sys.stderr.write(f"{keep(name, place)}\n{traceback.format_exc()}")
                continue
            total += outcomes
            tell({"reader": name, **outcomes})
        if end is None or time.monotonic() > end:
            break
    tell({"cases": total.total(), **total, "faults": faults})
    sys.exit(bool(faults))


def read_warm_up(place: Path) -> None:
    """Train and load once, which compiles and imports what is needed, before memory is limited."""
    place.mkdir(parents=True)
    write_model(place)
    read_model(place)


if __name__ == "__main__":
    main()
