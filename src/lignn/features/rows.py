"""Rows of columns as an Arrow table, whatever they come in; rows that join a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from lignn.errors import InputError
from lignn.features.values import kind_of, typed


def as_table(rows: Any) -> pa.Table:
    """Return rows as an Arrow table.

    Args:
        rows: an Arrow table, a data frame (pandas, Polars, or another one that speaks Arrow), a list of dictionaries,
            one for each row, or a dictionary of columns.
    """
    try:
        table = _converted(rows)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"the rows cannot be read as columns of one type each: {error}") from error
    if len(set(table.column_names)) < table.num_columns:
        twice = next(name for name in table.column_names if table.column_names.count(name) > 1)
        raise InputError(f"the rows have two columns {twice!r}; rename one of them")
    return table


def _converted(rows: Any) -> pa.Table:
    if isinstance(rows, pa.Table):
        return rows
    if hasattr(rows, "iloc"):  # pandas, whose index is no column
        return pa.Table.from_pandas(rows, preserve_index=False)
    if hasattr(rows, "__arrow_c_stream__") or isinstance(rows, Mapping):
        return pa.table(rows)
    if isinstance(rows, Sequence) and rows and all(isinstance(row, Mapping) for row in rows):
        names = dict.fromkeys(name for row in rows for name in row)
        return pa.table({str(name): [row.get(name) for row in rows] for name in names})
    raise InputError(
        f"rows of named columns are needed (a data frame, an Arrow table, or a list of dictionaries), "
        f"got {type(rows).__name__}"
    )


def append(table: pa.Table, rows: pa.Table) -> pa.Table:
    """Return `table` with more rows; columns that these lack are missing there, others of theirs are left out.

    A column keeps its type if that can hold the new values. Otherwise both become the type of their kind, e.g. whole
    numbers that are joined by others.
    """
    there = set(rows.column_names)
    joined = {}
    for name in table.column_names:
        new = rows.column(name) if name in there else pa.nulls(rows.num_rows)
        old, new = _of_one_type(name, table.column(name), pa.chunked_array(new))
        joined[name] = pa.chunked_array([*old.chunks, *new.chunks], old.type)
    return pa.table(joined)


def _of_one_type(name: str, old: pa.ChunkedArray, new: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    if new.type == old.type:
        return old, new
    kind = kind_of(old.type)
    if kind is None:
        return old, new.cast(old.type)
    new = typed(new, kind, name, "rows")
    try:
        kept = new.cast(old.type)
        fits = kept.cast(new.type).equals(new)  # a date has no room for the time of day
    except pa.ArrowInvalid:
        fits = False
    return (old, kept) if fits else (typed(old, kind, name, "table"), new)


def same(one: pa.Table | None, other: pa.Table | None) -> bool:
    """Return whether two tables have the same columns, in any order; missing numbers are the same."""
    if one is None or other is None:
        return one is other
    if one is other:
        return True
    if one.num_rows != other.num_rows or set(one.column_names) != set(other.column_names):
        return False
    return all(_same_column(one.column(name), other.column(name)) for name in one.column_names)


def _same_column(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    if one.equals(other):
        return True
    floats = types.is_floating(one.type) and types.is_floating(other.type)
    return floats and np.array_equal(one.to_numpy(), other.to_numpy(), equal_nan=True)
