"""Several processes on one store: their time and numbers, the bytes they exchange, and what a killed one costs."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lignn import datasets
from lignn.bench.communities import write_tables
from lignn.bench.sides import Lignn, Task
from lignn.bench.timing import Record, Timing, at_least, at_most, record, timed
from lignn.bench.together import in_processes
from lignn.classifier import NodeClassifier
from lignn.errors import ProcessError
from lignn.graph import Graph
from lignn.processes import current
from lignn.store import StoredGraph
from lignn.store.build import Options, build

PARTS = (2, 4, 8, 16, 64)
RATIO_TO_REACH, HALO_TO_REACH = 1.2, 3.0
SAME, AFTER_KILL = 1e-10, 1e-6
KILLS, KILL_EPOCHS = 10, 20
SETTINGS: dict[str, Any] = {
    "preset": "paper",
    "precision": "float64",
    "max_steps": 10,
    "max_epochs": KILL_EPOCHS,
    "calibrate": False,
}
HOPS = 2
"""Products of a step of LI-GCN, each c columns wide."""


def run(quick: bool) -> Iterator[Record]:
    """Measure on a community graph, and on Physics unless `quick`."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        write_tables(folder / "tables", 10**4 if quick else 10**5, 5 * 10**4 if quick else 5 * 10**5)
        build(folder / "tables", folder / "communities", Options(1, "blocks", undirected=True))
        graphs = {"communities": StoredGraph(folder / "communities").to_graph()}
        if not quick:
            graphs["coauthor_physics"] = datasets.load("coauthor_physics")
        for case, graph in graphs.items():
            yield from exchanged(case, graph, folder, PARTS[:2] if quick else PARTS)
            yield from _timed(case, folder / "p8" if not quick else folder / "p4")
        if not quick:
            write_tables(folder / "large", 10**6, 5 * 10**6)
            build(folder / "large", folder / "l8", Options(8, "metis", undirected=True))
            yield from _timed("10⁷ edges", folder / "l8")
            build(graphs["communities"], folder / "k6", Options(6, "metis"))
            yield from _killed(folder / "k6", folder)


def exchanged(case: str, graph: Graph, folder: Path, parts: tuple[int, ...]) -> Iterator[Record]:
    """Count the bytes of a step if each part were a process, simulated in this one, for METIS and for random blocks."""
    ids = graph.node_ids if graph.node_ids is not None else np.arange(graph.num_nodes)
    (folder / "random").write_text("\n".join(map(str, np.random.default_rng(0).permutation(ids))), encoding="utf-8")
    for count in parts:
        rows = {}
        for name, partition in (("metis", "metis"), ("random blocks", str(folder / "random"))):
            path = folder / (f"p{count}" if name == "metis" else "r")
            build(graph, path, Options(count, partition))
            counted, rows[name], classes = bytes_of_step(StoredGraph(path))
            predicted = 4 * classes * rows[name] * HOPS
            figures = {"bytes": counted, "halo_rows": rows[name], "predicted": predicted}
            yield record(
                f"{case}, {count} parts", name, {"hops": HOPS, "classes": classes, "simulated": True}, **figures
            )
            yield at_most(
                f"{case}, {count} parts, {name}: bytes that differ from 4·c·halo·hops", abs(counted - predicted), 0
            )
        ratio = rows["random blocks"] / max(rows["metis"], 1)
        yield at_least(f"{case}, {count} parts: halo rows of random blocks over METIS", ratio, HALO_TO_REACH)


def bytes_of_step(graph: StoredGraph) -> tuple[int, int, int]:
    """Return the bytes that the parts gather from each other in a step of LI-GCN, their halo rows, and the classes."""
    side = Lignn(Task(graph, _split(graph)), inductive=False)
    _step(side)  # propagates the features, once
    operator: Any = side.inference.adjacency()
    before = operator.gathered_bytes
    _step(side)
    return operator.gathered_bytes - before, operator.halo_rows, side.inference.labels.num_classes


def _step(side: Lignn) -> None:
    """Take one step of the map from zero."""
    with torch.no_grad():
        side.method.eval().on(side.inference).first_step()


def _split(graph: StoredGraph) -> Any:
    from lignn.classifier.holdout import own_split

    return graph.splits[0] if graph.splits else own_split(graph, 0)


def _timed(case: str, path: Path) -> Iterator[Record]:
    """Compare two processes with one thread each to one process with two threads, on the same store."""
    reference: dict[str, Any] = {}
    for side, count, threads in (("1 process × 2 threads", 1, 2), ("2 processes × 1 thread", 2, 1)):
        found = in_processes(count, epochs, str(path), threads=threads)
        timing = Timing(tuple(max(seconds) for seconds in zip(*(each["seconds"] for each in found), strict=True)))
        figures = {name: [each[name] for each in found] for name in ("bytes", "predicted")}
        figures["losses"] = found[0]["losses"]
        measured: dict[str, Any] = {
            "timing": timing,
            "probabilities": np.concatenate([each["probabilities"] for each in found]),
        }
        reference = reference or measured | figures
        yield record(case, side, {"parts": path.name}, **timing.figures(reference["timing"]), **figures)
    yield at_most(
        f"{case}: time of 2 processes over that of 2 threads", timing.ratio(reference["timing"]), RATIO_TO_REACH
    )
    wrong = sum(abs(one - two) for one, two in zip(figures["bytes"], figures["predicted"], strict=True))
    yield at_most(f"{case}: bytes of a step of 2 processes that differ from 4·c·halo·hops", wrong, 0)
    apart = np.abs(measured["probabilities"] - reference["probabilities"]).max()
    apart = max(apart, np.abs(np.subtract(figures["losses"], reference["losses"])).max())
    yield at_most(f"{case}: difference of losses and predictions in float64", float(apart), SAME)


def epochs(path: str) -> dict[str, Any]:
    """Time epochs in float32 with ten steps, then fit three epochs in float64 for the numbers."""
    whole = StoredGraph(path)
    graph, split = whole.mine(), _split(whole)
    side = Lignn(Task(graph, graph.share_of(split)), inductive=False)
    seconds = timed(side.epoch, 3).seconds
    operator: Any = side.inference.adjacency()
    exchange = operator.exchanges["in"]
    before = exchange.bytes
    _step(side)
    received = {"bytes": exchange.bytes - before, "predicted": 4 * whole.num_classes * len(exchange.nodes) * HOPS}
    classifier = NodeClassifier(**SETTINGS | {"max_epochs": 3}).fit(whole, split)
    losses = [epoch["loss"] for epoch in classifier.history_.epochs]
    probabilities = classifier._fitted.prediction.probabilities.numpy()
    return {"seconds": seconds, "losses": losses, "probabilities": probabilities} | received


def _killed(path: Path, folder: Path) -> Iterator[Record]:
    """Kill one of two processes at ten moments, and go on with one, two and three."""
    checkpoint = folder / "run.checkpoint"
    whole = in_processes(2, fit, str(path), str(checkpoint), None, 0.0)
    seconds = max(each["seconds"] for each in whole)
    apart = {1: 0.0, 2: 0.0, 3: 0.0}
    for number in range(KILLS):
        checkpoint.unlink(missing_ok=True)
        in_processes(2, fit, str(path), str(checkpoint), number % 2, seconds * (number + 1) / (KILLS + 1))
        kept = checkpoint.read_bytes() if checkpoint.exists() else None
        for count in apart:
            checkpoint.unlink(missing_ok=True)
            if kept is not None:
                checkpoint.write_bytes(kept)
            found = in_processes(count, fit, str(path), str(checkpoint), None, 0.0)
            one, two = (np.concatenate([each["probabilities"] for each in run]) for run in (found, whole))
            apart[count] = max(apart[count], float(np.abs(one - two).max()))
    for count, difference in apart.items():
        goal = f"killed at {KILLS} moments, resumed with {count}: largest difference of a prediction"
        yield at_most(goal, difference, 0.0 if count == 2 else AFTER_KILL)


def fit(path: str, checkpoint: str, killed: int | None, after: float) -> dict[str, Any] | None:
    """Fit, and have one process killed some seconds after its first epoch has started."""
    if killed == current().rank:
        timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGKILL))
        timer.daemon = True
        timer.start()
    classifier = NodeClassifier(**SETTINGS)
    try:
        classifier.fit(StoredGraph(path), checkpoint=Path(checkpoint))
    except ProcessError:
        return None
    seconds = sum(epoch["seconds"] for epoch in classifier.history_.epochs)
    return {"seconds": seconds, "probabilities": classifier._fitted.prediction.probabilities.numpy()}
