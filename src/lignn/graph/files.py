"""Where a graph is kept: a folder of tables, or one `.npz` file."""

from __future__ import annotations

from os import PathLike
from os.path import isdir
from pathlib import Path

from lignn.errors import TableError
from lignn.graph import archive
from lignn.graph.graph import Graph


def read(path: str | PathLike[str]) -> Graph:
    """The graph in a folder of tables or in an `.npz` file, named after it."""
    path = Path(path)
    if isdir(path):
        from lignn.graph import tables  # here, as pyarrow is slow to import and an archive does not need it

        return tables.read(path)
    if path.suffix == ".npz":
        return archive.read(path)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TableError(f"{path}: there is no such folder or file") from error
    except OSError as error:
        raise TableError(f"{path}: cannot be read: {error.strerror}") from error
    raise TableError(f"{path}: not a graph; give a folder with nodes.csv and edges.csv, or an .npz file")


def write(graph: Graph, path: str | PathLike[str]) -> None:
    """Write `graph` to one file if `path` ends in `.npz`, else to a folder of tables; whole or not at all."""
    path = Path(path)
    if path.suffix == ".npz":
        archive.write(graph, path)
    else:
        from lignn.graph import table_writer

        table_writer.write(graph, path)
