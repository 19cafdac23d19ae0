"""One table as a CSV or Parquet file: its columns, its rows in typed blocks, and its cells one by one."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from io import TextIOWrapper
from os.path import lexists
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from lignn.errors import TableError
from lignn.graph import headers
from lignn.graph.files import open_file

TEXT = pa.large_string()
_BLOCK = 2**25
"""Bytes of CSV parsed at a time. Large, since each block of edges builds an index of all node ids."""
_ROWS = 2**20
"""Rows of Parquet read at a time."""


class BadRowsError(Exception):
    """A row that cannot be used; `faults.report` then reads the table again to say which one."""


class Table(Protocol):
    """A file of rows with named columns."""

    path: Path
    unit: str
    """What row numbers count: lines or rows."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""

    def blocks(self, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        """Yield all rows in blocks, with columns of the given types; raise `BadRowsError` if a cell does not fit.

        A block has its columns in the order of `columns`. Take them by position: PyArrow is slow in finding a name.
        """

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of each row (in `unit`) and its cells as texts, including cells that are wrong."""


def find(folder: Path, stem: str) -> Table:
    """Return the table `stem`.csv or `stem`.parquet in `folder`; raise if its header is invalid."""
    paths = [path for ending in ("csv", "parquet") if lexists(path := folder / f"{stem}.{ending}")]
    if not paths:
        raise TableError(f"{folder}: there is no {stem}.csv and no {stem}.parquet")
    if len(paths) > 1:
        raise TableError(f"{folder}: both {paths[0].name} and {paths[1].name} exist; keep one of them")
    table = open_table(paths[0])
    headers.check(table)
    return table


def open_table(path: Path) -> Table:
    """Return the table in a `.csv` or `.parquet` file."""
    return CsvTable(path) if path.suffix == ".csv" else ParquetTable(path)


class CsvTable:
    """A file of comma-separated UTF-8 text with a header; quotes, CRLF, a byte-order mark and blank lines may occur."""

    unit = "line"

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns, without surrounding spaces."""
        return self._header[0]

    @cached_property
    def _header(self) -> tuple[list[str], int]:
        """The names in the header, and the position in the file where the header ends."""
        with open_file(self.path) as file:
            first = file.readline(4096)
            if 3 * first.count(0) >= len(first) > 0:
                raise TableError(f"{self.path}, line 1: looks like UTF-16 text; save the file as UTF-8")
            file.seek(0)
            reader = csv.reader(line.decode("utf-8-sig") for line in iter(file.readline, b""))
            try:
                names = next((row for row in reader if row), None)
            except UnicodeDecodeError as error:
                raise TableError(
                    f"{self.path}, line {reader.line_num + 1}: is not UTF-8 text; save the file as UTF-8"
                ) from error
            except csv.Error as error:
                wrong = f"a name has over {csv.field_size_limit()} characters; shorten it, or close an open quote"
                if "new-line" in str(error):
                    wrong = "lines end in CR alone; save the file with LF or CRLF line ends"
                raise TableError(f"{self.path}, line {reader.line_num}: {wrong}") from error
            if names is None:
                raise TableError(f"{self.path}: is empty; the first line must name the columns")
            return [name.strip() for name in names], file.tell()

    def blocks(self, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        """Yield all rows below the header; texts such as NA or null are not treated as missing values."""
        start = self._header[1]
        with open_file(self.path) as file:
            if file.seek(0, 2) == start:
                return
            file.seek(start)
            try:
                yield from pa.csv.open_csv(
                    file,
                    pa.csv.ReadOptions(column_names=self.columns, block_size=_BLOCK),
                    pa.csv.ParseOptions(newlines_in_values=True),
                    pa.csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
                )
            except pa.ArrowException as error:
                raise BadRowsError(str(error)) from error

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells, read by Python's own reader, which counts lines; invalid UTF-8 becomes lone surrogates."""
        limit = csv.field_size_limit(2**31 - 1)
        try:
            with open_file(self.path) as file:
                reader = csv.reader(TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline=""))
                header, last = True, 0
                for cells in reader:
                    if cells and not header:
                        yield last + 1, cells
                    header, last = header and not cells, reader.line_num
        finally:
            csv.field_size_limit(limit)


class ParquetTable:
    """A Parquet file; ids and labels are texts, categories or whole numbers, and a null is an empty cell."""

    unit = "row"

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns."""
        with self._open() as file:
            return list(file.schema_arrow.names)

    @contextmanager
    def _open(self) -> Iterator[pq.ParquetFile]:
        """Open the file; errors of PyArrow while it is read mean that it is damaged."""
        with open_file(self.path) as file:  # PyArrow opens no path with characters that the locale does not have
            try:
                yield pq.ParquetFile(file)
            except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
                raise TableError(f"{self.path}: is not a whole Parquet file ({error}); write it again") from error

    def blocks(self, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        """Yield all rows; a missing number becomes NaN."""
        with self._open() as file:
            text_columns = [(i, name) for i, name in enumerate(self.columns) if types[name] == TEXT]
            schema = file.schema_arrow
            for i, name in text_columns:
                held = schema.field(i).type
                if pa.types.is_nested(held):
                    several = name.startswith("label") and "list" in str(held)
                    hint = "; join several labels by | in a column 'labels'" if several else ""
                    raise TableError(
                        f"{self.path}, column {name!r}: texts or whole numbers are needed, it holds {held}{hint}"
                    )
            start = 0
            for block in file.iter_batches(_ROWS):
                for i, name in text_columns:
                    if pa.types.is_floating(block[i].type):
                        self._refuse_fractions(name, block[i], start)
                try:
                    columns = [
                        _cast(column, types[name]) for name, column in zip(self.columns, block.columns, strict=True)
                    ]
                except pa.ArrowException as error:
                    raise BadRowsError(str(error)) from error
                yield pa.record_batch(columns, names=self.columns)
                start += len(block)

    def _refuse_fractions(self, name: str, column: pa.Array, start: int) -> None:
        """Raise if a column of ids or labels holds fractions; whole floats are how pandas stores integers with gaps."""
        numbers = column.to_numpy(zero_copy_only=False).astype(np.float64)
        wrong = np.flatnonzero(np.isfinite(numbers) & ((numbers != np.trunc(numbers)) | (np.abs(numbers) >= 2**63)))
        if len(wrong):
            raise TableError(
                f"{self.path}, row {start + wrong[0] + 1}, column {name!r}: texts or whole numbers are needed, "
                f"got {numbers[wrong[0]]}; store the column as texts"
            )

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells as texts, with rows counted from 1; invalid UTF-8 becomes lone surrogates."""
        number = 0
        with self._open() as file:
            for block in file.iter_batches(_ROWS):
                for cells in zip(*map(_values, block.columns), strict=True):
                    number += 1
                    yield number, [_text(cell) for cell in cells]


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column.validate(full=True)  # raises if an index is out of range
    if kind != TEXT:
        return column.cast(kind, safe=False).fill_null(np.nan)  # not safe, so that integers may be rounded
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_finite(column), column, None).cast(pa.int64())
    texts = column.cast(TEXT).fill_null("")
    texts.validate(full=True)  # raises if they are not UTF-8
    return texts


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
