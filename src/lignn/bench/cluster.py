"""Several processes on one store: their time and numbers, and the bytes they exchange."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lignn import datasets
from lignn.bench.communities import write_tables
from lignn.bench.sides import HIDDEN, Lignn, Task
from lignn.bench.timing import Record, Timing, at_least, at_most, record, timed
from lignn.bench.together import in_processes
from lignn.classifier import NodeClassifier
from lignn.graph import Graph
from lignn.store import StoredGraph
from lignn.store.build import Options, build

PROCESSES = "in processes"
PARTS = (2, 4, 8, 16, 64)
ROUNDS = 5
MOST_PROCESSES = 16
"""Up to here, as many processes as parts are started too; beyond, one process plays all of them."""
RATIO_TO_REACH, HALO_TO_REACH = 1.2, 3.0
SAME = 1e-10
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


def exchanged(case: str, graph: Graph, folder: Path, parts: tuple[int, ...]) -> Iterator[Record]:
    """Count the bytes of a step, for METIS and for random blocks: in one process that plays all, and in as many."""
    ids = graph.node_ids if graph.node_ids is not None else np.arange(graph.num_nodes)
    (folder / "random").write_text("\n".join(map(str, np.random.default_rng(0).permutation(ids))), encoding="utf-8")
    for count in parts:
        rows = {}
        for name, partition in (("metis", "metis"), ("random blocks", str(folder / "random"))):
            path = folder / (f"p{count}" if name == "metis" else "r")
            build(graph, path, Options(count, partition))
            counted, rows[name] = bytes_of_step(StoredGraph(path))
            yield from _counted(case, count, name, counted, rows[name], graph)
        if count <= MOST_PROCESSES:
            found = in_processes(count, received, str(folder / f"p{count}"))
            counted, needed = (sum(each[figure] for each in found) for figure in ("bytes", "halo_rows"))
            yield from _counted(case, count, f"metis, {PROCESSES}", counted, needed, graph)
        ratio = rows["random blocks"] / max(rows["metis"], 1)
        yield at_least(f"{case}, {count} parts: halo rows of random blocks over METIS", ratio, HALO_TO_REACH)


def _counted(case: str, count: int, side: str, counted: int, rows: int, graph: Graph) -> Iterator[Record]:
    """Record the bytes of a step, and that they are as predicted."""
    predicted = 4 * graph.num_classes * rows * HOPS
    config = {"hops": HOPS, "classes": graph.num_classes, "nodes": graph.num_nodes, "simulated": PROCESSES not in side}
    yield record(f"{case}, {count} parts", side, config, bytes=counted, halo_rows=rows, predicted=predicted)
    yield at_most(f"{case}, {count} parts, {side}: bytes that differ from 4·c·halo·hops", abs(counted - predicted), 0)


def bytes_of_step(graph: StoredGraph) -> tuple[int, int]:
    """Return the bytes that the parts gather from each other in a step of LI-GCN, and their halo rows: simulated."""
    side = Lignn(Task(graph, _split(graph)), inductive=False)
    _step(side)  # propagates the features, once
    operator: Any = side.inference.adjacency()
    before = operator.gathered_bytes
    _step(side)
    return operator.gathered_bytes - before, operator.halo_rows


def received(path: str) -> dict[str, int]:
    """Return the bytes that this process receives from the others in a step of LI-GCN, and the rows it needs."""
    return _received(_side(StoredGraph(path)))


def _received(side: Lignn) -> dict[str, int]:
    _step(side)
    operator: Any = side.inference.adjacency()
    exchange = operator.exchanges["in"]
    before = exchange.bytes
    _step(side)
    return {"bytes": exchange.bytes - before, "halo_rows": len(exchange.nodes)}


def _side(whole: StoredGraph) -> Lignn:
    """Return LI-GCN on the rows of this process."""
    graph = whole.mine()
    return Lignn(Task(graph, graph.share_of(_split(whole))), inductive=False)


def _step(side: Lignn) -> None:
    """Take one step of the map from zero."""
    with torch.no_grad():
        side.method.eval().on(side.inference).first_step()


def _split(graph: StoredGraph) -> Any:
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
        figures = {name: max(each[name] for each in found) for name in ("product", "step")}
        if count > 1:
            figures |= {name: sum(each[name] for each in found) for name in ("bytes", "halo_rows")}
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
    """Time epochs, a step and a product in float32, then fit three epochs in float64 for the numbers."""
    whole = StoredGraph(path)
    side = _side(whole)
    operator: Any = side.inference.adjacency()
    state = torch.zeros(len(operator.share), whole.num_classes)
    found: dict[str, Any] = {
        "seconds": timed(side.epoch, ROUNDS).seconds,
        "step": timed(lambda: _step(side), ROUNDS).median,
        "product": timed(lambda: operator.product(state, transposed=False), ROUNDS).median,
    }
    found |= _received(side)
    classifier = NodeClassifier(**SETTINGS).fit(whole, _split(whole))
    losses = [epoch["loss"] for epoch in classifier.history_.epochs]
    return found | {"losses": losses, "probabilities": classifier._fitted.prediction.probabilities.numpy()}
