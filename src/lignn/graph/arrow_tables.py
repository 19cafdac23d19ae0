"""Tables whose columns have types: Parquet files, JSON lines, and tables in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pyarrow.parquet as pq

from lignn.errors import TableError
from lignn.graph import headers
from lignn.graph.files import open_file
from lignn.graph.table_file import TEXT, BadRowsError, whole_numbers

_ROWS = 2**20
"""Rows read at a time."""
_JSON_BLOCK = 2**25
"""Bytes of JSON parsed at a time; a line must fit into it."""


class ArrowTable:
    """A table in memory; ids and labels are texts, categories or whole numbers, and a null is an empty cell."""

    unit = "row"
    typed = True

    def __init__(self, path: Path | str, table: pa.Table | None = None, numbers: np.ndarray | None = None) -> None:
        self.path = path
        self._table, self._numbers = table, numbers

    @property
    def _schema(self) -> pa.Schema:
        assert self._table is not None
        return self._table.schema

    def _batches(self) -> Iterator[pa.RecordBatch]:
        assert self._table is not None
        yield from self._table.to_batches(_ROWS)

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns; a column without a name gets its number."""
        return headers.named(self._schema.names)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.columns)}

    def blocks(self, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        """Yield all rows; a missing number becomes NaN."""
        texts = [(self._places[name], name) for name, kind in types.items() if kind == TEXT]
        self._refuse_nested(texts)
        start = 0
        for block in self._batches():
            for i, name in texts:
                if pa.types.is_floating(block[i].type):
                    self._refuse_fractions(name, block[i], start)
            try:
                columns = [_cast(block[self._places[name]], kind) for name, kind in types.items()]
            except pa.ArrowException as error:
                raise BadRowsError(str(error)) from error
            yield pa.record_batch(columns, names=list(types))
            start += len(block)

    def read(self, names: Sequence[str], texts: Collection[str]) -> pa.Table:
        """Return the columns in the types that they have."""
        types = {name: TEXT if name in texts else self._schema.field(self._places[name]).type for name in names}
        parts = [block.columns for block in self.blocks(types)]
        columns = [pa.chunked_array([part[i] for part in parts], kind) for i, kind in enumerate(types.values())]
        return pa.table(columns, names=list(types))

    def without(self, rows: Collection[int]) -> ArrowTable:
        """Return the table, in memory, without some rows."""
        whole = pa.Table.from_batches(self._batches(), self._schema)
        numbers = self._numbers if self._numbers is not None else np.arange(1, len(whole) + 1)
        kept = np.ones(len(whole), bool)
        kept[list(rows)] = False
        return ArrowTable(self.path, whole.filter(pa.array(kept)), numbers[kept])

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells as texts, with rows counted from 1; invalid UTF-8 becomes lone surrogates."""
        number = 0
        for block in self._batches():
            for cells in zip(*map(_values, block.columns), strict=True):
                number += 1
                shown = number if self._numbers is None else int(self._numbers[number - 1])
                yield shown, [_text(cell) for cell in cells]

    def _refuse_nested(self, texts: Sequence[tuple[int, str]]) -> None:
        for i, name in texts:
            held = self._schema.field(i).type
            if pa.types.is_nested(held):
                several = name.startswith("label") and "list" in str(held)
                hint = "; join several labels by | in a column 'labels'" if several else ""
                raise TableError(
                    f"{self.path}, column {name!r}: texts or whole numbers are needed, it holds {held}{hint}"
                )

    def _refuse_fractions(self, name: str, column: pa.Array, start: int) -> None:
        """Raise if a column of ids or labels holds fractions; whole floats are how pandas stores integers with gaps."""
        numbers = column.to_numpy(zero_copy_only=False).astype(np.float64)
        wrong = np.flatnonzero(np.isfinite(numbers) & ((numbers != np.trunc(numbers)) | (np.abs(numbers) >= 2**63)))
        if len(wrong):
            raise TableError(
                f"{self.path}, row {start + wrong[0] + 1}, column {name!r}: texts or whole numbers are needed, "
                f"got {numbers[wrong[0]]}; store the column as texts"
            )


class ParquetTable(ArrowTable):
    """A Parquet file, read in blocks."""

    @cached_property
    def _schema(self) -> pa.Schema:
        with self._open() as file:
            return file.schema_arrow

    @contextmanager
    def _open(self) -> Iterator[pq.ParquetFile]:
        """Open the file; errors of PyArrow while it is read mean that it is damaged."""
        with open_file(Path(self.path)) as file:  # PyArrow opens no path with characters that the locale does not have
            try:
                yield pq.ParquetFile(file)
            except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
                raise TableError(f"{self.path}: is not a whole Parquet file ({error}); write it again") from error

    def _batches(self) -> Iterator[pa.RecordBatch]:
        with self._open() as file:
            for block in file.iter_batches(_ROWS):
                for column in block.columns:
                    if pa.types.is_dictionary(column.type):
                        column.dictionary_decode()  # raises if an index is out of range
                yield block


class JsonLinesTable(ArrowTable):
    """A file with a JSON object per line; keys that a line lacks are missing values."""

    @cached_property
    def _whole(self) -> pa.Table:
        with open_file(Path(self.path)) as file:
            try:
                table = pa.json.read_json(file, pa.json.ReadOptions(block_size=_JSON_BLOCK))
                table.schema.names  # noqa: B018  raises if a name is not UTF-8
                return table
            except (pa.ArrowException, UnicodeDecodeError) as error:
                reason = " ".join(str(error).split())
                raise TableError(f"{self.path}: is not a file of one JSON object per line ({reason})") from error

    @property
    def _schema(self) -> pa.Schema:
        return self._whole.schema

    def _batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._whole.to_batches(_ROWS)


def in_memory(what: str, data: Any) -> ArrowTable:
    """Return a table of pandas, Polars or Arrow, or a dictionary of columns; `what` is its name in messages."""
    try:
        table = pa.table(data)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise TableError(f"{what}: a pandas, Polars or Arrow table is needed ({error})") from error
    found = ArrowTable(what, table)
    headers.check(found)
    return found


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_floating(kind):
        return column.cast(kind, safe=False).fill_null(np.nan)  # not safe, so that integers may be rounded
    if kind == TEXT:
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_finite(column), column, None).cast(pa.int64())
        column = column.cast(TEXT).fill_null("")
    elif pa.types.is_integer(kind) and (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        column = whole_numbers(column)
    elif column.type != kind:
        column = column.cast(kind)
    column.validate(full=True)  # raises if texts are not UTF-8
    return column


def _values(column: pa.Array) -> list[object]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    texts = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return (column.cast(pa.large_binary()) if texts else column).to_pylist()


def _text(cell: object) -> str:
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, bytes):
        return cell.decode(errors="surrogateescape")
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
