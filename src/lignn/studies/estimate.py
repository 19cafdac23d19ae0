"""Estimates of the time that runs will take, from recorded runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from lignn.evaluation.summary import format_duration
from lignn.runs.records import OK, Record
from lignn.studies.study import Run

Kind = Callable[[Record], Hashable]
Average = Callable[[Iterable[float]], float]

_KINDS: tuple[tuple[Kind, Average], ...] = (
    (lambda r: (r["study"], r["row"], r["dataset"]), mean),
    (lambda r: (r["method"], r["backbone"], r["dataset"]), mean),
    (lambda r: (r["method"], r["dataset"]), mean),
    (lambda r: r["dataset"], mean),
    (lambda r: (r["method"], r["backbone"]), median),  # the sizes of datasets differ widely
    (lambda r: r["method"], median),
)
"""What similar runs have in common and how their times are averaged, the most similar first."""


@dataclass(frozen=True)
class Estimate:
    """Estimated time of several runs.

    Attributes:
        seconds: time of the runs that have a similar record; None if no run has one.
        unknown: number of runs without a similar record.
    """

    seconds: float | None
    unknown: int

    @property
    def time(self) -> str:
        """The time in words."""
        at_least = "at least " if self.unknown and self.seconds is not None else ""
        return at_least + format_duration(self.seconds)

    def __str__(self) -> str:
        return self.time + (f" ({self.unknown} runs without a similar record)" if self.unknown else "")


def time_left(todo: Sequence[Run], known: Iterable[Record], jobs: int) -> Estimate:
    """Estimate the time for `todo` in `jobs` processes from the most similar recorded runs."""
    recorded = [record for record in known if record.get("status") == OK and "row" in record]
    tables = [(kind, _by(kind, average, recorded)) for kind, average in _KINDS]
    found = []
    for run in todo:
        like = run.description
        found += [table[kind(like)] for kind, table in tables if kind(like) in table][:1]
    return Estimate(sum(found) / jobs if found or not todo else None, len(todo) - len(found))


def _by(kind: Kind, average: Average, recorded: Iterable[Record]) -> dict[Hashable, float]:
    groups: dict[Hashable, list[float]] = {}
    for record in recorded:
        groups.setdefault(kind(record), []).append(record["seconds"])
    return {key: average(values) for key, values in groups.items()}
