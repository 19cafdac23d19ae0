"""Tables as text: comma-, semicolon- or tab-separated files, packed by gzip or not, and tables of SQLite files."""

from __future__ import annotations

import csv
import gzip
import io
import sqlite3
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, AnyStr

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from lignn.errors import TableError
from lignn.graph import headers, sniff
from lignn.graph.files import open_file
from lignn.graph.table_file import TEXT, BadRowsError, whole_numbers
from lignn.graph.tables import cells, kinds

_BLOCK = 2**25
"""Bytes parsed at a time. Large, since each block of edges builds an index of all node ids."""


class TextTable:
    """A file of UTF-8 text with a header; quotes, CRLF, a byte-order mark and blank lines may occur."""

    unit: str = "line"
    typed = False
    path: Path | str

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        """Open the text, unpacked."""
        path = Path(self.path)
        with open_file(path) as file:
            if path.suffix.lower() != ".gz":
                yield file
                return
            try:
                with gzip.open(file) as unpacked:
                    yield unpacked  # type: ignore[misc]
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise TableError(f"{path}: is not a whole gzip file ({error}); pack it again") from error

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns, without surrounding spaces; a column without a name gets its number."""
        return headers.named(self._header[0])

    @cached_property
    def delimiter(self) -> str:
        """What separates cells."""
        with self._open() as file:
            return sniff.delimiter(file.read(sniff.SAMPLE).decode("utf-8-sig", "replace"))

    @cached_property
    def _header(self) -> tuple[list[str], int]:
        """The names in the header, and the position in the file where the header ends."""
        with self._open() as file:
            first = file.readline(4096)
            if 3 * first.count(0) >= len(first) > 0:
                raise TableError(f"{self.path}, line 1: looks like UTF-16 text; save the file as UTF-8")
            delimiter = self.delimiter
            file.seek(0)
            lines = (self._whole(line).decode("utf-8-sig") for line in iter(lambda: file.readline(_BLOCK), b""))
            reader = csv.reader(lines, delimiter=delimiter)
            try:
                header = next((row for row in reader if row), None)
            except UnicodeDecodeError as error:
                raise TableError(
                    f"{self.path}, line {reader.line_num + 1}: is not UTF-8 text; save the file as UTF-8"
                ) from error
            except csv.Error as error:
                wrong = f"a name has over {csv.field_size_limit()} characters; shorten it, or close an open quote"
                if "new-line" in str(error):
                    wrong = "lines end in CR alone; save the file with LF or CRLF line ends"
                raise TableError(f"{self.path}, line {reader.line_num}: {wrong}") from error
            if header is None:
                raise TableError(f"{self.path}: is empty; the first line must name the columns")
            return header, file.tell()

    def _whole(self, line: AnyStr) -> AnyStr:
        """Return a line that was read up to the size of a block; raise if it does not end there."""
        if len(line) >= _BLOCK:
            raise TableError(f"{self.path}: has a line of over {_BLOCK // 2**20} MiB, which is no row of a table")
        return line

    @contextmanager
    def _rows_below_the_header(self) -> Iterator[tuple[IO[bytes] | None, pa.csv.ReadOptions, pa.csv.ParseOptions]]:
        """Open the rows for PyArrow, None if there are none; its errors mean that a row is wrong."""
        start = self._header[1]
        parse = pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        with self._open() as file:
            file.seek(start)
            there = bool(file.read(1))
            file.seek(start)
            try:
                yield file if there else None, pa.csv.ReadOptions(column_names=self.columns, block_size=_BLOCK), parse
            except pa.ArrowException as error:
                raise BadRowsError(str(error)) from error

    def blocks(self, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in blocks; numbers are read as people write them, if one reading fits all of a column."""
        forms: dict[str, str] = {}
        with self._rows_below_the_header() as (file, read, parse):
            if file is not None:
                for block in pa.csv.open_csv(file, read, parse, _as_they_stand(types)):
                    columns = zip(types.items(), block.columns, strict=True)
                    values = [self._of_type(name, kind, texts, forms) for (name, kind), texts in columns]
                    yield pa.record_batch(values, names=list(types))

    def _of_type(self, name: str, kind: pa.DataType, texts: pa.Array, forms: dict[str, str]) -> pa.Array:
        """Return a block of a column in its type; `forms` has the readings of columns that are no plain numbers."""
        if kind == TEXT:
            return texts
        if pa.types.is_integer(kind):
            return whole_numbers(texts)
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid:
            pass
        if name not in forms:
            forms[name] = kinds.number(self, name)
        found = cells.readings(pc.utf8_trim_whitespace(texts), forms[name], least=1)
        if not found:
            raise BadRowsError("a cell is not a number")
        return found[0].values.cast(kind)

    def read(self, names: Sequence[str], texts: Collection[str]) -> pa.Table:
        """Return the columns, all as texts."""
        types = dict.fromkeys([*names, *texts], TEXT)
        with self._rows_below_the_header() as (file, read, parse):
            if file is not None and names:
                return pa.csv.read_csv(file, read, parse, _as_they_stand(types))
        return pa.table({name: pa.array([], TEXT) for name in types})

    def without(self, rows: Collection[int]) -> WrittenTable:
        """Return the table, in memory, without some rows."""
        out = set(rows)
        kept = [row for place, row in enumerate(self.rows()) if place not in out]
        return WrittenTable(self.path, self.unit, self.columns, [cells for _, cells in kept], [n for n, _ in kept])

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells, read by Python's own reader, which counts lines; invalid UTF-8 becomes lone surrogates."""
        limit = csv.field_size_limit(2**31 - 1)
        try:
            with self._open() as file:
                lines = TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
                whole = (self._whole(line) for line in iter(lambda: lines.readline(_BLOCK), ""))
                reader = csv.reader(whole, delimiter=self.delimiter)
                header, last = True, 0
                for cells in reader:
                    if cells and not header:
                        yield last + 1, cells
                    header, last = header and not cells, reader.line_num
        finally:
            csv.field_size_limit(limit)


class WrittenTable(TextTable):
    """Rows that are written as text before they are read.

    Args:
        path: what messages call the table.
        unit: what row numbers count.
        header: names of the columns.
        rows: the cells; None is empty.
        numbers: the number of each row; by default counted from 1.
    """

    delimiter = ","

    def __init__(
        self, path: Path | str, unit: str, header: Sequence[str], rows: Iterable[Any], numbers: Sequence[int] = ()
    ) -> None:
        self.path, self.unit, self._numbers = path, unit, numbers
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
        writer.writerow(header)
        writer.writerows(rows)
        self._text = text.getvalue().encode(errors="surrogateescape")

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        yield io.BytesIO(self._text)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells with the numbers of their rows."""
        for place, (_, row) in enumerate(super().rows()):
            yield self._numbers[place] if self._numbers else place + 1, row


def of_sqlite(path: Path, table: str) -> WrittenTable:
    """Return a table or view of an SQLite file. Its cells have no fixed types, so they are read as text."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            return WrittenTable(f"{path}, table {table}", "row", [name for name, *_ in cursor.description], cursor)
    except sqlite3.Error as error:
        hint = "a graph needs the tables nodes and edges" if "no such table" in str(error) else "write it again"
        raise TableError(f"{path}: cannot be read as an SQLite file ({error}); {hint}") from error


def _as_they_stand(names: Collection[str]) -> pa.csv.ConvertOptions:
    """Return options to read columns as texts; those such as NA or null are not treated as missing values."""
    types = dict.fromkeys(names, TEXT)
    return pa.csv.ConvertOptions(
        column_types=types, include_columns=list(names), null_values=[], strings_can_be_null=False
    )
