"""Columns of features as they are read: one type per column, gaps as null, and stray cells told by column."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lignn.errors import DataWarning, quoted
from lignn.graph import names
from lignn.graph.metadata import Metadata
from lignn.graph.table_file import Table

_MOSTLY = 0.9
"""Share of numbers from which on the other texts in a column count as missing."""
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_LARGEST = float(np.finfo(np.float32).max)
_MARKS = pa.array(["", *names.MISSING])


def features(source: Table, table: pa.Table, kinds: Mapping[str, str]) -> tuple[pa.Table, list[str]]:
    """Return the columns that may be features, and the names of those of a type that cannot be one.

    Args:
        source: the table that was read, for messages.
        table: its columns of features, as `Table.inferred` returns them.
        kinds: what columns are said to hold.
    """
    columns, fields, refused = [], [], []
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            refused.append(name)
            continue
        if pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
        said = kinds.get(name)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = _known(column) if said else _texts(source, name, column)
        elif pa.types.is_decimal(kind):
            column = column.cast(pa.float64())
        elif pa.types.is_duration(kind) or pa.types.is_time(kind):
            column = column.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
        if pa.types.is_floating(column.type):
            column = _finite(source, name, column)
        field, column = _said(source, name, column, said) if said else (pa.field(name, column.type), column)
        columns.append(column)
        fields.append(field)
    return pa.table(columns, pa.schema(fields)), refused


def _said(source: Table, name: str, column: pa.ChunkedArray, kind: str) -> tuple[pa.Field, pa.ChunkedArray]:
    """Return a column as one of the kind that it is said to hold; raise if a cell does not fit."""
    from lignn.features import values  # imports scikit-learn, which is slow

    column = values.typed(column, values.KINDS[kind], name, str(source.path))
    if kind == "text":
        return values.as_text(name), column
    column = column.dictionary_encode() if kind == "category" else column
    return pa.field(name, column.type), column


def matrix(table: pa.Table) -> np.ndarray | None:
    """Return the columns as a matrix in single precision if all are numbers without gaps, else None."""
    if not table.num_columns:
        return None
    for column in table.columns:
        kind = column.type
        if column.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            return None
    x = np.empty((len(table), table.num_columns), np.float32)
    with np.errstate(over="ignore"):  # seen below
        for number, column in enumerate(table.columns):
            x[:, number] = column.to_numpy()
    return x if np.isfinite(x).all() else None


def _texts(source: Table, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts with gaps as null; numbers, if nearly all cells of a table without types are numbers."""
    column = _known(column)
    if source.typed:
        return column
    number = pc.fill_null(pc.match_substring_regex(column, _NUMBER), False)
    count, there = pc.sum(number).as_py() or 0, len(column) - column.null_count
    if not _MOSTLY * there <= count < there:
        return column
    stray = pc.and_(pc.invert(number), pc.is_valid(column))
    _note(source, name, "is no number", stray)
    return pc.if_else(number, pc.utf8_trim_whitespace(column), pa.scalar(None, column.type)).cast(pa.float64())


def _known(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return normalised texts with gaps as null."""
    column = Metadata().normalised(column)
    return pc.if_else(pc.is_in(column, _MARKS.cast(column.type)), pa.scalar(None, column.type), column)


def _finite(source: Table, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers with NaN and infinite ones as null."""
    finite = pc.fill_null(pc.is_finite(column), True)
    if pc.all(finite).as_py() is not False:
        return column
    infinite = pc.fill_null(pc.is_inf(column), False)
    if pc.any(infinite).as_py():
        _note(source, name, "is not finite", infinite)
    return pc.if_else(finite, column, pa.scalar(None, column.type))


def _note(source: Table, name: str, fault: str, wrong: pa.ChunkedArray) -> None:
    """Warn of cells of a column of numbers that count as missing: the first two, and how many there are."""
    rows = np.flatnonzero(wrong.to_numpy())
    shown = [f"{quoted(cell)} ({source.unit} {number})" for number, cell in _cells(source, name, rows[:2].tolist())]
    more = f" and {len(rows) - 2} more" if len(rows) > 2 else ""
    message = f"{source.path}, column {name!r} (numbers): {', '.join(shown)}{more} {fault}, and counts as missing"
    warnings.warn(message, DataWarning, stacklevel=2)


def _cells(source: Table, name: str, rows: Sequence[int]) -> list[tuple[int, str]]:
    """Return the number and the text of a column's cells in some rows, counted from 0."""
    place = source.columns.index(name)
    found = []
    for row, (number, cells) in enumerate(source.rows()):
        if row in rows:
            found.append((number, cells[place]))
        if row == max(rows):
            break
    return found
