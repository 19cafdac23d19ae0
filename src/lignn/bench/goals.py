"""What a suite is to reach, as records beside its measurements."""

from __future__ import annotations

from lignn.bench.timing import Record


def at_least(goal: str, reached: float, wanted: float) -> Record:
    """A goal that is met by any figure from `wanted` up."""
    return {"goal": goal, "reached": reached, "wanted": wanted, "sense": "≥", "met": reached >= wanted}


def at_most(goal: str, reached: float, wanted: float) -> Record:
    """A goal that is met by any figure up to `wanted`."""
    return {"goal": goal, "reached": reached, "wanted": wanted, "sense": "≤", "met": reached <= wanted}
