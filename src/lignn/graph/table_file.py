"""Tables of a graph: the interface of all formats, and which file has which format."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from os.path import lexists
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lignn.errors import TableError
from lignn.graph import headers
from lignn.graph.files import open_file

TEXT = pa.large_string()
TEXTS, JSON_LINES, PARQUET = ("csv", "tsv", "txt"), ("jsonl", "ndjson"), ("parquet",)
ENDINGS = (*TEXTS, *(f"{ending}.gz" for ending in TEXTS), *JSON_LINES, *PARQUET)
"""Endings of the files of tables, by format."""
_LIKE = {"nodes": ("nodes", "target"), "edges": ("edges",)}
"""Ends of the names of files, such as musae_FR_edges.csv, that are the tables if no file has just their name."""
_SQLITE = b"SQLite format 3\0"


class BadRowsError(Exception):
    """A row that cannot be used; `findings.scan` then reads the table again to say which one."""


class Table(Protocol):
    """Rows with named columns."""

    path: Path | str
    """What messages call the table."""
    unit: str
    """What row numbers count: lines or rows."""
    typed: bool
    """Whether the format has types; if not, a column of numbers may hold stray texts."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""

    def blocks(self, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        """Yield the columns in `types`, in that order, in blocks; raise `BadRowsError` if a cell does not fit.

        Take the columns of a block by position: PyArrow is slow in finding a name.
        """

    def read(self, names: Sequence[str], texts: Collection[str]) -> pa.Table:
        """Return the columns `names`: those in `texts` as `TEXT`, the others in the types that the format has.

        Without types all are `TEXT`, and an empty cell is an empty text.
        """

    def without(self, rows: Collection[int]) -> Table:
        """Return the table without some rows, counted from 0; the others keep their numbers in messages."""

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of each row (in `unit`) and its cells as texts, including cells that are wrong."""


def find(folder: Path, stem: str) -> Table:
    """Return the table `stem` in `folder`, in any format; raise if its header is invalid."""
    paths = [path for ending in ENDINGS if lexists(path := folder / f"{stem}.{ending}")]
    if not paths:
        endings = tuple(f"{word}.{ending}" for word in _LIKE[stem] for ending in ENDINGS)
        paths = sorted(path for path in folder.iterdir() if path.name.lower().endswith(endings))
    if not paths:
        raise TableError(f"{folder}: there is no {stem}.csv and no {stem}.parquet")
    if len(paths) > 1:
        raise TableError(f"{folder}: both {paths[0].name} and {paths[1].name} exist; keep one of them")
    return open_table(paths[0])


def open_table(path: Path) -> Table:
    """Return the table in a file, whose format is known by its ending; raise if its header is invalid."""
    from lignn.graph import arrow_tables, text_table  # which import this module

    name = path.name.lower()
    if name.endswith(tuple(f".{ending}" for ending in PARQUET)):
        table: Table = arrow_tables.ParquetTable(path)
    elif name.endswith(tuple(f".{ending}" for ending in JSON_LINES)):
        table = arrow_tables.JsonLinesTable(path)
    elif name.endswith(tuple(f".{ending}" for ending in ENDINGS)):
        table = text_table.TextTable(path)
    else:
        raise TableError(f"{path}: tables are files that end in .{', .'.join(ENDINGS)}; rename or convert it")
    headers.check(table)
    return table


def leading_zeros(texts: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return which whole numbers are written with leading zeros, or as 0x10."""
    digits = pc.utf8_ltrim(texts, characters="-") if pc.any(pc.starts_with(texts, "-0")).as_py() else texts
    return pc.and_(pc.starts_with(digits, "0"), pc.greater(pc.binary_length(digits), 1))


def whole_numbers(texts: pa.Array) -> pa.Array:
    """Return texts as whole numbers; raise `BadRowsError` for one that Python would write otherwise, such as 01."""
    if pc.any(leading_zeros(texts)).as_py():
        raise BadRowsError("a whole number has leading zeros")
    try:
        return texts.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise BadRowsError(str(error)) from error


def is_sqlite(path: Path) -> bool:
    """Return whether a file is an SQLite database, by its first bytes."""
    with open_file(path) as file:
        return file.read(len(_SQLITE)) == _SQLITE
