"""Which kind a column of a table is, found from its type and values.

| kind | rule |
|---|---|
| number | numbers; whole ones too |
| id | numbers or texts that more than half of the rows have, each another one; numbers must be whole and reach 10¹¹,
texts must be short (fewer than three words on average) |
| boolean | true and false |
| category | texts with few values: at most 20, or at most 1000 that ten rows have on average; Arrow's dictionaries |
| date | dates and times |
| text | all other texts, and those that are said to be read so |
| constant | one value and none missing, or no value at all |
| duplicate | the same values as a column before it |
| other | lists, bytes, and what else cannot be a feature |

The tail of a column of numbers is heavy if its farthest value is more than ten interquartile ranges from the median
(standard deviations, if the quartiles are equal), or beyond 10¹⁰⁰. Its numbers are then scaled by quantiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lignn.errors import quoted
from lignn.features.columns import Column, Scaling
from lignn.features.dates import PARTS, part_of
from lignn.features.values import is_text, kind_of, typed, values

FEW, SOME, REPEATED = 20, 1000, 10
"""Largest number of categories; the same if each is in ten rows on average; and those ten."""
HUGE = 1e11
"""Whole numbers from here on that never repeat are ids."""
WORDS = 3
"""Average number of words from which texts are worth reading even if none repeats."""
TAIL, LARGEST = 10, 1e100
"""Distance from the median, in interquartile ranges, that makes a tail heavy; a number that always does."""

_BLOCK = 2**22
"""Numbers that are looked at at once."""
_SAMPLE = 1000
"""Texts whose words are counted."""


def describe(table: pa.Table, where: str = "table") -> tuple[Column, ...]:
    """Return what each column of a table holds and what becomes of it; `where` is its name in errors."""
    found: dict[int, Column] = {}
    seen: dict[bytes, str] = {}
    numeric = [number for number, type_ in enumerate(table.schema.types) if kind_of(type_) == "number"]
    for block in _blocks(numeric, table.num_rows):
        rows = np.stack([values(table.column(i), "number", table.field(i).name, where) for i in block])
        for number, row, column in zip(block, rows, _numbers(table, block, rows), strict=True):
            first = seen.setdefault(row.tobytes(), column.name)
            found[number] = column if first == column.name else _duplicate(column, first)
    same: dict[Column, list[int]] = {}
    for number in sorted(set(range(table.num_columns)).difference(numeric)):
        column = _other(table, number, where)
        found[number] = column
        alike = same.setdefault(replace(column, name=""), [])
        if column.used or column.kind == "id":
            twin = next((i for i in alike if table.column(i).equals(table.column(number))), None)
            found[number] = column if twin is None else _duplicate(column, table.field(twin).name)
            alike.append(number)
    return tuple(found[number] for number in range(table.num_columns))


def scaling_of(numbers: np.ndarray) -> list[Scaling]:
    """Return how each row of numbers (NaN = missing) is scaled."""
    return _scaling(numbers, *_quantiles(numbers))


def _blocks(numbers: list[int], num_rows: int) -> Iterator[list[int]]:
    size = max(1, _BLOCK // max(num_rows, 1))
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


def _duplicate(column: Column, first: str) -> Column:
    return column if column.kind == "constant" else replace(column, kind="duplicate", same_as=first)


def _quantiles(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each row sorted, its missing values last, and how many it has; a row without any counts one."""
    return np.sort(rows, axis=1), np.maximum((~np.isnan(rows)).sum(1), 1)


def _scaling(rows: np.ndarray, ordered: np.ndarray, present: np.ndarray) -> list[Scaling]:
    each = np.arange(len(rows))
    low, first, middle, third, high = (ordered[each, ((present - 1) * q) // 4] for q in range(5))
    with np.errstate(over="ignore", invalid="ignore"):
        spread = third - first
        flat = spread == 0
        if flat.any():
            spread[flat] = _deviation(rows[flat])
        heavy = np.maximum(high - middle, middle - low) > TAIL * spread
    heavy |= np.maximum(np.abs(low), np.abs(high)) > LARGEST
    return ["quantiles" if one else "standard" for one in heavy]


def _deviation(rows: np.ndarray) -> np.ndarray:
    known = ~np.isnan(rows)
    count = np.maximum(known.sum(1), 1)
    mean = rows.sum(1, where=known) / count
    return np.sqrt(((rows - mean[:, None]) ** 2).sum(1, where=known) / count)


def _numbers(table: pa.Table, block: list[int], rows: np.ndarray) -> Iterator[Column]:
    """Yield the columns of numbers, whose values are `rows`."""
    n = table.num_rows
    if n == 0:
        yield from (Column(table.field(i).name, "constant", 0, 0, "") for i in block)
        return
    ordered, present = _quantiles(rows)
    new = (ordered[:, 1:] != ordered[:, :-1]) & (np.arange(1, n) < present[:, None])
    empty = np.isnan(ordered[:, 0])
    missing, distinct = np.isnan(rows).sum(1), np.where(empty, 0, new.sum(1) + 1)
    low, high = ordered[:, 0], ordered[np.arange(len(rows)), present - 1]
    far = np.maximum(np.abs(low), np.abs(high)) >= HUGE
    for k, scaling in enumerate(_scaling(rows, ordered, present)):
        name, gaps = table.field(block[k]).name, int(missing[k])
        count = int(distinct[k])
        if far[k] and not empty[k]:  # neighbours of this size may be the same float
            count = pc.count_distinct(table.column(block[k]), mode="only_valid").as_py()
            whole = bool(np.all((rows[k] % 1 == 0) | np.isnan(rows[k])))
            if whole and _unique(count, n - gaps, n):
                yield Column(name, "id", gaps, count, _range(low[k], high[k]), num_rows=n)
                continue
        if count == 0 or (count == 1 and not gaps):
            yield Column(name, "constant", gaps, count, "" if count == 0 else f"{low[k]:.6g}", num_rows=n)
        else:
            yield Column(name, "number", gaps, count, _range(low[k], high[k]), scaling, num_rows=n)


def _range(low: float, high: float) -> str:
    return f"{low:.6g} … {high:.6g}"


def _unique(distinct: int, present: int, num_rows: int) -> bool:
    return distinct == present > max(2, num_rows / 2)


def _other(table: pa.Table, number: int, where: str) -> Column:
    """Return a column that holds no numbers."""
    column, name, n = table.column(number), table.field(number).name, table.num_rows
    gaps = column.null_count
    if gaps == n:
        return Column(name, "constant", gaps, 0, "", num_rows=n)
    kind = kind_of(column.type)
    if kind is None:
        return Column(name, "other", gaps, 0, str(column.type), num_rows=n)
    known = typed(column, kind, name, where).drop_null()
    count = pc.count_distinct(known).as_py()
    if count == 1 and not gaps:
        return Column(name, "constant", gaps, count, quoted(str(known[0].as_py())), num_rows=n)
    if kind == "date":
        return _date(column, name, count, where)
    if kind == "boolean":
        true = pc.sum(known).as_py()
        return Column(name, kind, gaps, count, f"{true} true, {n - gaps - true} false", num_rows=n)
    examples = ", ".join(quoted(str(value)) for value in known.slice(0, _SAMPLE).unique().slice(0, 3).to_pylist())
    if kind == "category" or is_text(table.field(number)):
        return Column(name, kind, gaps, count, examples, num_rows=n)
    wordy = pc.mean(pc.count_substring_regex(known.slice(0, _SAMPLE), pattern=r"\S+")).as_py() >= WORDS
    if _unique(count, n - gaps, n):
        return Column(name, "text" if wordy else "id", gaps, count, examples, num_rows=n)
    few = count <= FEW or (count <= SOME and REPEATED * count <= n - gaps)
    return Column(name, "category" if few else "text", gaps, count, examples, num_rows=n)


def _date(column: pa.ChunkedArray, name: str, distinct: int, where: str) -> Column:
    days = values(column, "date", name, where)
    low, high = (str(pc.min_max(column)[end].as_py()) for end in ("min", "max"))
    phases = {part: part_of(days, part) for part in PARTS}
    parts = tuple(part for part, phase in phases.items() if np.nanmax(phase) > np.nanmin(phase))
    scaling = scaling_of(days[None])[0]
    return Column(name, "date", column.null_count, distinct, f"{low} … {high}", scaling, parts, num_rows=len(days))
