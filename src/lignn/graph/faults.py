"""Error messages for tables: a file that could not be read is read again, cell by cell, to find what is wrong where."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from lignn.errors import TableError, quoted
from lignn.graph.names import MISSING, SURROGATE, normalised
from lignn.graph.table_file import Table

Find = Callable[[str, int], str | None]
"""A function of a cell and its row number that returns what is wrong with the cell, or None."""


@dataclass(frozen=True)
class Check:
    """What the cells of a column must be.

    Attributes:
        kind: what the column holds, in words.
        find: finds what is wrong with a cell.
        hint: the end of the message.
    """

    kind: str
    find: Find
    hint: str = ""


_ADVICE = ("save the file as UTF-8", "remove it", "with the same characters")
"""Ends of faults that say what to do by themselves."""
_SHOWN = 2
"""Places of a column that are shown."""
_NUMBER = re.compile(r"[ \t]*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[ \t]*", re.ASCII | re.IGNORECASE)
_DATE = re.compile(r"\s*(\d{4}[-/]\d\d?[-/]\d\d?|\d\d?\.\d\d?\.\d{4})([ T].*)?", re.ASCII)
_NOT_FINITE = re.compile(r"[ \t]*[+-]?(nan|inf|infinity)[ \t]*", re.IGNORECASE)


def report(table: Table, checks: Mapping[str, Check], otherwise: str) -> NoReturn:
    """Raise a `TableError` with one line per column that has faults: the first two, and the number of the others.

    Args:
        table: the table that could not be read.
        checks: the check of each column; a column without one may hold anything.
        otherwise: the message if no check finds a fault.
    """
    found: dict[str | None, list[tuple[int, str]]] = {}
    counts: Counter[str | None] = Counter()
    columns = [(name, checks.get(name)) for name in table.columns]
    for number, cells in table.rows():
        if len(cells) != len(columns):
            wrong: list[tuple[str | None, str | None]] = [
                (None, f"{len(cells)} cells, but the header names {len(columns)} columns")
            ]
        else:
            wrong = [
                (name, _fault(cell, number, check))
                for cell, (name, check) in zip(cells, columns, strict=True)
                if check is not None
            ]
        for name, fault in wrong:
            if fault:
                counts[name] += 1
                if counts[name] <= _SHOWN:
                    found.setdefault(name, []).append((number, fault))
    if not found:
        raise TableError(f"{table.path}: {otherwise}")
    raise TableError("\n".join(_line(table, checks, name, places, counts[name]) for name, places in found.items()))


def _line(
    table: Table, checks: Mapping[str, Check], name: str | None, places: Sequence[tuple[int, str]], count: int
) -> str:
    """Return the message for one column, None for rows of a wrong length."""
    hint = "" if name is None or places[-1][1].endswith(_ADVICE) else checks[name].hint
    if count == 1:
        ((number, fault),) = places
        column = "" if name is None else f", column {name!r}"
        return f"{table.path}, {table.unit} {number}{column}: {fault}{hint}"
    column = "" if name is None else f", column {name!r} ({checks[name].kind})"
    shown = ", ".join(f"{fault} ({table.unit} {number})" for number, fault in places)
    more = f", and {count - _SHOWN} more" if count > _SHOWN else ""
    return f"{table.path}{column}: {shown}{more}{hint}"


def _fault(cell: str, row: int, check: Check) -> str | None:
    if not cell.isascii() and SURROGATE.search(cell):
        return "is not UTF-8 text; save the file as UTF-8"
    if cell.endswith("\0"):
        return f"{quoted(cell)} ends in a NUL character; remove it"
    return check.find(cell, row)


def anything(kind: str = "any") -> Check:
    """Return a check that any text passes."""
    return Check(kind, lambda _cell, _row: None)


def unique(unit: str, exact: bool = False) -> Check:
    """Return a check that a cell is not empty and does not repeat.

    Args:
        unit: what row numbers count, line or row.
        exact: compare texts as they are, not normalised.
    """
    seen: dict[str, int] = {}

    def find(cell: str, row: int) -> str | None:
        cell = cell if exact else normalised(cell)
        if not cell:
            return "the id is empty"
        if cell in seen:
            return f"the id {quoted(cell)} is already used in {unit} {seen[cell]}"
        seen[cell] = row
        return None

    return Check("ids", find)


def both(first: Check, second: Check) -> Check:
    """Return a check that a cell passes two checks; the first fault is told."""
    return Check(first.kind, lambda cell, row: first.find(cell, row) or second.find(cell, row), first.hint)


def among(kind: str, known: Collection[str], what: str, hint: str = "", exact: bool = False) -> Check:
    """Return a check that a cell is one of the known words.

    Args:
        kind: what the column holds.
        known: the words.
        what: a description of the words for the message.
        hint: the end of the message.
        exact: compare texts as they are, not normalised.
    """
    by_normal_form = {normalised(word): word for word in known}

    def find(cell: str, _row: int) -> str | None:
        if cell in known or (not exact and normalised(cell) in known):
            return None
        if word := by_normal_form.get(normalised(cell)):
            return f"{quoted(cell)} is not {what}, but {quoted(word)} is; write both with the same characters"
        return f"{quoted(cell)} is not {what}"

    return Check(kind, find, hint)


def several(check: Check, missing: Collection[str] = ()) -> Check:
    """Return a check of every label in a cell of labels joined by `|`; none of them may mean unknown."""

    def find(cell: str, row: int) -> str | None:
        labels = cell.split("|")
        for label in labels:
            if len(labels) > 1 and normalised(label) in missing:
                return f"{quoted(label)} means unknown, it cannot be one of several labels; remove it"
            if fault := check.find(label, row):
                return fault
        return None

    return Check("labels", find, check.hint)


def number(largest: float, smallest: float | None = None, hint: str = "") -> Check:
    """Return a check that a cell is a finite number between `smallest` and `largest`."""

    def find(cell: str, _row: int) -> str | None:
        if not cell:
            return "is empty, a number is needed"
        if not _NUMBER.fullmatch(cell):
            finite = "finite" if _NOT_FINITE.fullmatch(cell) else "a number"
            return f"{quoted(cell)} is not {finite}"
        value = float(cell)
        if not math.isfinite(value) or abs(value) > largest:
            return f"{quoted(cell)} is too large, the largest number is {largest:.3g}"
        return f"{quoted(cell)} is negative" if smallest is not None and value < smallest else None

    return Check("numbers", find, hint)


def time() -> Check:
    """Return a check that a cell is a number, a date or empty."""

    def find(cell: str, _row: int) -> str | None:
        if not cell.strip() or cell.strip() in MISSING or _NUMBER.fullmatch(cell) or _DATE.match(cell):
            return None
        return f"{quoted(cell)} is neither a number nor a date"

    return Check("times", find, "; write dates as 2024-12-31 or 2024-12-31 23:59:59")
