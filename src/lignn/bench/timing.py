"""Timing side by side: sides take turns in every round, so that what slows the machine down slows all of them."""

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
    """The seconds that one side took in each round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median of the rounds."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Distance between the quartiles, relative to the median."""
        lower, _, upper = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (upper - lower) / self.median

    def ratio(self, other: Timing) -> float:
        """How many times longer this side took: the median over rounds, since a round is disturbed as a whole."""
        return statistics.median(mine / theirs for mine, theirs in zip(self.seconds, other.seconds, strict=True))


def interleaved(sides: Mapping[str, Side], rounds: int, clock: Callable[[], float] = perf_counter) -> dict[str, Timing]:
    """Time each side once a round, after one call that is not counted; each round begins with another side."""
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


def compare(case: str, sides: Mapping[str, Side], rounds: int, config: Mapping[str, Any]) -> list[Record]:
    """One record a side; `ratio` is its time relative to the first side's."""
    timings = interleaved(sides, rounds)
    reference = next(iter(timings.values()))
    return [
        {
            "case": case,
            "side": side,
            "median": timing.median,
            "spread": timing.spread,
            "ratio": timing.ratio(reference),
            "config": {**config, "rounds": rounds},
            "versions": versions(),
        }
        for side, timing in timings.items()
    ]


def versions() -> dict[str, Any]:
    """What the figures depend on besides the code: libraries, processor, threads."""
    import torch

    libraries: dict[str, Any] = {
        name: version(name) for name in ("lignn", "torch", "torch_geometric", "numba", "scipy")
    }
    return libraries | {
        "python": platform.python_version(),
        "processor": f"{_processor()} ({torch.backends.cpu.get_cpu_capability()})",
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
    }


def _processor() -> str:
    """Its name where the system tells (Linux), else its architecture."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
