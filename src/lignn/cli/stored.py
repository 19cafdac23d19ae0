"""Stores as commands name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lignn.cli.options import NamedGraph
    from lignn.store import StoredGraph


def opened(named: NamedGraph) -> StoredGraph | None:
    """Return the store that a command names; None if it is a graph of another kind."""
    from lignn.errors import InputError
    from lignn.store import StoredGraph, is_store

    if not is_store(named.graph):
        return None
    if given := named.arguments()[1:]:
        raise InputError(f"{given[0]}: {named.graph} is a store, whose tables were read by lignn store build")
    return StoredGraph(named.graph)
