"""Two processes on one store beside two threads: their time and numbers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lignn import datasets
from lignn.bench.communities import write_tables
from lignn.bench.sides import HIDDEN, Lignn, Task
from lignn.bench.timing import Record, Timing, record, timed
from lignn.bench.together import in_processes
from lignn.classifier import NodeClassifier
from lignn.store import StoredGraph
from lignn.store.build import Options, build

PARTS = 8
ROUNDS = 5
SETTINGS: dict[str, Any] = {
    "preset": "paper",
    "precision": "float64",
    "max_steps": 10,
    "max_epochs": 3,
    "calibrate": False,
}


def run(quick: bool) -> Iterator[Record]:
    """Measure on community graphs, one of them with 10⁷ edges unless `quick`, and on Physics."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        sizes = {"communities": 10**4} if quick else {"communities": 10**5, "10⁷ edges": 10**6}
        for case, nodes in sizes.items():
            write_tables(folder / f"{nodes}", nodes, 5 * nodes)
            build(folder / f"{nodes}", folder / "store", Options(PARTS, "metis", undirected=True))
            yield from _timed(case, folder / "store")
        if not quick:
            build(datasets.load("coauthor_physics"), folder / "store", Options(PARTS, "metis"))
            yield from _timed("coauthor_physics", folder / "store")


def received_by(side: Lignn) -> dict[str, int]:
    """Return the bytes that this process receives from the others in a step of LI-GCN, and the rows it needs."""
    bound: Any = side.method.eval().on(side.inference)
    bound.first_step()  # computes once what depends on the features alone
    operator: Any = side.inference.adjacency()
    exchange = operator.exchanges["in"]
    before = exchange.bytes
    bound.first_step()
    return {"bytes": exchange.bytes - before, "halo_rows": len(exchange.nodes)}


def side_of(whole: StoredGraph) -> Lignn:
    """Return LI-GCN on the rows of this process."""
    graph = whole.mine()
    return Lignn(Task(graph, graph.share_of(split_of(whole))), inductive=False)


def split_of(graph: StoredGraph) -> Any:
    """Return the first split of a store, or one of its own."""
    from lignn.classifier.holdout import own_split

    return graph.splits[0] if graph.splits else own_split(graph, 0)


def _timed(case: str, path: Path) -> Iterator[Record]:
    """Compare two processes with one thread each to one process with two threads, on the same store."""
    graph = StoredGraph(path)
    sizes = {"nodes": graph.num_nodes, "entries": graph.num_edges, "features": graph.num_features}
    config = sizes | {"classes": graph.num_classes, "hidden": HIDDEN, "parts": len(graph.manifest["sizes"])}
    one, two = (in_processes(count, epochs, str(path), threads=threads) for count, threads in ((1, 2), (2, 1)))
    reference = _timing(one)
    yield record(case, "1 process × 2 threads", config, **reference.figures(reference))
    figures = {name: sum(each[name] for each in two) for name in ("bytes", "halo_rows")}
    apart = max(float(np.abs(a - b).max()) for a, b in zip(_numbers(one), _numbers(two), strict=True))
    yield record(case, "2 processes × 1 thread", config, **_timing(two).figures(reference), **figures, apart=apart)


def _timing(found: list[dict[str, Any]]) -> Timing:
    """Return the seconds of the slowest process in each round."""
    return Timing(tuple(map(max, zip(*(each["seconds"] for each in found), strict=True))))


def _numbers(found: list[dict[str, Any]]) -> list[np.ndarray]:
    """Return the predictions of all nodes, and the losses."""
    return [np.concatenate([each["probabilities"] for each in found]), np.array(found[0]["losses"])]


def epochs(path: str) -> dict[str, Any]:
    """Time epochs in float32, and count what a step receives; then fit three epochs in float64 for the numbers."""
    whole = StoredGraph(path)
    side = side_of(whole)
    found: dict[str, Any] = {"seconds": timed(side.epoch, ROUNDS).seconds} | received_by(side)
    classifier = NodeClassifier(**SETTINGS).fit(whole, split_of(whole))
    losses = [epoch["loss"] for epoch in classifier.history_.epochs]
    return found | {"losses": losses, "probabilities": classifier._fitted.prediction.probabilities.numpy()}
