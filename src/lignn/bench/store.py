"""Stores of power-law graphs with communities: their building, and streamed epochs beside epochs in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from lignn.bench.communities import write_tables
from lignn.bench.sides import HIDDEN, Lignn, Task
from lignn.bench.timing import Record, Timing, at_most, record, timed
from lignn.evaluation import peak
from lignn.store import StoredGraph
from lignn.store.build import Options, build

EDGES = (10**7, 10**8)
"""Directed edges, before repeated ones are merged; a tenth as many nodes."""
IN_MEMORY_UP_TO = 10**7
BUILD_SECONDS, BUILD_MIB = 15 * 60, 4000
EPOCH_MIB, EPOCH_RATIO = 3300 * 10**6 / 2**20, 2.5
EPOCHS = 2
KEPT_UP_TO = 10**7
"""Edges up to which the product of features and weight is kept in memory; see `--memory`."""
CONFIG = {"features": 32, "classes": 5, "partition": "blocks", "hidden": HIDDEN, "steps": 10}


def run(quick: bool) -> Iterator[Record]:
    """Build each store and run epochs on it, each in a process of its own."""
    for edges in (10**5,) if quick else EDGES:
        with tempfile.TemporaryDirectory(dir=".") as name:
            folder = Path(name)
            write_tables(folder / "tables", edges // 10, edges // 2)
            yield from _built(folder, edges)
            yield from _epochs(folder / "store", edges)


def _built(folder: Path, edges: int) -> Iterator[Record]:
    measured = peak.in_fresh_process(_nothing, _build, str(folder), max(edges // 10**6, 4)).value
    figures = {"median": measured["seconds"], "spread": 0.0, "ratio": 1.0, "peak_mib": measured["mib"]}
    yield record(f"build, {edges:.0e} edges", "lignn", CONFIG, **figures)
    if edges == max(EDGES):
        yield at_most("seconds to build the store of 10⁸ edges", measured["seconds"], BUILD_SECONDS)
        yield at_most("MiB to build it", measured["mib"], BUILD_MIB)


def _epochs(store: Path, edges: int) -> Iterator[Record]:
    reference: Timing | None = None
    for side in ("in memory", "streamed"):
        if side == "in memory" and edges > IN_MEMORY_UP_TO:
            continue
        keep = edges <= KEPT_UP_TO
        measured = peak.in_fresh_process(_nothing, _train, str(store), side, keep).value
        timing = measured["timing"]
        reference = reference or timing
        figures = timing.figures(reference) | {"peak_mib": measured["mib"]}
        yield record(f"epoch, {edges:.0e} edges", side, CONFIG | {"keeps_features": keep}, **figures)
        if side == "streamed" and edges == IN_MEMORY_UP_TO:
            yield at_most("10⁷ edges: streamed over in memory", timing.ratio(reference), EPOCH_RATIO)
        if edges == max(EDGES):
            yield at_most("MiB of anonymous memory, 10⁸ edges streamed", measured["mib"], EPOCH_MIB)


def _nothing(*arguments: Any) -> tuple[Any, ...]:
    return arguments


def _build(arguments: tuple[str, int]) -> dict[str, Any]:
    folder, parts = Path(arguments[0]), arguments[1]
    start = perf_counter()
    options = Options(parts, "blocks", undirected=True)
    _, mib = peak.anonymous(lambda: build(folder / "tables", folder / "store", options))
    return {"seconds": perf_counter() - start, "mib": mib}


def _train(arguments: tuple[str, str, bool]) -> dict[str, Any]:
    path, side, keep = arguments
    stored = StoredGraph(path, keeps_features=keep)
    graph = stored if side == "streamed" else stored.to_graph()
    trained = Lignn(Task(graph, graph.splits[0]), inductive=False)
    timing, mib = peak.anonymous(lambda: timed(trained.epoch, EPOCHS))
    return {"timing": timing, "mib": mib}
