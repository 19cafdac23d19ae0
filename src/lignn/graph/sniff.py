"""What separates the cells of a text file, found from its beginning."""

from __future__ import annotations

import csv
from contextlib import suppress

SAMPLE = 2**16
"""Bytes at the beginning of a file that are looked at."""
_DELIMITERS = ",;\t"


def delimiter(sample: str) -> str:
    """Return the sign with which most rows have as many cells as the header; in doubt, commas."""
    lines = sample.splitlines(keepends=True)
    if len(lines) > 1 and not lines[-1].endswith(("\n", "\r")):
        del lines[-1]  # it may be cut off
    rows = {sign: _rows(lines, sign) for sign in _DELIMITERS}
    return max(_DELIMITERS, key=lambda sign: _fit(rows[sign]))


def _rows(lines: list[str], delimiter: str) -> list[list[str]]:
    rows: list[list[str]] = []
    with suppress(csv.Error):  # the reader of the header says what is wrong
        rows.extend(row for row in csv.reader(lines, delimiter=delimiter) if row)
    return rows


def _fit(rows: list[list[str]]) -> tuple[int, int]:
    """Return the number of rows as wide as the header, and its width; a single column tells nothing."""
    width = len(rows[0]) if rows else 0
    return (sum(len(row) == width for row in rows), width) if width > 1 else (0, 0)
