"""Error messages for tables: a file that could not be read is read again, cell by cell, to find what is wrong where."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import NoReturn

from lignn.errors import TableError, quoted
from lignn.graph.names import SURROGATE, normalised
from lignn.graph.table_file import Table

Check = Callable[[str, int], str | None]
"""A function of a cell and its row number that returns what is wrong with the cell, or None."""

_MAX_SHOWN = 10
_NUMBER = re.compile(r"[ \t]*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[ \t]*", re.ASCII | re.IGNORECASE)
_NOT_FINITE = re.compile(r"[ \t]*[+-]?(nan|inf|infinity)[ \t]*", re.IGNORECASE)


def report(table: Table, checks: Mapping[str, Check], otherwise: str) -> NoReturn:
    """Raise a `TableError` with the first ten faults of `table` and the number of the others.

    Args:
        table: the table that could not be read.
        checks: the check of each column.
        otherwise: the message if no check finds a fault.
    """
    shown: list[str] = []
    count = 0
    columns = [(name, checks[name]) for name in table.columns]
    for number, cells in table.rows():
        if len(cells) != len(columns):
            faults = [f": {len(cells)} cells, but the header names {len(columns)} columns"]
        else:
            found = [_fault(cell, number, check) for cell, (_, check) in zip(cells, columns, strict=True)]
            if not any(found):
                continue
            faults = [f", column {columns[i][0]!r}: {fault}" for i, fault in enumerate(found) if fault]
        count += len(faults)
        shown += [f"{table.path}, {table.unit} {number}{fault}" for fault in faults[: _MAX_SHOWN - len(shown)]]
    if not shown:
        raise TableError(f"{table.path}: {otherwise}")
    more = [f"and {count - len(shown)} more"] if count > len(shown) else []
    raise TableError("\n".join(shown + more))


def _fault(cell: str, row: int, check: Check) -> str | None:
    if not cell.isascii() and SURROGATE.search(cell):
        return "is not UTF-8 text; save the file as UTF-8"
    if cell.endswith("\0"):
        return f"{quoted(cell)} ends in a NUL character; remove it"
    return check(cell, row)


def unique(unit: str, exact: bool = False) -> Check:
    """Return a check that a cell is not empty and does not repeat.

    Args:
        unit: what row numbers count, line or row.
        exact: compare texts as they are, not normalised.
    """
    seen: dict[str, int] = {}

    def check(cell: str, row: int) -> str | None:
        cell = cell if exact else normalised(cell)
        if not cell:
            return "the id is empty"
        if cell in seen:
            return f"the id {quoted(cell)} is already used in {unit} {seen[cell]}"
        seen[cell] = row
        return None

    return check


def among(known: Collection[str], what: str, hint: str = "", exact: bool = False) -> Check:
    """Return a check that a cell is one of the known words.

    Args:
        known: the words.
        what: a description of the words for the message.
        hint: the end of the message.
        exact: compare texts as they are, not normalised.
    """
    by_normal_form = {normalised(word): word for word in known}

    def check(cell: str, _row: int) -> str | None:
        if cell in known or (not exact and normalised(cell) in known):
            return None
        if word := by_normal_form.get(normalised(cell)):
            return f"{quoted(cell)} is not {what}, but {quoted(word)} is; write both with the same characters"
        return f"{quoted(cell)} is not {what}{hint}"

    return check


def several(check: Check, missing: Collection[str] = ()) -> Check:
    """Return a check of every label in a cell of labels joined by `|`; none of them may mean unknown."""

    def check_all(cell: str, row: int) -> str | None:
        labels = cell.split("|")
        for label in labels:
            if len(labels) > 1 and normalised(label) in missing:
                return f"{quoted(label)} means unknown, it cannot be one of several labels; remove it"
            if fault := check(label, row):
                return fault
        return None

    return check_all


def number(largest: float, smallest: float | None = None, hint: str = "") -> Check:
    """Return a check that a cell is a finite number between `smallest` and `largest`."""

    def check(cell: str, _row: int) -> str | None:
        if not cell:
            return f"is empty, a number is needed{hint}"
        if not _NUMBER.fullmatch(cell):
            finite = "finite" if _NOT_FINITE.fullmatch(cell) else "a number"
            return f"{quoted(cell)} is not {finite}{hint}"
        value = float(cell)
        if not math.isfinite(value) or abs(value) > largest:
            return f"{quoted(cell)} is too large, the largest number is {largest:.3g}"
        return f"{quoted(cell)} is negative" if smallest is not None and value < smallest else None

    return check
