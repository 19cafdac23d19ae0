"""Graphs as a command line names them: a dataset, tables, or an `.npz` file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lignn import datasets
from lignn.datasets import catalogue
from lignn.errors import DatasetError, InputError
from lignn.graph import Graph
from lignn.graph.reading import BOTH, GIVEN, Reading
from lignn.store import is_store


@dataclass(frozen=True)
class Source:
    """Name of a graph, which can be sent to worker processes in its place.

    Attributes:
        name: a dataset, a path that `Graph.read` takes; a folder with the name of a dataset is written `./name`.
        undirected: add the reverse of every edge.
        missing: labels in tables that mean unknown; None: the usual ones, see `Graph.read`.
        edges: path of the table of the edges, if `name` is that of the nodes.
        columns: pairs of a role, or a kind, and its column.
        ignore: columns to leave out.
        raw: take features as they are, see `Graph.read`.
        like: the reading of another graph, whose roles and rules are the default.
        links: columns whose values join the rows of one table, and `nearest`, see `Graph.read`.
        order: the column in whose order rows of a value follow each other.
        directed: follow edges as they are given, so that a race does not choose.
        skip_bad: leave out rows with faults, see `Graph.read`.
        strict: mend nothing, see `Graph.read`.
    """

    name: str
    undirected: bool = False
    missing: tuple[str, ...] | None = None
    edges: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    ignore: tuple[str, ...] = ()
    raw: bool = False
    like: Reading | None = None
    links: tuple[str, ...] = ()
    order: str | None = None
    directed: bool = False
    skip_bad: bool = False
    strict: bool = False

    @property
    def is_path(self) -> bool:
        """Whether `name` is a path, not a dataset."""
        if self.edges is not None:
            return True
        try:
            catalogue.find(self.name)
        except DatasetError as unknown:
            separators = [sign for sign in (os.sep, os.altsep) if sign and sign in self.name]
            if separators or self.name.endswith(".npz") or os.path.lexists(self.name):
                return True
            raise DatasetError(f"{self.name}: there is no such folder or file; {unknown}") from unknown
        if any(Path(self.name).glob("edges.*")):
            raise InputError(f"{self.name}: is a dataset and a folder here; write ./{self.name} for the folder")
        return False

    @property
    def by_role(self) -> dict[str, str | list[str]]:
        """The column of each role; those of a kind or role that is named more than once as a list."""
        found: dict[str, list[str]] = {}
        for role, name in self.columns:
            found.setdefault(role, []).append(name)
        return {role: names[0] if len(names) == 1 else names for role, names in found.items()}

    def read(self) -> Graph:
        """Return the graph; the last graph is cached as long as its files do not change."""
        return _read(self, tuple((str(file), _time(file)) for file in self.files()))

    def files(self) -> list[Path]:
        """Return the files that may be read, and their folder."""
        path = Path(os.path.realpath(self.name))
        try:
            files = [path, *path.iterdir()] if os.path.isdir(path) else [path]
        except OSError as error:
            raise DatasetError(f"{self.name}: cannot be read: {error.strerror}") from error
        return files if self.edges is None else [*files, Path(os.path.realpath(self.edges))]


@lru_cache(maxsize=1)
def _read(source: Source, _files: tuple[tuple[str, int], ...]) -> Graph:
    if source.is_path:
        if is_store(source.name):
            raise InputError(
                f"{source.name}: is a store, which lignn fit and inspect take; this needs the graph in memory: give "
                "the tables that the store was built from"
            )
        graph = Graph.read(
            source.name,
            source.edges,
            missing=source.missing,
            columns=source.by_role or None,
            ignore=source.ignore,
            features="raw" if source.raw else "auto",
            like=source.like,
            links=source.links,
            order=source.order,
            skip_bad=source.skip_bad,
            strict=source.strict,
        )
    else:
        options: dict[str, object] = {
            "--missing": source.missing,
            "--column": source.columns or None,
            "--ignore": source.ignore or None,
        }
        options |= {"--link": source.links or None, "--order": source.order}
        options |= {"--skip-bad": source.skip_bad or None, "--strict": source.strict or None}
        if given := [option for option, value in options.items() if value is not None]:
            raise InputError(f"{given[0]}: is for tables; the unknown labels of the dataset {source.name} are known")
        graph = datasets.load(source.name)
    if source.directed and source.undirected:
        raise InputError("--directed: is the opposite of --undirected; give one of them")
    graph = graph.to_undirected() if source.undirected else graph
    if graph.reading is None or not (source.directed or source.undirected):
        return graph
    return graph.replace(reading=graph.reading.following(BOTH if source.undirected else GIVEN))


def _time(file: Path) -> int:
    """Return the time of a file's last change; 0 if the file cannot be stat'ed: reading it will raise."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0
