"""The values of a column as an array, by its kind; a column that does not fit is told as a whole.

Numbers are floats (NaN = missing), booleans 0.0 and 1.0, dates days since 1970, categories and texts objects (None =
missing).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lignn.errors import InputError, quoted
from lignn.features.columns import Kind

_DAY = 86_400_000_000
"""Microseconds in a day."""
_TYPES: dict[Kind, pa.DataType] = {
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.timestamp("us"),
    "category": pa.large_string(),
    "text": pa.large_string(),
}
KINDS: dict[str, Kind] = {"number": "number", "category": "category", "date": "date", "text": "text"}
"""Kinds that a user may say a column to be."""
_PLURAL = {"number": "numbers", "boolean": "true or false", "date": "dates", "category": "texts", "text": "texts"}
_WANTED = {"number": "a number", "boolean": "true or false", "date": "a date", "category": "a text", "text": "a text"}


_TEXT = {b"lignn.kind": b"text"}


def as_text(name: str) -> pa.Field:
    """Return the field of a column of texts that are read word by word, however few of them there are."""
    return pa.field(name, pa.large_string(), metadata=_TEXT)


def is_text(field: pa.Field) -> bool:
    """Return whether `as_text` made the field of a column."""
    return field.metadata is not None and _TEXT.items() <= field.metadata.items()


def kind_of(type_: pa.DataType) -> Kind | None:
    """Return the kind of all columns of an Arrow type, "text" for any texts; None for lists, bytes and the like."""
    if types.is_dictionary(type_):
        return "category" if kind_of(type_.value_type) is not None else None
    if types.is_boolean(type_):
        return "boolean"
    if types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_):
        return "number"
    if types.is_date(type_) or types.is_timestamp(type_):
        return "date"
    return "text" if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_) else None


def values(column: pa.ChunkedArray, kind: Kind, name: str, where: str) -> np.ndarray:
    """Return the values of a column.

    Args:
        column: of any Arrow type whose values can be read as this kind.
        kind: a kind that becomes features.
        name: name of the column, for errors.
        where: name of the table, for errors.
    """
    if kind == "number" and column.null_count == 0 and types.is_primitive(column.type) and _plain(column.type):
        found = column.to_numpy().astype(np.float64, copy=False)
    else:
        found = typed(column, kind, name, where)
        if kind == "date":
            found = found.cast(pa.int64())
        found = found.to_numpy()
    if kind in ("category", "text"):
        return found
    found = found.astype(np.float64, copy=False)
    if kind == "number":
        _refuse_infinite(found, name, where)
    return found / _DAY if kind == "date" else found


def typed(column: pa.ChunkedArray, kind: Kind, name: str, where: str) -> pa.ChunkedArray:
    """Return a column in the one Arrow type that stands for its kind."""
    target = _TYPES[kind]
    column = column.cast(column.type.value_type) if types.is_dictionary(column.type) else column
    if column.type == target:
        return column
    theirs = kind_of(column.type)
    readable = theirs in (kind, "text") or target == pa.large_string() or types.is_null(column.type)
    if not readable and (theirs, kind) not in {("boolean", "number"), ("number", "boolean")}:
        raise InputError(
            f"{where}: column {name!r} holds {_PLURAL[kind]} in the model, here its type is {column.type}; "
            f"give {_PLURAL[kind]}"
        )
    if types.is_timestamp(column.type) and column.type.tz is not None and kind == "date":
        target = pa.timestamp("us", column.type.tz)
    try:
        return _cast(column, target)
    except pa.ArrowException as error:
        raise _fault(column, target, kind, name, where) from error


def _plain(type_: pa.DataType) -> bool:
    return types.is_integer(type_) or types.is_floating(type_)


def _cast(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """Convert a column; large integers and short times may be rounded, nothing may be lost otherwise."""
    options = pc.CastOptions(target, allow_time_truncate=True, allow_float_truncate=True, allow_decimal_truncate=True)
    return pc.cast(column, options=options)


def _fault(column: pa.ChunkedArray, target: pa.DataType, kind: Kind, name: str, where: str) -> InputError:
    """Return one error for all values of a column that are not of its kind."""

    def fails(value: pa.Scalar) -> bool:
        try:
            _cast(pa.chunked_array([pa.array([value.as_py()], column.type)]), target)
        except pa.ArrowException:
            return True
        return False

    wrong = [row for row, value in enumerate(column) if value.is_valid and fails(value)]
    return _told(wrong, [str(column[row].as_py()) for row in wrong[:2]], _WANTED[kind], (name, kind, where))


def _refuse_infinite(numbers: np.ndarray, name: str, where: str) -> None:
    if not np.isfinite(np.abs(numbers).max(initial=0, where=~np.isnan(numbers))):
        wrong = np.flatnonzero(np.isinf(numbers)).tolist()
        raise _told(wrong, [str(numbers[row]) for row in wrong[:2]], "finite", (name, "number", where))


def _told(rows: list[int], shown: list[str], wanted: str, column: tuple[str, Kind, str]) -> InputError:
    name, kind, where = column
    places = " and ".join(f"{quoted(text)} in row {row}" for row, text in zip(rows, shown, strict=False))
    more = f" ({len(rows)} such rows)" if len(rows) > 2 else ""
    what = "is" if len(rows) == 1 else "each is"
    return InputError(f"{where}: column {name!r} ({kind}): {places} {what} not {wanted}{more}; correct or empty them")
