"""Whether what was read is plausible: one warning for each thing that is rarely meant."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lignn.errors import DataWarning, quoted

_FEWEST = 10
"""Rows, or labels, from which on it is no chance that all are empty, or that each class has a value of its own."""
_MANY = 0.5
"""Classes per labelled row from which on a label is likely no class."""


def labels(where: str, y: np.ndarray | None, classes: Sequence[str] | None) -> None:
    """Warn of labels with nearly as many values as rows, and of classes that are the same number.

    Args:
        where: the file and the column.
        y: class numbers, -1 = unlabelled, or 0/1 rows, of which nothing is said.
        classes: names of the classes.
    """
    if y is None or y.ndim > 1 or classes is None:
        return
    known = int((y >= 0).sum())
    used = len(np.unique(y[y >= 0]))
    if known >= _FEWEST and used > _MANY * known:
        _warn(f"{where}: {used:,} classes for {known:,} labelled rows; is it another column that holds the label?")
    numbers: dict[float, str] = {}
    for name in classes:
        try:
            first = numbers.setdefault(float(name), name)
        except ValueError:
            continue
        if first != name:
            _warn(
                f"{where}: {quoted(first)} and {quoted(name)} are the same number, but two classes; write one of them"
            )


def features(where: str, table: pa.Table | None, y: np.ndarray | None) -> None:
    """Warn of columns that tell the label of each row, and of columns without any value.

    Args:
        where: the file.
        table: columns of features.
        y: class numbers, -1 = unlabelled.
    """
    if table is None:
        return
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count == len(column) >= _FEWEST:
            _warn(f"{where}, column {name!r}: has no value in any row")
    if y is None or y.ndim > 1 or (y >= 0).sum() < _FEWEST:
        return
    known = y >= 0
    classes = len(np.unique(y[known]))
    if classes > _MANY * known.sum():
        return
    chosen = pa.array(np.flatnonzero(known))
    for name, column in zip(table.column_names, table.columns, strict=True):
        seen = column.take(chosen)
        if seen.null_count or pa.types.is_nested(column.type):
            continue
        values = seen.cast(seen.type.value_type) if pa.types.is_dictionary(seen.type) else seen
        if pc.count_distinct(values).as_py() != classes:
            continue
        code = pc.index_in(values, pc.unique(values)).to_numpy().astype(np.int64)
        pairs = np.unique(code * (int(y.max()) + 1) + y[known])
        if len(pairs) == classes:
            _warn(f"{where}, column {name!r}: tells the label of each row; leave it out by --ignore {name}")


def _warn(words: str) -> None:
    warnings.warn(words, DataWarning, stacklevel=3)
