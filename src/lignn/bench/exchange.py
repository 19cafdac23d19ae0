"""The bytes that processes on a store exchange in a step, for METIS parts and for random blocks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lignn import datasets
from lignn.bench.cluster import HOPS, received_by, side_of, step_of
from lignn.bench.communities import write_tables
from lignn.bench.timing import Record, at_least, at_most, record
from lignn.bench.together import in_processes
from lignn.graph import Graph
from lignn.store import StoredGraph
from lignn.store.build import Options, build

PARTS = (2, 4, 8, 16, 64)
MOST_PROCESSES = 16
"""Up to here, as many processes as parts are started too; beyond, one process plays all of them."""
PROCESSES = "in processes"
HALO_TO_REACH = 3.0


def run(quick: bool) -> Iterator[Record]:
    """Count on a community graph, and on Physics unless `quick`."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        nodes = 10**4 if quick else 10**5
        write_tables(folder / "tables", nodes, 5 * nodes)
        build(folder / "tables", folder / "communities", Options(1, "blocks", undirected=True))
        graphs = {"communities": StoredGraph(folder / "communities").to_graph()}
        if not quick:
            graphs["coauthor_physics"] = datasets.load("coauthor_physics")
        for case, graph in graphs.items():
            yield from exchanged(case, graph, folder, PARTS[:2] if quick else PARTS)


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
    side = side_of(graph)
    step = step_of(side)
    operator: Any = side.inference.adjacency()
    before = operator.gathered_bytes
    step()
    return operator.gathered_bytes - before, operator.halo_rows


def received(path: str) -> dict[str, int]:
    """Return the bytes that this process receives from the others in a step of LI-GCN, and the rows it needs."""
    return received_by(side_of(StoredGraph(path)))
