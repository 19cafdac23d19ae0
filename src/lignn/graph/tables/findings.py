"""What is wrong with a table that cannot be read: it is read again, cell by cell, and all faults are found at once."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from lignn.errors import TableError, quoted
from lignn.graph.names import MISSING, SURROGATE, normalised
from lignn.graph.table_file import Table
from lignn.graph.tables import cells

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
SHOWN = 3
"""Places of a column that are shown."""
_NUMBER = re.compile(r"[ \t]*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[ \t]*", re.ASCII | re.IGNORECASE)
_NOT_FINITE = re.compile(r"[ \t]*[+-]?(nan|inf|infinity)[ \t]*", re.IGNORECASE)


@dataclass
class Found:
    """What is wrong with the rows of a table.

    Attributes:
        lines: one line per column that has faults: the first three, and the number of the others.
        bad: rows with a fault, counted from 0.
        repeated: rows that repeat an earlier one in every cell, which are no fault.
        ids: all ids, those of rows with a fault among them.
    """

    lines: list[str]
    bad: list[int]
    repeated: list[int]
    ids: set[str]

    @property
    def out(self) -> set[int]:
        """All these rows."""
        return {*self.bad, *self.repeated}


def scan(table: Table, checks: Mapping[str, Check], key: str | None = None, repeats: bool = True) -> Found:
    """Return all faults of a table.

    Args:
        table: the table.
        checks: the check of each column; a column without one may hold anything.
        key: the column of ids.
        repeats: rows with the same id and the same cells are a fault.
    """
    places: dict[str | None, list[tuple[int, str]]] = {}
    counts: Counter[str | None] = Counter()
    columns = [(name, checks.get(name)) for name in table.columns]
    place = None if key is None else table.columns.index(key)
    known: dict[str, list[str]] = {}
    found = Found([], [], [], set())
    for row, (number, row_of) in enumerate(table.rows()):
        if len(row_of) != len(columns):
            wrong: list[tuple[str | None, str | None]] = [
                (None, f"{len(row_of)} cells, but the header names {len(columns)} columns")
            ]
        elif (
            place is not None
            and not repeats
            and known.setdefault(row_of[place], row_of) == row_of
            and row_of[place] in found.ids
        ):
            found.repeated.append(row)
            continue
        else:
            wrong = [
                (name, _fault(cell, number, check))
                for cell, (name, check) in zip(row_of, columns, strict=True)
                if check is not None
            ]
        if place is not None and len(row_of) == len(columns):
            found.ids |= {row_of[place], normalised(row_of[place])}
        if any(fault for _, fault in wrong):
            found.bad.append(row)
        for name, fault in wrong:
            if fault:
                counts[name] += 1
                if counts[name] <= SHOWN:
                    places.setdefault(name, []).append((number, fault))
    found.ids.discard("")
    found.lines += [_line(table, checks, name, each, counts[name]) for name, each in places.items()]
    return found


def report(table: Table, checks: Mapping[str, Check], otherwise: str) -> NoReturn:
    """Raise a `TableError` with all faults of a table; `otherwise` is the message if there is none."""
    raise TableError("\n".join(scan(table, checks).lines) or f"{table.path}: {otherwise}")


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
    more = f", and {count - SHOWN} more" if count > SHOWN else ""
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


def named(known: Collection[str]) -> Check:
    """Return a check that a cell names something: a known word, or another text that does not mean unknown."""

    def find(cell: str, _row: int) -> str | None:
        if cell in known or normalised(cell) in known:
            return None
        if not normalised(cell):
            return "the id is empty"
        return f"{quoted(cell)} means unknown, it cannot be an id" if normalised(cell) in MISSING else None

    return Check("ids", find)


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
        value = float(cell) if _NUMBER.fullmatch(cell) else _written(cell)
        if value is None:
            finite = "finite" if _NOT_FINITE.fullmatch(cell) else "a number"
            return f"{quoted(cell)} is not {finite}"
        if not math.isfinite(value) or abs(value) > largest:
            return f"{quoted(cell)} is too large, the largest number is {largest:.3g}"
        return f"{quoted(cell)} is negative" if smallest is not None and value < smallest else None

    return Check("numbers", find, hint)


def _written(cell: str) -> float | None:
    """Return a number as people write it; None for any other text."""
    found = cells.readings(pa.array([cell.strip()]), "number", least=1)
    return found[0].values[0].as_py() if found else None


def time() -> Check:
    """Return a check that a cell is a number, a date or empty."""

    def find(cell: str, _row: int) -> str | None:
        text = cell.strip()
        if not text or text in MISSING or _NUMBER.fullmatch(cell) or cells.readings(pa.array([text])):
            return None
        return f"{quoted(cell)} is neither a number nor a date"

    return Check("times", find, "; write dates as 2024-12-31 or 2024-12-31 23:59:59")
