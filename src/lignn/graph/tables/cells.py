"""Numbers and dates as people write them: every reading of a column of texts that fits, and whether only one does.

| reading | cells |
|---|---|
| `number:.` | 1151.37, 1,151.37, 1 151.37 or 1'151.37 |
| `number:,` | 1151,37, 1.151,37, 1 151,37 or 1'151,37 |
| `date:ymd` | 2024-12-31, 2024/12/31 |
| `date:dmy` | 31/12/2024, 31.12.2024, 31 Dec 2024 |
| `date:mdy` | 12/31/2024, December 31, 2024 |

Digits are grouped by threes with one sign in all cells. A time of day may follow a date. Readings that give the same
values are one: 05/05/2024 is a date, and 1,234 beside 1,5 has a decimal comma. 1,234 alone is ambiguous.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MOSTLY = 0.9
"""Share of cells that a reading must fit; the others are stray."""
_SPACES, _APOSTROPHES = "[\u00a0\u2009\u202f]", "[\u2019\u02bc]"
_GROUPS = {".": (",", " ", "'"), ",": (".", " ", "'")}
"""Signs between groups of digits, by decimal sign; none is needed."""
_TIME = r"(?:[ T]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:\.\d{1,6})?))?(?: ?(?P<half>[ap])m)?)?$"
_DATES = {
    "ymd": (
        r"^(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})",
        r"^(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})",
    ),
    "dmy": (
        r"^(?P<day>\d{1,2})[-/.](?P<month>\d{1,2})[-/.](?P<year>\d{4})",
        r"^(?P<day>\d{1,2})[ .-]+(?P<month>[a-z]{3})[a-z]*[ .,-]+(?P<year>\d{4})",
    ),
    "mdy": (
        r"^(?P<month>\d{1,2})[-/](?P<day>\d{1,2})[-/](?P<year>\d{4})",
        r"^(?P<month>[a-z]{3})[a-z]* +(?P<day>\d{1,2}),? +(?P<year>\d{4})",
    ),
}
_MONTHS = pa.array(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"])
PLAIN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
"""A number that needs no reading."""
_SAMPLE = 1000
"""Cells, evenly spread, of which one must look like a number or a date; if none does, the others are not looked at."""


@dataclass(frozen=True)
class Reading:
    """A way to read a column of texts.

    Attributes:
        form: its name.
        values: the values; null where it does not fit.
        sure: whether no other reading fits as many cells.
    """

    form: str
    values: pa.Array
    sure: bool = False


def readings(texts: pa.Array, form: str | None = None, least: float = MOSTLY) -> list[Reading]:
    """Return the readings that fit the most cells; of those that give the same values, the first.

    Args:
        texts: trimmed texts, null for an empty cell.
        form: a kind, "number" or "date", or one reading; None: all.
        least: share of cells that they must fit.
    """
    sample = texts.take(pa.array(np.linspace(0, len(texts) - 1, min(len(texts), _SAMPLE)).astype(np.int64)))
    sample = sample if least else texts
    wanted = [kind for kind in (_numbers, _dates) if any(True for _ in kind(sample, form))]
    found = [reading for kind in wanted for reading in kind(texts, form)]
    count = max((len(texts) - one.values.null_count for one in found), default=0)
    if not count or count < least * (len(texts) - texts.null_count):
        return []
    best = [one for one in found if len(texts) - one.values.null_count == count]
    kept: list[Reading] = []
    for one in best:
        if not any(one.values.equals(other.values) for other in kept):
            kept.append(replace(one, sure=len(best) == 1))
    return kept


def _numbers(texts: pa.Array, form: str | None) -> Iterator[Reading]:
    plain = pc.replace_substring_regex(pc.replace_substring_regex(texts, _SPACES, " "), _APOSTROPHES, "'")
    for decimal, groups in _GROUPS.items():
        if form not in (None, "number", f"number:{decimal}"):
            continue
        best: Reading | None = None
        for group in groups:
            whole = rf"(?:[1-9]\d{{0,2}}(?:[{group}]\d{{3}})+|\d+)"
            fits = pc.match_substring_regex(
                plain, rf"^[+-]?(?:{whole}(?:[{decimal}]\d*)?|[{decimal}]\d+)(?:[eE][+-]?\d+)?$"
            )
            if not pc.any(fits).as_py():
                continue
            digits = pc.replace_substring(pc.if_else(fits, plain, None), group, "")
            values = pc.replace_substring(digits, decimal, ".").cast(pa.float64())
            if best is None or values.null_count < best.values.null_count:
                best = Reading(f"number:{decimal}", values)
        if best is not None:
            yield best


def _dates(texts: pa.Array, form: str | None) -> Iterator[Reading]:
    lower = pc.utf8_lower(texts)
    for order, patterns in _DATES.items():
        if form not in (None, "date", f"date:{order}"):
            continue
        values, precise = np.full(len(texts), "NaT", "datetime64[us]"), False
        for pattern in patterns:
            parts = pc.extract_regex(lower, pattern + _TIME)
            if parts.null_count < len(parts):
                times, timed = _times(parts)
                values, precise = np.where(np.isnat(values), times, values), precise or timed
        if not np.isnat(values).all():
            found = pa.array(values)
            yield Reading(f"date:{order}", found if precise else found.cast(pa.date32()))


def _times(parts: pa.StructArray) -> tuple[np.ndarray, bool]:
    """Return dates, NaT for one that does not exist such as 31 February, and whether any has a time of day."""
    part = {name: parts.field(name) for name in ("year", "month", "day", "hour", "minute", "second", "half")}
    named = pc.index_in(part["month"], _MONTHS.cast(part["month"].type))
    year, day, hour, minute = (_number(part[name]) for name in ("year", "day", "hour", "minute"))
    month = np.where(
        named.is_valid().to_numpy(zero_copy_only=False), named.fill_null(0).to_numpy() + 1, _number(part["month"])
    )
    second = _number(part["second"])
    half = part["half"].fill_null("").to_numpy(zero_copy_only=False)
    hour = np.where(half != "", hour % 12 + 12 * (half == "p"), hour)
    there = parts.is_valid().to_numpy(zero_copy_only=False)
    fits = there & (month >= 1) & (month <= 12) & (day >= 1) & (hour < 24) & (minute < 60) & (second < 60)
    first = (np.where(fits, (year - 1970) * 12 + month - 1, 0)).astype(np.int64).astype("datetime64[M]")
    days = first.astype("datetime64[D]") + (day.astype(np.int64) - 1)
    fits &= days.astype("datetime64[M]") == first
    micros = ((hour * 60 + minute) * 60 + second) * 1e6
    times = days.astype("datetime64[us]") + micros.astype(np.int64)
    return np.where(fits, times, np.datetime64("NaT")), bool(pc.any(pc.not_equal(part["hour"], "")).as_py())


def _number(digits: pa.Array) -> np.ndarray:
    """Return digits as numbers, 0 where there are none."""
    digits = pc.if_else(pc.match_substring_regex(digits, r"^[\d.]+$"), digits, "0").fill_null("0")
    return digits.cast(pa.float64()).to_numpy(zero_copy_only=False)
