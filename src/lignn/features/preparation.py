"""`Preparation`: the columns of a table become features, by what was learned from the rows it was fitted to.

It knows tables and rows only: no labels, no edges. `transform` is the one function from rows to features.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil, log2
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from lignn.errors import DataWarning, InputError
from lignn.features.columns import Column
from lignn.features.dates import AGE, part_of
from lignn.features.groups import Arrays, Group, Input, Treatment
from lignn.features.kinds import describe
from lignn.features.values import kind_of, typed, values

Matrix: TypeAlias = np.ndarray | sp.csr_array

WIDE = 1000
"""Number of one-hot columns from which features are sparse; those of texts always are."""
HASHED = 12
"""log₂ of the number of columns that the words of all texts together are hashed to; likewise their n-grams."""
_SEVERAL = 10
"""Rows from which on it is no chance that none has a value, or none one that is known."""
_LEAST_HASHED = 8
"""log₂ of the least number of columns for one column of texts."""


class FeatureTransform(Protocol):
    """What makes features of rows: `Preparation`, or a transformer of the user's own."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns it knows, and what becomes of them."""

    def transform(self, rows: Any, where: str = "rows") -> Matrix:
        """Return the features of rows in single precision, finite; `where` names the rows in errors."""


@dataclass(frozen=True, eq=False)
class Preparation:
    """Fitted transformers of the columns of a table.

    Attributes:
        columns: the columns of the table it was fitted to.
        groups: the columns that become features, by treatment.
        sparse: whether features are CSR and not dense.
    """

    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    sparse: bool

    @classmethod
    def fit(cls, table: pa.Table, rows: np.ndarray | None = None, where: str = "table") -> Preparation:
        """Learn from a table how to make features of its columns.

        Args:
            table: one row per node.
            rows: mask of the rows to learn from; others influence nothing. None: all rows.
            where: name of the table, for errors.
        """
        seen = table if rows is None else table.filter(pa.array(rows))
        columns = describe(seen, where)
        groups, width = [], _hashed_width(columns)
        for treatment, inputs in _treatments(columns):
            kinds = {column.name: column for column in columns}
            groups.append(Group.fit(treatment, inputs, _inputs(seen, inputs, treatment, kinds, where), width))
        onehot = sum(len(group.feature_names) for group in groups if group.treatment == "category")
        sparse = onehot > WIDE or any(group.treatment == "words" for group in groups)
        return cls(columns, tuple(groups), sparse)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in order."""
        return tuple(name for group in self.groups for name in group.feature_names)

    def transform(self, rows: pa.Table, where: str = "rows") -> Matrix:
        """Return the features of rows, n×d in single precision, all finite.

        Columns are found by name, in any order. Values of a category that were not there in fitting count as its other
        values. A column that is not there is missing in all rows, and one that the table of the fit did not have is
        ignored, both with a warning.

        Args:
            rows: a table; see `as_table` for rows that come otherwise.
            where: name of the rows, for errors and warnings.
        """
        rows = self._completed(rows, where)
        kinds = {column.name: column for column in self.columns}
        blocks = [group.transform(_inputs(rows, group.inputs, group.treatment, kinds, where)) for group in self.groups]
        if self.sparse:
            return sp.csr_array(sp.hstack(blocks, format="csr"))
        dense = [block.toarray() if isinstance(block, sp.csr_array) else block for block in blocks]
        return np.hstack([np.zeros((rows.num_rows, 0), np.float32), *dense])

    def _completed(self, rows: pa.Table, where: str) -> pa.Table:
        """Return rows with all columns that become features; warn of columns that are missing or unknown."""
        wanted = [column.name for column in self.columns if column.used]
        there, known = set(rows.column_names), {column.name for column in self.columns}
        missing = [name for name in wanted if name not in there]
        if wanted and len(missing) == len(wanted):
            raise InputError(f"{where}: none of the model's columns is there; it was trained with {_list(wanted)}")
        if missing:
            words = f"{where}: no {_list(missing)}, which the model was trained with; the values count as missing"
            warnings.warn(words, DataWarning, stacklevel=3)
            rows = pa.table({name: rows.column(name) if name in there else pa.nulls(rows.num_rows) for name in wanted})
        if extra := [name for name in there if name not in known]:
            words = f"{where}: ignored {_list(sorted(extra))}; the model was trained without"
            warnings.warn(words, DataWarning, stacklevel=3)
        self._warn_of_changes(rows, where, missing)
        return rows

    def _warn_of_changes(self, rows: pa.Table, where: str, absent: Sequence[str]) -> None:
        """Warn of columns that have no value here, only values that the model does not know, or numbers for truth."""
        known = {name: values for g in self.groups for (name, _), (values, _) in zip(g.inputs, g.values, strict=False)}
        for column in self.columns:
            if not column.used or rows.num_rows < _SEVERAL or column.name in absent:
                continue
            here = rows.column(column.name)
            if pa.types.is_null(here.type):
                continue  # it follows from the edges, or reading its table has told
            if here.null_count == len(here) and column.missing < column.num_rows:
                words = "has no value in any row; all count as missing"
            elif column.kind == "boolean" and kind_of(here.type) == "number":
                words = "holds numbers, the model was trained on true and false; all but 0 count as true"
            elif (
                column.kind == "category"
                and len(known.get(column.name, ()))
                and self._all_new(here, known[column.name])
            ):
                words = "has no value that the model was trained with; all count as other values"
            else:
                continue
            warnings.warn(f"{where}: column {column.name!r} {words}", DataWarning, stacklevel=4)

    @staticmethod
    def _all_new(column: pa.ChunkedArray, known: Sequence[str | None]) -> bool:
        texts = typed(column, "category", "", "").drop_null().unique()
        return len(texts) > 0 and not pc.any(pc.is_in(texts, pa.array(known, texts.type))).as_py()

    def state(self) -> tuple[dict[str, Any], dict[str, Arrays]]:
        """Return the fitted state: values as JSON has them, and arrays by group."""
        states = [group.state() for group in self.groups]
        record = {
            "columns": [asdict(column) for column in self.columns],
            "groups": [values for values, _ in states],
            "sparse": self.sparse,
        }
        return record, {str(number): arrays for number, (_, arrays) in enumerate(states)}

    @classmethod
    def restored(cls, record: Mapping[str, Any], arrays: Mapping[str, Arrays]) -> Preparation:
        """Return the preparation of which `state` returned these; it transforms to the same bits."""
        columns = tuple(Column(**each | {"parts": tuple(each["parts"])}) for each in record["columns"])
        groups = (Group.restored(each, arrays.get(str(number), {})) for number, each in enumerate(record["groups"]))
        return cls(columns, tuple(groups), record["sparse"])

    def without_examples(self) -> Preparation:
        """Return the same transform without the ranges and examples of the columns, which are values of rows."""
        return replace(self, columns=tuple(replace(column, summary="") for column in self.columns))


def _hashed_width(columns: Sequence[Column]) -> int:
    texts = sum(column.kind == "text" for column in columns)
    return 2 ** max(_LEAST_HASHED, HASHED - ceil(log2(max(texts, 1))))


def _treatments(columns: Sequence[Column]) -> Iterator[tuple[Treatment, tuple[Input, ...]]]:
    """Yield each treatment with its columns; a column of texts is alone."""
    scalings: tuple[Treatment, ...] = ("standard", "quantiles")
    numbers = [(c.scaling, (c.name, AGE if c.kind == "date" else "")) for c in columns if c.kind in ("number", "date")]
    found: dict[Treatment, list[Input]] = {
        **{scaling: [given for how, given in numbers if how == scaling] for scaling in scalings},
        "boolean": [(column.name, "") for column in columns if column.kind == "boolean"],
        "cycle": [(column.name, part) for column in columns for part in column.parts if column.kind == "date"],
        "category": [(column.name, "") for column in columns if column.kind == "category"],
    }
    yield from ((treatment, tuple(inputs)) for treatment, inputs in found.items() if inputs)
    for column in columns:
        if column.kind == "text":
            yield "words", ((column.name, ""),)
            yield "characters", ((column.name, ""),)


def _inputs(
    table: pa.Table, inputs: Sequence[Input], treatment: Treatment, kinds: Mapping[str, Column], where: str
) -> np.ndarray:
    """Return the values of some columns, n×k; of a column of texts, the texts."""
    if treatment in ("words", "characters"):
        texts = values(table.column(inputs[0][0]), "text", inputs[0][0], where)
        return np.array(["" if text is None else text for text in texts], dtype=object)
    matrix = np.empty((len(inputs), table.num_rows), dtype=object if treatment == "category" else np.float64)
    place = {name: number for number, name in enumerate(table.column_names)}
    for row, (name, part) in enumerate(inputs):
        found = values(table.column(place[name]), kinds[name].kind, name, where)
        matrix[row] = part_of(found, part) if part else found
    return matrix.T


def _list(names: Sequence[str]) -> str:
    """Return names for a message, the first three of many."""
    shown = ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"column{'s' * (len(names) > 1)} {shown}"
