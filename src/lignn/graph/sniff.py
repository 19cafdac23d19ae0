"""The dialect of a text file of cells, found from its beginning: what separates cells, and the decimal sign."""

from __future__ import annotations

import csv
import re
from contextlib import suppress
from dataclasses import dataclass

SAMPLE = 2**16
"""Bytes at the beginning of a file that are looked at."""
_DELIMITERS = ",;\t"
_COMMA, _POINT = (re.compile(rf"\s*[+-]?\d+{sign}\d+\s*", re.ASCII) for sign in (",", r"\."))


@dataclass(frozen=True)
class Dialect:
    """What separates cells, and what separates the digits of a fraction."""

    delimiter: str = ","
    decimal: str = "."

    def with_points(self, cells: list[str]) -> list[str]:
        """Return the cells with a point in numbers that have a decimal comma."""
        if self.decimal == ".":
            return cells
        return [cell.replace(",", ".") if _COMMA.fullmatch(cell) else cell for cell in cells]


def dialect(sample: str) -> Dialect:
    """Return the dialect in which most rows have as many cells as the header; in doubt, commas and points."""
    lines = sample.splitlines(keepends=True)
    if len(lines) > 1 and not lines[-1].endswith(("\n", "\r")):
        del lines[-1]  # it may be cut off
    rows = {sign: _rows(lines, sign) for sign in _DELIMITERS}
    delimiter = max(_DELIMITERS, key=lambda sign: _fit(rows[sign]))
    cells = [cell for row in rows[delimiter][1:] for cell in row]
    commas = delimiter != "," and any(map(_COMMA.fullmatch, cells)) and not any(map(_POINT.fullmatch, cells))
    return Dialect(delimiter, "," if commas else ".")


def _rows(lines: list[str], delimiter: str) -> list[list[str]]:
    rows: list[list[str]] = []
    with suppress(csv.Error):  # the reader of the header says what is wrong
        rows.extend(row for row in csv.reader(lines, delimiter=delimiter) if row)
    return rows


def _fit(rows: list[list[str]]) -> tuple[int, int]:
    """Return the number of rows as wide as the header, and its width; a single column tells nothing."""
    width = len(rows[0]) if rows else 0
    return (sum(len(row) == width for row in rows), width) if width > 1 else (0, 0)
