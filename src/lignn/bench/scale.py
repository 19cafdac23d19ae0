"""LI-GCN epochs on power-law graphs with communities: time and memory against the number of edges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lignn.bench.epoch import SIDES, SideClass, prepare
from lignn.bench.sides import HIDDEN, Task
from lignn.bench.timing import Record, Timing, record, timed
from lignn.evaluation import peak

EDGES = (10**4, 10**5, 10**6, 10**7)
TEXTBOOK_UP_TO = 10**6
"""With ten times more edges, the messages of the textbook version would take some 20 GiB."""
SLOPE_FROM = 10**5
"""Below, an epoch's time is not that of its edges."""
EPOCHS = 3
CONFIG = {"steps": 10, "hidden": HIDDEN, "features": 100, "classes": 10, "rounds": EPOCHS}


def run(quick: bool) -> Iterator[Record]:
    """Measure each size and side in a process of its own: one epoch that is not timed, then `EPOCHS` that are."""
    sizes = (10**3, 10**4) if quick else EDGES
    medians: dict[int, float] = {}
    for edges in sizes:
        reference: Timing | None = None
        for side in SIDES:
            if side == "textbook" and edges > TEXTBOOK_UP_TO:
                continue
            measured = peak.in_fresh_process(prepare, _epochs, side, edges, False, True)
            count, timing = measured.value
            reference = reference or timing
            if side == "lignn":
                medians[count] = timing.median
            figures: Record = timing.figures(reference) | {"peak_mib": measured.peak_mib}
            if edges == max(EDGES):
                figures["slope"] = slope(dict(list(medians.items())[sizes.index(SLOPE_FROM) :]))
            yield record(f"{edges:.0e} edges", side, CONFIG, edges=count, **figures)


def slope(seconds: dict[int, float]) -> float:
    """Return the least-squares slope of log seconds over log edges."""
    return float(np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0])


def _epochs(prepared: tuple[SideClass, Task]) -> tuple[int, Timing]:
    """Return the number of undirected edges and the time of each epoch."""
    side_class, problem = prepared
    side = side_class(problem, inductive=False)
    return problem.graph.num_edges // 2, timed(side.epoch, EPOCHS)
