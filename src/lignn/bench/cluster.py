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
from lignn.bench.timing import Record, Timing, at_most, record, timed
from lignn.bench.together import in_processes
from lignn.classifier import NodeClassifier
from lignn.store import StoredGraph
from lignn.store.build import Options, build

PARTS = 8
ROUNDS = 5
RATIO_TO_REACH, SAME = 1.2, 1e-10
SETTINGS: dict[str, Any] = {
    "preset": "paper",
    "precision": "float64",
    "max_steps": 10,
    "max_epochs": 3,
    "calibrate": False,
}
HOPS = 2
"""Products of a step of LI-GCN, each c columns wide."""


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
    runs: list[dict[str, Any]] = []
    for side, count, threads in (("1 process × 2 threads", 1, 2), ("2 processes × 1 thread", 2, 1)):
        found = in_processes(count, epochs, str(path), threads=threads)
        timing = Timing(tuple(max(seconds) for seconds in zip(*(each["seconds"] for each in found), strict=True)))
        numbers = [np.concatenate([each["probabilities"] for each in found]), np.array(found[0]["losses"])]
        runs.append({"timing": timing, "numbers": numbers})
        figures = {name: sum(each[name] for each in found) for name in ("bytes", "halo_rows")} if count > 1 else {}
        yield record(case, side, config, **timing.figures(runs[0]["timing"]), **figures)
    one, two = runs
    ratio = two["timing"].ratio(one["timing"])
    yield at_most(f"{case}: time of 2 processes over that of 2 threads", ratio, RATIO_TO_REACH)
    predicted = 4 * graph.num_classes * figures["halo_rows"] * HOPS
    wrong = abs(figures["bytes"] - predicted)
    yield at_most(f"{case}: bytes of a step of 2 processes that differ from 4·c·halo·hops", wrong, 0)
    apart = max(float(np.abs(a - b).max()) for a, b in zip(one["numbers"], two["numbers"], strict=True))
    yield at_most(f"{case}: difference of losses and predictions in float64", apart, SAME)


def epochs(path: str) -> dict[str, Any]:
    """Time epochs in float32, and count what a step receives; then fit three epochs in float64 for the numbers."""
    whole = StoredGraph(path)
    side = side_of(whole)
    found: dict[str, Any] = {"seconds": timed(side.epoch, ROUNDS).seconds} | received_by(side)
    classifier = NodeClassifier(**SETTINGS).fit(whole, split_of(whole))
    losses = [epoch["loss"] for epoch in classifier.history_.epochs]
    return found | {"losses": losses, "probabilities": classifier._fitted.prediction.probabilities.numpy()}
