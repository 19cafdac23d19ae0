"""One table of nodes or edges as a file: its columns, its rows in typed blocks, its cells with their places."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from os.path import lexists
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from lignn.errors import TableError

TEXT = pa.large_string()
_BLOCK = 2**25
"""Bytes of CSV parsed at a time: large, as every block of edges is looked up in a fresh index of all node ids."""
_ROWS = 2**20
"""Rows of Parquet read at a time."""


class BadRowsError(Exception):
    """Some row cannot be used; the table is then gone through again, cell by cell, to say which."""


class Table(Protocol):
    """A file of rows."""

    path: Path
    unit: str
    """What the file counts its rows in."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""

    def blocks(self, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        """All rows with the given types of columns, a bounded number at a time; `BadRowsError` if a cell is wrong."""

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Each row's number (in `unit`) and its cells as texts, however wrong."""


def find(folder: Path, stem: str) -> Table:
    """The table `stem`.csv or `stem`.parquet in `folder`, its header checked."""
    paths = [path for ending in ("csv", "parquet") if lexists(path := folder / f"{stem}.{ending}")]
    if not paths:
        raise TableError(f"{folder}: there is no {stem}.csv and no {stem}.parquet")
    if len(paths) > 1:
        raise TableError(f"{folder}: both {paths[0].name} and {paths[1].name} are there; keep one of them")
    path = paths[0]
    if path.is_dir():
        raise TableError(f"{path}: is a folder, a file is wanted")
    table: Table = CsvTable(path) if path.suffix == ".csv" else ParquetTable(path)
    for number, name in enumerate(table.columns, 1):
        if not name:
            raise TableError(f"{path}, column {number}: has no name in the header; name or remove it")
        if name.endswith("\0"):
            raise TableError(f"{path}, column {number}: its name ends in a NUL character; rename it")
        if table.columns.index(name) < number - 1:
            raise TableError(f"{path}, column {number}: a second column is named {name!r}; rename or remove one")
    return table


class CsvTable:
    """Comma-separated UTF-8 text with a header; quotes, CRLF, a byte-order mark and blank lines are understood."""

    unit = "line"

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def columns(self) -> list[str]:
        """Names in the header, without surrounding spaces."""
        return self._header[0]

    @cached_property
    def _header(self) -> tuple[list[str], int]:
        """The names in the header, and where in the file it ends."""
        with _readable(self.path), self.path.open("rb") as file:
            reader = csv.reader(line.decode("utf-8-sig") for line in iter(file.readline, b""))
            try:
                names = next((row for row in reader if row), None)
            except UnicodeDecodeError as error:
                raise TableError(
                    f"{self.path}, line {reader.line_num + 1}: is not UTF-8 text; save it as such"
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
        """All rows below the header; no text, such as NA or null, stands for a missing value."""
        start = self._header[1]
        with _readable(self.path), self.path.open("rb") as file:
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
        """Cells by Python's own reader, which knows lines; bytes that are not UTF-8 become lone surrogates."""
        limit = csv.field_size_limit(2**31 - 1)
        try:
            with self.path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
                reader = csv.reader(file)
                header, last = True, 0
                for cells in reader:
                    if cells and not header:
                        yield last + 1, cells
                    header, last = header and not cells, reader.line_num
        finally:
            csv.field_size_limit(limit)


class ParquetTable:
    """A Parquet file; texts, categories and whole numbers serve as ids and labels, a null is an empty cell."""

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
        with _readable(self.path):
            try:
                file = pq.ParquetFile(self.path)
            except pa.ArrowException as error:
                raise TableError(f"{self.path}: is not a whole Parquet file ({error}); write it again") from error
            with file:
                yield file

    def blocks(self, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        """All rows; an empty number becomes NaN."""
        with self._open() as file:
            for name, kind in types.items():
                held = file.schema_arrow.field(name).type
                if kind == TEXT and pa.types.is_nested(held):
                    several = name.startswith("label") and "list" in str(held)
                    hint = "; join several labels by | in a column 'labels'" if several else ""
                    raise TableError(
                        f"{self.path}, column {name!r}: texts or whole numbers are needed, it holds {held}{hint}"
                    )
            start = 0
            try:
                for block in file.iter_batches(_ROWS):
                    for name, kind in types.items():
                        if kind == TEXT and pa.types.is_floating(block[name].type):
                            self._refuse_fractions(name, block[name], start)
                    columns = [_cast(block[name], types[name]) for name in self.columns]
                    yield pa.record_batch(columns, names=self.columns)
                    start += len(block)
            except (pa.ArrowException, OSError) as error:
                raise BadRowsError(str(error)) from error

    def _refuse_fractions(self, name: str, column: pa.Array, start: int) -> None:
        """Floats are pandas' form of integers with gaps, and nothing else."""
        numbers = column.to_numpy(zero_copy_only=False).astype(np.float64)
        wrong = np.flatnonzero(np.isfinite(numbers) & ((numbers != np.trunc(numbers)) | (np.abs(numbers) >= 2**63)))
        if len(wrong):
            raise TableError(
                f"{self.path}, row {start + wrong[0] + 1}, column {name!r}: texts or whole numbers are needed, "
                f"got {numbers[wrong[0]]}; store the column as texts"
            )

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Cells in the words of Python; rows count from 1; bytes that are not UTF-8 become lone surrogates."""
        number = 0
        with self._open() as file:
            for block in file.iter_batches(_ROWS):
                for cells in zip(*map(_values, block.columns), strict=True):
                    number += 1
                    yield number, [_as_text(cell) for cell in cells]


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if kind != TEXT:
        return column.cast(kind, safe=False).fill_null(np.nan)  # unsafe only in that integers are rounded
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_finite(column), column, None).cast(pa.int64())
    texts = column.cast(TEXT).fill_null("")
    texts.validate(full=True)  # that they are UTF-8
    return texts


def _values(column: pa.Array) -> list[object]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    texts = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return (column.cast(pa.large_binary()) if texts else column).to_pylist()


def _as_text(cell: object) -> str:
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, bytes):
        return cell.decode(errors="surrogateescape")
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TableError(f"{path}: cannot be read: {error.strerror or error}") from error
