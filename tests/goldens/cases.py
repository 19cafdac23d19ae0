"""The cases: each fits something small by the public interface alone, and names its method, network and preset.

A default that changes later moves only the cases that are about defaults.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import lignn
from lignn import NodeClassifier, Split, datasets
from tests.classifier.small import small_graph, small_split
from tests.cli.commands import run
from tests.problems import half_split, random_graph
from tests.stores import stored

Found = dict[str, Any]
Case = Callable[[Path], Found]
CASES: dict[str, Case] = {}
"""What to do by name; each gets an empty folder."""

PRACTICAL = {"preset": "practical", "backbone": "gcn", "hidden": 8, "max_epochs": 40, "seed": 3}
PAPER = {"preset": "paper", "backbone": "gcn", "hidden": 8, "max_epochs": 20, "seed": 3}
NOT_COMPARED = ("seconds",)


def case(function: Case) -> Case:
    """Register a case under the name of its function."""
    CASES[function.__name__] = function
    return function


def small() -> lignn.Graph:
    return small_graph().replace(x=small_graph().x.float())


def told(classifier: NodeClassifier) -> Found:
    """Return weights, probabilities, history and calibration of a classifier."""
    history, weights = classifier.history_, classifier.method_.state_dict()
    records = [{k: v for k, v in record.items() if k not in NOT_COMPARED} for record in history.epochs]
    found: Found = {
        "probabilities": classifier.predict_proba(),
        "history": json.dumps(records).encode(),
        "course": {"epochs": len(records), "best": history.best, "end": str(history.end), "final": history.final},
        "calibration": "" if classifier.calibration_ is None else list(vars(classifier.calibration_).values()),
    }
    if weights:
        found |= {"names": list(weights), "weights": torch.cat([value.double().ravel() for value in weights.values()])}
    if records:
        found["losses"] = np.array([record["loss"] for record in records])
        found["solves"] = _solves(records)
    return found


def _solves(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how often solves ended in each status, and their steps in all, for each kind of solve."""
    found: dict[str, Any] = {}
    for record in records:
        for kind, solve in record.items():
            if isinstance(solve, dict) and "status" in solve:
                counts = found.setdefault(kind, {"steps": 0})
                counts["steps"] += solve.get("steps", 0)
                counts[solve["status"]] = counts.get(solve["status"], 0) + 1
    return found


def fitted(method: str, preset: dict[str, Any], graph: lignn.Graph | None = None, **options: Any) -> NodeClassifier:
    graph = small() if graph is None else graph
    split = graph.splits[0] if graph.splits else small_split(graph.num_nodes)
    return NodeClassifier(method, **{**preset, **options}).fit(graph, split)


def _fit(method: str, preset: dict[str, Any], **options: Any) -> Case:
    return lambda _: told(fitted(method, preset, **options))


DEEP = {"num_layers": 6, "residual": True, "norm": "layer"}
"""With batch normalisation, gradients of biases are rounding alone, which Adam divides by itself: machines disagree."""
NO_NETWORK = {"preset": "practical", "seed": 3}
CASES |= {
    "practical_gcn": _fit("backbone", PRACTICAL),
    "practical_sage": _fit("backbone", PRACTICAL, backbone="sage"),
    "practical_gat": _fit("backbone", PRACTICAL, backbone="gat", max_epochs=15),
    "practical_deep_residual_gcn": _fit("backbone", PRACTICAL, backbone_options=DEEP, max_epochs=25),
    "practical_lignn_deep_residual_gcn": _fit("lignn", PRACTICAL, backbone_options=DEEP, max_epochs=25),
    "practical_lignn_gcn": _fit("lignn", PRACTICAL, contraction="proved"),
    "practical_lignn_sage_free": _fit("lignn", PRACTICAL, backbone="sage", contraction="free"),
    "practical_lae_gcn": _fit("lae", PRACTICAL, contraction="proved"),
    "practical_label_input_gcn": _fit("label_input", PRACTICAL),
    "practical_label_reuse_gcn": _fit("label_reuse", PRACTICAL),
    "practical_correct_and_smooth_gcn": _fit("correct_and_smooth", PRACTICAL),
    "practical_lpa": _fit("lpa", NO_NETWORK),
    "practical_reslpa_gcn": _fit("reslpa", PRACTICAL),
    "practical_threeference_gcn": _fit("threeference", PRACTICAL),
    "paper_lignn_gcn": _fit("lignn", PAPER),
    "paper_label_input_gcn": _fit("label_input", PAPER),
    "paper_ignn": _fit("ignn", {"preset": "paper", "hidden": 8, "max_epochs": 15, "seed": 3}),
    "paper_eignn": _fit("eignn", {"preset": "paper", "max_epochs": 15, "seed": 3}),
    "practical_boosted": _fit("boosted", NO_NETWORK),
    "practical_logistic": _fit("logistic", NO_NETWORK),
    "practical_label_input_boosted": _fit("label_input", NO_NETWORK, method_options={"base": "boosted"}),
    "practical_label_reuse_logistic": _fit("label_reuse", NO_NETWORK, method_options={"base": "logistic"}),
}


@case
def practical_typed_rgcn_lignn(_: Path) -> Found:
    graph = random_graph(40, edge_types=("a", "b")).replace(splits=(half_split(40),))
    return told(fitted("lignn", PRACTICAL, graph, backbone="rgcn", both_directions=True, max_epochs=15))


@case
def practical_multilabel_lignn_gcn(_: Path) -> Found:
    graph = random_graph(40, multilabel=True).replace(splits=(half_split(40),))
    return told(fitted("lignn", PRACTICAL, graph, contraction="proved", max_epochs=15))


@case
def practical_auto_fast(_: Path) -> Found:
    auto = NodeClassifier(method="auto", quality="fast", backbones=["gcn"], seed=3, max_epochs=15, hidden=4)
    auto.fit(small(), small_split())
    rows = [{k: v for k, v in row.items() if "second" not in k} for row in auto.leaderboard_.plain()["rows"]]
    return {"probabilities": auto.predict_proba(), "leaderboard": rows}


@case
def default_fit_own_holdout(_: Path) -> Found:
    """The default on a graph of which half of the nodes have labels: held back, trained again, calibrated."""
    y = torch.where(small_split().test, -1, small().y)
    return told(NodeClassifier(max_epochs=120, hidden=8, seed=3).fit(small().replace(y=y)))


def _store(folder: Path) -> lignn.Graph:
    graph = random_graph(60, num_features=12, directed=True, weighted=True)
    return stored(graph.replace(splits=[half_split(60)]), folder / "graph.store")


@case
def practical_store_lignn_gcn(folder: Path) -> Found:
    graph = _store(folder)
    return told(fitted("lignn", PRACTICAL, graph, contraction="proved", max_epochs=10))


@case
def practical_store_batches_lignn_gcn(folder: Path) -> Found:
    graph = _store(folder)
    return told(fitted("lignn", PRACTICAL, graph, contraction="proved", max_epochs=5, batch_parts=2))


@case
def practical_store_two_processes(folder: Path) -> Found:
    _store(folder)
    options = ["--preset", "practical", "--backbone", "gcn", "--hidden", "8", "--max-epochs", "5", "--workers", "2"]
    command = ["fit", "graph.store", "-o", "model", *options, "--contraction", "proved"]
    subprocess.run([sys.executable, "-m", "lignn", *command], cwd=folder, check=True, capture_output=True)
    return told(lignn.load(folder / "model"))


@case
def update_labels_and_train_on(_: Path) -> Found:
    classifier = fitted("lignn", PRACTICAL, contraction="proved")
    nodes = small_split().test.nonzero().flatten()[:3].tolist()
    classifier.update_labels({nodes[0]: "a", nodes[1]: "b"})
    found = {f"labels: {name}": value for name, value in told(classifier).items()}
    classifier.update_labels({nodes[0]: None, nodes[2]: "c"}, epochs=3)
    return found | {f"epochs: {name}": value for name, value in told(classifier).items()}


@case
def add_nodes_and_edges(_: Path) -> Found:
    classifier = fitted("lignn", PRACTICAL, contraction="proved")
    added = classifier.add_nodes(np.full((2, 6), 0.5, dtype=np.float32), [[0, 90, 91], [90, 91, 3]], ["new", "newer"])
    classifier.remove_nodes(["node7"])
    classifier.add_edges([["node1"], ["new"]])
    return {"added": added.probabilities, "probabilities": classifier.predict_proba()}


@case
def saved_files(folder: Path) -> Found:
    """Settings and weights as files; what tells of versions and times is left out."""
    fitted("lignn", PRACTICAL, contraction="proved").save(folder / "model")
    found: Found = {}
    for file in sorted((folder / "model").rglob("*")):
        if file.is_file() and file.suffix in (".safetensors", ".toml"):
            found[file.name] = file.read_bytes()
    return found


@case
def served_labels_and_journal(folder: Path) -> Found:
    """Labels given to the service, and the journal that they leave."""
    from tests.serve.conftest import serving

    fitted("lignn", PRACTICAL, contraction="proved").save(folder / "model")
    node = f"node{int(small_split().test.nonzero()[0])}"
    with serving(folder / "model") as (client, service):
        answers = [client.put(f"/labels/{node}", json={"label": label}).json() for label in ("a", "b")]
        entries = [str(entry.change) for entry in service.engine.journal.entries()]
        probabilities = np.array([client.get(f"/predictions/{node}").json()["confidence"]])
    return {"answers": [answer["changes"] for answer in answers], "journal": entries, "probabilities": probabilities}


def _interrupted(folder: Path, after: int, **options: Any) -> NodeClassifier:
    """Fit, be interrupted after so many epochs in all, and fit again from the checkpoint."""
    seen = []

    def interrupt(_: Any) -> None:
        seen.append(1)
        if len(seen) == after:
            raise KeyboardInterrupt

    graph, split = options.pop("graph", small()), options.pop("split", small_split())
    classifier = NodeClassifier(**options)
    try:
        classifier.fit(graph, split, checkpoint=folder / "checkpoint", progress=interrupt)
    except KeyboardInterrupt:
        return NodeClassifier(**options).fit(graph, split, checkpoint=folder / "checkpoint")
    raise AssertionError(f"the fit ended before epoch {after}")


@case
def resumed_after_an_interruption(folder: Path) -> Found:
    return told(_interrupted(folder, 13, method="lignn", **{**PRACTICAL, "contraction": "proved"}))


ATTEMPTS = {"preset": "practical", "backbone": "gcn", "hidden": 8, "max_epochs": 110, "seed": 3, "folds": 1}


def _noise() -> tuple[lignn.Graph, Split]:
    """Labels that features and neighbours do not tell: no regularised network learns them."""
    graph = small()
    y = torch.randint(3, (graph.num_nodes,), generator=torch.Generator().manual_seed(1))
    return graph.replace(y=y), small_split()


def _attempt(method: str, graph: lignn.Graph, split: Split) -> Found:
    """Fit, and tell how many epochs were run in all: more than those of the history if training started over."""
    calls: list[int] = []
    classifier = NodeClassifier(method, **ATTEMPTS)
    found = told(classifier.fit(graph, split, progress=lambda history: calls.append(len(history.epochs))))
    return found | {"epochs in all": len(calls)}


@case
def attempt_as_given(_: Path) -> Found:
    return _attempt("lignn", small(), small_split())


@case
def attempt_relaxed(_: Path) -> Found:
    return _attempt("backbone", *_noise())


@case
def attempt_free(_: Path) -> Found:
    graph = datasets.load("chains-10")
    return _attempt("lignn", graph, graph.splits[0])


@case
def attempt_interrupted_in_between(folder: Path) -> Found:
    """Interrupted in the second attempt, which the checkpoint knows."""
    graph, split = _noise()
    return told(_interrupted(folder, 105, graph=graph, split=split, method="backbone", **ATTEMPTS))


@case
def a_row_of_table2(folder: Path) -> Found:
    """Id and scores of one run of the paper's table."""
    run("reproduce", "table2", "--only", "LI-GCN/chameleon", "--runs", 1, "--out", folder / "records")
    record = json.loads((folder / "records" / "table2.jsonl").read_text(encoding="utf-8"))
    return {"record": {name: record[name] for name in ("id", "scores", "best_epoch", "epochs", "end")}}


NEED_DATA = ("a_row_of_table2",)
"""Cases on the real datasets, which are in the folder $LIGNN_DATA."""


def taken(name: str, folder: Path) -> Found:
    """Run a case with one thread, in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    try:
        return CASES[name](folder)
    finally:
        torch.set_num_threads(before)
