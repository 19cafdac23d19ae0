"""Runs that were done again, beside their older records: do the means differ by more than chance?

A change of rounding, such as a faster kernel, moves single scores either way. It must not move their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from lignn.evaluation.summary import paired
from lignn.runs import records
from lignn.runs.records import Record


def compared(new: Sequence[Record], old: Sequence[Record]) -> list[dict[str, Any]]:
    """Return one row for each cell, and one for all: how many runs both have, how many are equal, and the difference.

    Args:
        new: records of the runs that were done again.
        old: records of any runs; those of the same config are compared.
    """
    wanted = {record["id"] for record in new}
    ours, base = records.scores(new), records.scores(record for record in old if record["id"] in wanted)
    flat = [{(cell, seed): score for cell in cells for seed, score in cells[cell].items()} for cells in (ours, base)]
    rows = [_row(" / ".join(cell), ours[cell], base.get(cell, {})) for cell in ours]
    return [*rows, _row("all", *flat)] if len(rows) > 1 else rows


def _row(name: str, new: dict[Any, float], old: dict[Any, float]) -> dict[str, Any]:
    both = [(new[key], old[key]) for key in new if key in old]
    row: dict[str, Any] = {"cell": name, "runs": len(both), "equal": sum(ours == theirs for ours, theirs in both)}
    difference = paired(new, old)
    if difference is None:
        return row
    means = {"new": mean(ours for ours, _ in both), "old": mean(theirs for _, theirs in both)}
    return row | means | {"difference": difference.mean, "low": difference.low, "high": difference.high}
