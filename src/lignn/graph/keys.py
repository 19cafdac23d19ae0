"""Finding the column of the nodes that has the ids of the edges."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from lignn.graph.metadata import Metadata
from lignn.graph.table_file import TEXT, BadRowsError, Table

_ROWS = 10_000
"""Edges that are looked at."""
_MOST = 0.5
"""Share of ids from which on a column names nodes; the others are faults, or nodes that have no row."""


def matching(nodes: Table, candidates: Sequence[str], edges: Table, ends: Sequence[str]) -> list[str]:
    """Return those columns of the nodes whose values are different and include the ends of the first edges.

    Args:
        nodes: the table of the nodes.
        candidates: the columns to look at.
        edges: the table of the edges.
        ends: the columns of the edges that name nodes.
    """
    metadata = Metadata()
    try:
        blocks = islice(edges.blocks(dict.fromkeys(ends, TEXT)), 1)
        wanted = [metadata.normalised(column[:_ROWS]) for block in blocks for column in block.columns]
        values = pc.unique(pa.chunked_array(wanted, TEXT))
        kinds = nodes.read(candidates, ()).schema.types if candidates else []
        plain = [name for name, kind in zip(candidates, kinds, strict=True) if _may_be_id(kind)]
        columns = nodes.read(plain, plain).columns if plain else []
    except BadRowsError:
        return []  # reading the tables as a whole says what is wrong
    found = []
    for name, column in zip(plain, columns, strict=True):
        ids = metadata.normalised(column.combine_chunks())
        if len(pc.unique(ids)) == len(ids) and pc.all(pc.is_in(values, ids)).as_py() is not False:
            found.append(name)
    return found


def likely(nodes: Table, candidates: Sequence[str], edges: Table, ends: Sequence[str]) -> list[str]:
    """Return the columns of the nodes that have the most ends of the first edges, if these are most of the ends."""
    try:
        values = _first(edges, ends)
        shares = {name: _share(values, _whole(nodes, name)) for name in candidates}
    except BadRowsError:
        return []
    best = max(shares.values(), default=0.0)
    return [name for name, share in shares.items() if share == best > _MOST]


def ends(nodes: Table, key: str, edges: Table, candidates: Sequence[str]) -> list[str]:
    """Return those columns of the edges most of whose values are ids of nodes, in the column `key`."""
    try:
        ids = _whole(nodes, key)
        return [name for name in candidates if _share(_first(edges, [name]), ids) > _MOST]
    except BadRowsError:
        return []


def _first(table: Table, columns: Sequence[str]) -> pa.Array:
    """Return the different values in the first rows of columns, as texts."""
    blocks = islice(table.blocks(dict.fromkeys(columns, TEXT)), 1)
    found = [Metadata().normalised(column[:_ROWS]) for block in blocks for column in block.columns]
    values = pc.unique(pa.chunked_array(found, TEXT))
    return values.filter(pc.not_equal(values, ""))


def _whole(table: Table, column: str) -> pa.ChunkedArray:
    return Metadata().normalised(table.read([column], [column]).column(0))


def _share(values: pa.Array, among: pa.ChunkedArray) -> float:
    return pc.mean(pc.is_in(values, among).cast(pa.float64())).as_py() or 0.0


def _may_be_id(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))
