"""Two processes on one store beside two threads: their time and numbers."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.multiprocessing as mp

from lignn import datasets
from lignn.bench.graphs import write_tables
from lignn.bench.sides import HIDDEN, Lignn, Task
from lignn.bench.timing import Record, Timing, record, timed
from lignn.classifier import NodeClassifier
from lignn.processes import joined
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


def in_processes(count: int, work: Callable[..., Any], *arguments: Any, threads: int = 1) -> list[Any]:
    """Return what `work(*arguments)` returns in each of several processes; None for one that was killed.

    Args:
        count: number of processes.
        work: a function of a module; what it returns is sent, so it must not hold tensors.
        arguments: its arguments.
        threads: threads of each process.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = _context()
    pipes = [context.Pipe(duplex=False) for _ in range(count)]
    processes = []
    for rank, (_, sending) in enumerate(pipes):
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(count)}
        process = context.Process(target=_run, args=(place, threads, sending, work, arguments))
        process.start()
        sending.close()
        processes.append(process)
    results = []
    for process, (receiving, _) in zip(processes, pipes, strict=True):
        try:
            results.append(receiving.recv())
        except EOFError:
            results.append(None)
        process.join()
    return results


def _context() -> Any:
    """Return a way to start processes: from a server that has imported PyTorch once, where there is one."""
    if "forkserver" not in mp.get_all_start_methods():
        return mp.get_context("spawn")
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["lignn.classifier", "lignn.bench.sides"])
    return context


def _run(place: dict[str, str], threads: int, pipe: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(threads)
    os.environ.update(place)
    with joined():
        pipe.send(work(*arguments))
