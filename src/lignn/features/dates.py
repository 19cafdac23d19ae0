"""Numbers from dates: age, and where in the year, the week and the day a date lies."""

from __future__ import annotations

import numpy as np

PARTS = ("month", "weekday", "hour")
AGE = "age"


def part_of(days: np.ndarray, part: str) -> np.ndarray:
    """Return a part of dates, which are days since 1970 (NaN = missing).

    Args:
        days: the dates.
        part: "age" for days before 1970, which after scaling is an age at any date; "month", "weekday" or "hour" for
            the share of the year, week or day that has passed, in whole months, whole days, and exactly.
    """
    if part == AGE:
        return -days
    if part == "hour":
        return days % 1
    whole = np.floor(days)
    if part == "weekday":
        return (whole + 3) % 7 / 7  # 1970 began on a Thursday
    known = ~np.isnan(days)
    month = np.full(days.shape, np.nan)
    months = np.where(known, whole, 0).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    month[known] = months[known] % 12 / 12
    return month


def circle(phases: np.ndarray) -> np.ndarray:
    """Return sine and cosine of phases, so that the end of a year, week or day is next to its beginning."""
    return np.hstack([np.sin(2 * np.pi * phases), np.cos(2 * np.pi * phases)])
