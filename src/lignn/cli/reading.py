"""Reading of the graph that a command names: a progress bar meanwhile, and how its tables were understood."""

from __future__ import annotations

from os.path import isfile
from typing import TYPE_CHECKING

import typer

from lignn.cli import progress

if TYPE_CHECKING:
    from lignn.cli.options import NamedGraph
    from lignn.datasets.sources import Source
    from lignn.graph import Graph, Split
    from lignn.store import StoredGraph


def read(source: Source, quiet: bool) -> Graph:
    """Return the graph; show how much of its files has been read unless `quiet`."""
    if not source.is_path:
        return source.read()
    with progress.of_reading([path for path in source.files() if isfile(path)], quiet):
        return source.read()


def split_of(graph: Graph, quiet: bool) -> Split | None:
    """Return the graph's own split; of several the first with validation labels, which is said unless `quiet`."""
    from lignn.graph import splits

    if len(graph.splits) > 1 and not quiet:
        typer.echo(
            f"{graph.name} has {len(graph.splits)} splits: the first one with validation labels is used", err=True
        )
    return splits.own(graph)


def tell(graph: Graph, quiet: bool) -> None:
    """Print how the columns of the tables were understood, on the standard error."""
    if graph.reading is not None and not quiet:
        typer.echo(str(graph.reading), err=True)


def opened(named: NamedGraph) -> StoredGraph | None:
    """Return the store that a command names; None if it is a graph of another kind."""
    from lignn.errors import InputError
    from lignn.store import StoredGraph, is_store

    if not is_store(named.graph):
        return None
    if given := named.arguments()[1:]:
        raise InputError(f"{given[0]}: {named.graph} is a store, whose tables were read by lignn store build")
    return StoredGraph(named.graph)
