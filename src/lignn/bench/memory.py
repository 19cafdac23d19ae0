"""Peak memory of an epoch against the number of forward and adjoint steps."""

from __future__ import annotations

from collections.abc import Iterator

from lignn.bench import peak
from lignn.bench.goals import at_most
from lignn.bench.sides import HIDDEN, Lignn, task
from lignn.bench.timing import Record, versions

STEPS = (10, 30, 100, 300)
TO_REACH = 1.02


def run(quick: bool) -> Iterator[Record]:
    """Live tensor bytes by the profiler's allocation events, which are exact where resident memory is not."""
    problem = task(1000 if quick else "amazon_photo")
    Lignn(problem).update()
    peaks = {}
    for steps in STEPS[:2] if quick else STEPS:
        side = Lignn(problem, steps)
        peaks[steps] = peak.of_tensors(side.update)
        yield {
            "case": f"{steps} steps, {problem.graph.name}",
            "side": "lignn",
            "steps": steps,
            "peak_mib": peaks[steps] / peak.MIB,
            "config": {"forward": steps, "adjoint": steps, "hidden": HIDDEN},
            "versions": versions(),
        }
    yield at_most("peak of the most steps over that of the fewest", peaks[max(peaks)] / peaks[min(peaks)], TO_REACH)
