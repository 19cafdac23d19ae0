"""Reading of a graph from whatever a path names: tables in a folder, in files or in a database, or an `.npz` file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from os import PathLike
from os.path import isdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lignn.errors import TableError, unknown
from lignn.graph.graph import Graph

if TYPE_CHECKING:
    from lignn.graph.reading import Reading

FEATURES = ("auto", "raw")


def read(
    path: str | PathLike[str],
    edges: str | PathLike[str] | None = None,
    missing: Collection[str] | None = None,
    columns: Mapping[str, str] | None = None,
    ignore: Collection[str] = (),
    features: str = "auto",
    like: Reading | None = None,
) -> Graph:
    """Read a graph, see `Graph.read`."""
    path = Path(path)
    if features not in FEATURES:
        raise unknown("features", features, FEATURES)
    if edges is None and not isdir(path) and path.suffix == ".npz":
        for name, value in (("missing", missing), ("columns", columns), ("ignore", ignore or None)):
            if value is not None:
                raise TableError(f"{path}: {name} is for tables; in an .npz file, the label -1 means unknown")
        from lignn.graph import archive

        return archive.read(path)
    from lignn.graph import table_file, table_reader  # import pyarrow, which is slow and not needed for .npz files
    from lignn.graph.roles import Wanted

    if edges is None and not isdir(path):
        _check_place(path)
        if path.name.lower().endswith(tuple(f".{ending}" for ending in table_file.ENDINGS)):
            raise TableError(f"{path}: is one table; give the table of the edges as well, or a folder with both")
        if not table_file.is_sqlite(path):
            raise TableError(
                f"{path}: not a graph; give a folder with nodes.csv and edges.csv, the two files, or an .npz file"
            )
    tables = table_reader.Tables.at(path, None if edges is None else Path(edges))
    return table_reader.read(tables, Wanted(columns or {}, ignore, like), missing, features == "raw")


def from_tables(
    nodes: Any,
    edges: Any,
    name: str,
    missing: Collection[str] | None = None,
    columns: Mapping[str, str] | None = None,
    ignore: Collection[str] = (),
    features: str = "auto",
    like: Reading | None = None,
) -> Graph:
    """Return a graph from tables in memory, see `Graph.from_tables`."""
    from lignn.graph import table_reader
    from lignn.graph.roles import Wanted

    if features not in FEATURES:
        raise unknown("features", features, FEATURES)
    tables = table_reader.Tables.in_memory(nodes, edges, name)
    return table_reader.read(tables, Wanted(columns or {}, ignore, like), missing, features == "raw")


def _check_place(path: Path) -> None:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TableError(f"{path}: there is no such folder or file") from error
    except OSError as error:
        raise TableError(f"{path}: cannot be read: {error.strerror}") from error
