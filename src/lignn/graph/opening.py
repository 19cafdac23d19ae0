"""Reading of a graph from whatever a path names: tables in a folder, in files or in a database, or an `.npz` file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from os import PathLike
from os.path import isdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lignn.errors import ConfigError, TableError, unknown
from lignn.graph.graph import Graph
from lignn.graph.links import Links
from lignn.graph.reading import KINDS, READINGS, Reading

if TYPE_CHECKING:
    from lignn.graph.table_reader import Tables

FEATURES = ("auto", "raw")


@dataclass(frozen=True)
class Options:
    """How tables are read, see `Graph.read`."""

    missing: Collection[str] | None = None
    columns: Mapping[str, str | Collection[str]] | None = None
    ignore: Collection[str] = ()
    features: str = "auto"
    like: Reading | None = None
    links: Collection[str] | None = None
    order: str | None = None
    skip_bad: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        if self.features not in FEATURES:
            raise unknown("features", self.features, FEATURES)
        said = [kind for kind in (*KINDS, *READINGS) if kind in (self.columns or {})] if self.features == "raw" else []
        if said:
            raise ConfigError(f"features='raw' takes all columns as numbers; leave out --column {said[0]}=")


def read(path: str | PathLike[str], edges: str | PathLike[str] | None, options: Options) -> Graph:
    """Read a graph, see `Graph.read`."""
    path = Path(path)
    if edges is None and not isdir(path) and path.suffix == ".npz":
        for name, value in (
            ("missing", options.missing),
            ("columns", options.columns),
            ("ignore", options.ignore or None),
            ("links", options.links or None),
            ("order", options.order),
        ):
            if value is not None:
                raise TableError(f"{path}: {name} is for tables; in an .npz file, the label -1 means unknown")
        from lignn.graph import archive

        return archive.read(path)
    from lignn.graph import table_file, table_reader  # import pyarrow, which is slow and not needed for .npz files

    if edges is None and not isdir(path):
        _check_place(path)
        _refuse_half(path)
        one = path.name.lower().endswith(tuple(f".{ending}" for ending in table_file.ENDINGS))
        if not one and not table_file.is_sqlite(path):
            raise TableError(
                f"{path}: not a graph; give a folder with nodes.csv and edges.csv, the two files, one table, or an "
                ".npz file"
            )
    return _read(table_reader.Tables.at(path, None if edges is None else Path(edges)), options)


def from_tables(nodes: Any, edges: Any, name: str, options: Options) -> Graph:
    """Return a graph from tables in memory, see `Graph.from_tables`."""
    from lignn.graph import table_reader

    return _read(table_reader.Tables.in_memory(nodes, edges, name), options)


def _read(tables: Tables, options: Options) -> Graph:
    from lignn.graph import table_reader
    from lignn.graph.roles import Wanted

    rules = None if not options.links and options.order is None else Links.of(options.links or (), options.order)
    wanted = Wanted(options.columns or {}, options.ignore, options.like, rules, options.skip_bad, options.strict)
    return table_reader.read(tables, wanted, options.missing, options.features == "raw")


def _refuse_half(path: Path) -> None:
    """Raise for the nodes of a folder that has a table of the edges too: they are not one table."""
    if path.name.lower().startswith("nodes.") and (edges := sorted(path.parent.glob("edges.*"))):
        raise TableError(
            f"{path}: is the nodes of a graph whose edges are in {edges[0].name}; give both, or the folder"
        )


def _check_place(path: Path) -> None:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TableError(f"{path}: there is no such folder or file") from error
    except OSError as error:
        raise TableError(f"{path}: cannot be read: {error.strerror}") from error
