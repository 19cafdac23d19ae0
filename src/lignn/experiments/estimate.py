"""How long a study will take."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from statistics import mean
from typing import Any

from lignn.experiments.records import OK, Record
from lignn.experiments.study import Run

Kind = Callable[[Record], Hashable]

_KINDS: tuple[Kind, ...] = (
    lambda r: (r["study"], r["row"], r["dataset"]),
    lambda r: (r["method"], r["backbone"], r["dataset"]),
    lambda r: r["dataset"],
)
"""What makes runs alike in time, the closest likeness first."""


def seconds_left(todo: Sequence[Run], known: Iterable[Record], jobs: int) -> float | None:
    """Time for `todo` by the mean time of the most similar recorded runs; None if for one of them there is none."""
    recorded = [record for record in known if record["status"] == OK]
    means = [_mean_by(kind, recorded) for kind in _KINDS]
    total = 0.0
    for run in todo:
        like = _as_record(run)
        found = (table[kind(like)] for kind, table in zip(_KINDS, means, strict=True) if kind(like) in table)
        seconds = next(found, None)
        if seconds is None:
            return None
        total += seconds
    return total / jobs


def _mean_by(kind: Kind, recorded: Iterable[Record]) -> dict[Hashable, float]:
    groups: dict[Hashable, list[float]] = {}
    for record in recorded:
        groups.setdefault(kind(record), []).append(record["seconds"])
    return {key: mean(values) for key, values in groups.items()}


def _as_record(run: Run) -> Record:
    config = run.config
    names: dict[str, Any] = {"method": config.method.get("name"), "backbone": config.backbone.get("name")}
    return {"study": run.study, "row": run.row, "dataset": config.dataset} | names


def spoken(seconds: float | None) -> str:
    """A duration as people say it."""
    if seconds is None:
        return "unknown"
    if 0 < seconds < 9.95:
        return f"{max(seconds, 0.1):.1f} s"
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
