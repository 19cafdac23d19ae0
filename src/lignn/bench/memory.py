"""Peak memory of an epoch against the number of forward and adjoint steps."""

from __future__ import annotations

from collections.abc import Iterator

from lignn.bench.sides import HIDDEN, Lignn, load_task
from lignn.bench.timing import Record, at_most, record
from lignn.evaluation import peak

STEPS = (10, 30, 100, 300)
TO_REACH = 1.02


def run(quick: bool) -> Iterator[Record]:
    """Measure the tensors of an update by the profiler's allocation events, which are exact."""
    problem = load_task(1000 if quick else "amazon_photo")
    Lignn(problem).update()
    peaks = {}
    for steps in STEPS[:2] if quick else STEPS:
        side = Lignn(problem, steps)
        peaks[steps] = peak.of_tensors(side.update)
        config = {"forward": steps, "adjoint": steps, "hidden": HIDDEN}
        figures = {"steps": steps, "peak_mib": peaks[steps] / peak.MIB}
        yield record(f"{steps} steps, {problem.graph.name}", "lignn", config, **figures)
    yield at_most("peak of the most steps over that of the fewest", peaks[max(peaks)] / peaks[min(peaks)], TO_REACH)
