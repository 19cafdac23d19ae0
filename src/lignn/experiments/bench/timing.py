"""Timing side by side: sides take turns in every round, so that what slows the machine down slows all of them."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

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


def versions() -> dict[str, str | int]:
    """What the figures depend on besides the code: libraries, processor, threads."""
    import torch

    libraries = {name: version(name) for name in ("lignn", "torch", "torch_geometric", "numba", "scipy")}
    return libraries | {
        "python": platform.python_version(),
        "processor": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
    }


def table(records: list[Record]) -> Table:
    """The records for reading: a row a case, a column a side, times and how many times longer than the first side."""
    from rich.table import Table

    sides = list(dict.fromkeys(record["side"] for record in records))
    result = Table("case", box=None, header_style="bold")
    for side in sides:
        result.add_column(side, justify="right")
    cells: dict[str, dict[str, str]] = {}
    for record in records:
        reference = not cells.get(record["case"])
        ratio = "" if reference else f"  {record['ratio']:5.2f}×"
        cell = f"{1e3 * record['median']:.3f} ms ± {50 * record['spread']:.0f} %{ratio}"
        cells.setdefault(record["case"], {})[record["side"]] = cell
    for case, row in cells.items():
        result.add_row(case, *(row.get(side, "") for side in sides))
    return result
