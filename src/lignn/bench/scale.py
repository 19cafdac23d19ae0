"""LI-GCN epochs on power-law graphs of growing size: time and memory against edges."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import numpy as np

from lignn.bench import peak
from lignn.bench.goals import at_most
from lignn.bench.power_law import power_law
from lignn.bench.sides import HIDDEN, Lignn, Task, Textbook
from lignn.bench.timing import Record, Timing, versions

SIDES = {"lignn": Lignn, "textbook": Textbook}
EDGES = (10**4, 10**5, 10**6, 10**7)
TEXTBOOK_UP_TO = 10**6
"""Ten times more would hold messages of some 20 GiB."""
SLOPE_FROM = 10**5
SLOPE_TO_REACH = 1.1
MEMORY_TO_REACH = 24 * 1024
EPOCHS = 3


def run(quick: bool) -> Iterator[Record]:
    """Each size and side in a process of its own: an epoch that is not counted, then some that are, transductive."""
    sizes = (10**3, 10**4) if quick else EDGES
    medians: dict[int, float] = {}
    for edges in sizes:
        reference: Timing | None = None
        for side in SIDES:
            if side == "textbook" and edges > TEXTBOOK_UP_TO:
                continue
            measured = peak.in_fresh_process(_prepare, _epochs, side, edges)
            count, seconds = measured.value
            timing = Timing(seconds)
            reference = reference or timing
            if side == "lignn":
                medians[count] = timing.median
            yield {
                "case": f"{edges:.0e} edges",
                "side": side,
                "edges": count,
                "median": timing.median,
                "spread": timing.spread,
                "ratio": timing.ratio(reference),
                "peak_mib": measured.peak_mib,
                "config": {"steps": 10, "hidden": HIDDEN, "features": 100, "classes": 10, "rounds": EPOCHS},
                "versions": versions(),
            }
            if edges == max(EDGES) and measured.peak_mib:
                yield at_most("MiB to train on 10⁷ edges", measured.peak_mib, MEMORY_TO_REACH)
    if not quick:
        large = dict(list(medians.items())[sizes.index(SLOPE_FROM) :])
        yield at_most("slope of log time over log edges, 10⁵ … 10⁷", slope(large), SLOPE_TO_REACH)


def slope(seconds: dict[int, float]) -> float:
    """Least squares."""
    return float(np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0])


def _prepare(side: str, edges: int) -> tuple[str, Task]:
    small, graph = power_law(1000), power_law(edges)
    SIDES[side](Task(small, small.splits[0]), inductive=False).epoch()
    return side, Task(graph, graph.splits[0])


def _epochs(given: tuple[str, Task]) -> tuple[int, tuple[float, ...]]:
    """Number of undirected edges, and the seconds of each epoch."""
    side, problem = given
    contestant = SIDES[side](problem, inductive=False)
    contestant.epoch()
    seconds = []
    for _ in range(EPOCHS):
        start = perf_counter()
        contestant.epoch()
        seconds.append(perf_counter() - start)
    return problem.graph.num_edges // 2, tuple(seconds)
