"""Timing of several sides in one process, and the records of benchmarks.

The sides take turns in every round, so that whatever slows the machine down slows all of them.
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

Record = dict[str, Any]
Side = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds that one side took in each round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median over the rounds."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Interquartile range relative to the median."""
        lower, _, upper = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (upper - lower) / self.median

    def ratio(self, other: Timing) -> float:
        """Return how many times longer this side took: the median of the ratios of each round."""
        return statistics.median(mine / theirs for mine, theirs in zip(self.seconds, other.seconds, strict=True))

    def figures(self, reference: Timing) -> Record:
        """Return median, spread, and the ratio to the time of `reference`."""
        return {"median": self.median, "spread": self.spread, "ratio": self.ratio(reference)}


def interleaved(sides: Mapping[str, Side], rounds: int, clock: Callable[[], float] = perf_counter) -> dict[str, Timing]:
    """Time each side once a round, after one call of each that is not timed; each round starts with another side."""
    if rounds < 2:
        raise ValueError(f"a spread needs at least 2 rounds, not {rounds}")
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for side in sides.values():
        side()
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            start = clock()
            sides[name]()
            seconds[name].append(clock() - start)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}


def timed(side: Side, rounds: int) -> Timing:
    """Time one side by itself, after one call that is not timed."""
    return interleaved({"side": side}, rounds)["side"]


def compare(case: str, sides: Mapping[str, Side], rounds: int, config: Mapping[str, Any]) -> list[Record]:
    """Time all sides and return one record for each; its `ratio` is relative to the first side."""
    timings = interleaved(sides, rounds)
    reference = next(iter(timings.values()))
    config = {**config, "rounds": rounds}
    return [record(case, side, config, **timing.figures(reference)) for side, timing in timings.items()]


def record(case: str, side: str, config: Mapping[str, Any], **figures: Any) -> Record:
    """Return the record of one side in one case, with the versions it was measured with."""
    return {"case": case, "side": side, **figures, "config": config, "versions": versions()}


def versions() -> dict[str, Any]:
    """Return what the times depend on besides the code: libraries, processor and threads."""
    import torch

    libraries: Record = {name: version(name) for name in ("lignn", "torch", "torch_geometric", "numba", "scipy")}
    return libraries | {
        "python": platform.python_version(),
        "processor": f"{_processor()} ({torch.backends.cpu.get_cpu_capability()})",
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
    }


def _processor() -> str:
    """Return the name of the processor on Linux, and its architecture on other systems."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
