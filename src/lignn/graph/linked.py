"""Graphs of one table: its rows are joined by rules, and new rows join in the same way."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from lignn.errors import DataWarning, InputError
from lignn.graph import nearest
from lignn.graph.graph import Graph
from lignn.graph.joins import joined
from lignn.graph.links import NEAREST, Links
from lignn.graph.split import Split


def linked(graph: Graph, links: Links | None, of_model: bool = False) -> Graph:
    """Return a graph without edges with those that the rules make; nodes of values follow the rows.

    Args:
        graph: the rows of a table, read without edges.
        links: the rules; None joins nearest rows, if the table has columns and is not too large.
        of_model: whether a model has the rules, so that a column that is not there joins nothing, with a warning.
    """
    assert graph.reading is not None
    if links is None:
        return _with_nearest(graph)
    reading = graph.reading
    taken = {name: role for role, name in reading.nodes.roles}
    table = pa.table({"": pa.nulls(graph.num_nodes)}).select([]) if graph.table is None else graph.table
    if of_model and graph.table is not None:
        table = _with_all(graph, links)
        graph = graph.replace(table=table)
    links.check(table.column_names, taken, graph.name)
    near = nearest.pairs(table.select(_used(table, links)), links.nearest, graph.name) if links.nearest else None
    found = joined(table, links, near)
    notes = [*found.notes]
    if links.nearest:
        each = f"its {min(links.nearest, graph.num_nodes - 1)} nearest by {len(_used(table, links))} columns"
        notes.append(f"{NEAREST}: each row is joined to {each}")
    reading = replace(reading, links=links, joined=tuple(notes))
    several = {"edge_type": np.empty(0, np.int64), "edge_types": links.types} if len(links.types) > 1 else {}
    bare = graph.replace(reading=reading, **several)
    return _with_values(bare, found.edges, found.kinds, found.column, value_ids(links, found.column, found.values))


def _with_all(graph: Graph, links: Links) -> pa.Table:
    """Return the table with an empty column for each one that the rules name and that is not there; warn of it."""
    table = graph.table
    assert table is not None
    for name in (*links.columns, *(() if links.order is None else (links.order,))):
        if name not in table.column_names:
            words = f"{graph.name}: no column {name!r}, by which the model joins rows; it joins none here"
            warnings.warn(words, DataWarning, stacklevel=4)
            table = table.append_column(name, pa.nulls(table.num_rows, pa.string()))
    return table


def _with_nearest(graph: Graph) -> Graph:
    assert graph.reading is not None
    if graph.table is not None and 1 < graph.num_nodes <= nearest.LARGEST:
        return linked(graph, Links.of([NEAREST]))
    why = "has no columns" if graph.table is None else f"has {graph.num_nodes:,} rows, too many to search"
    note = f"{NEAREST}: {graph.name} {why}, so no row is joined to another; --link COLUMN joins rows by values"
    return graph.replace(reading=replace(graph.reading, links=Links(), joined=(note,)))


def with_new_rows(graph: Graph, before: Graph, links: Links) -> Graph:
    """Return a graph with the edges and values that the rules make of its new rows.

    These are the edges of all rows together, old and new, at new nodes: new rows, and values that were not shared
    before. Edges between old nodes stay as they are.

    Args:
        graph: the graph with the new rows after all others, not joined by the rules yet.
        before: the graph before.
        links: the rules.
    """
    assert graph.table is not None
    rows = graph.is_row.nonzero().flatten().numpy()
    new = rows >= before.num_nodes
    table = graph.table.take(pa.array(rows))
    near = None
    if links.nearest:
        near = nearest.pairs(table.select(_used(table, links)), links.nearest, graph.name, new)
    found = joined(table, links, near)
    ids = value_ids(links, found.column, found.values)
    known = np.flatnonzero(~graph.is_row.numpy()).tolist()
    there = {} if graph.node_ids is None else {str(graph.node_ids[node]): node for node in known}
    values = np.array([there.get(name, -1) for name in ids.tolist()], np.int64)
    ends = found.edges[:, np.append(new, np.zeros(len(ids), bool))[found.edges[0]]]
    touched = np.isin(np.arange(len(ids)) + len(rows), ends[1])  # values that new rows have
    made = touched & (values < 0)
    values[made] = graph.num_nodes + np.arange(int(made.sum()))
    nodes = np.concatenate([rows, values])[found.edges]
    kept = (nodes >= before.num_nodes).any(0) & (nodes >= 0).all(0)
    return _with_values(graph, nodes[:, kept], found.kinds[kept], found.column[made], ids[made])


def _with_values(graph: Graph, edges: np.ndarray, kinds: np.ndarray, column: np.ndarray, ids: np.ndarray) -> Graph:
    """Return a graph with more edges and, after its nodes, those of values.

    Args:
        graph: the graph.
        edges: 2×E, the new edges.
        kinds: their types.
        column: for each value, the number of its column.
        ids: names of the values.
    """
    index = torch.cat([graph.edge_index, torch.from_numpy(edges)], 1)
    edge_type = None if graph.edge_type is None else torch.cat([graph.edge_type, torch.from_numpy(kinds)])
    count = len(ids)
    if not count:
        return graph.replace(edge_index=index, edge_type=edge_type)
    names = row_ids(graph)
    if twice := set(ids.tolist()).intersection(names.tolist()):
        raise InputError(
            f"{graph.name}: a row has the id {min(twice)!r}, which is the name of a value that rows share; "
            "give the rows other ids"
        )
    old = np.full(graph.num_nodes, -1) if graph.value_of is None else graph.value_of
    parts = ("train", "val", "test")
    return graph.replace(
        edge_index=index,
        edge_type=edge_type,
        num_nodes=graph.num_nodes + count,
        x=None,
        y=None if graph.y is None else _extended(graph.y, count, -1),
        node_ids=np.concatenate([names, ids]),
        splits=[Split(*(_extended(getattr(split, part), count, 0) for part in parts)) for split in graph.splits],
        table=None if graph.table is None else _with_empty_rows(graph.table, count),
        time=None if graph.time is None else np.concatenate([graph.time, np.full(count, np.nan)]),
        group=None if graph.group is None else np.concatenate([graph.group, np.full(count, -1)]),
        value_of=np.concatenate([old, column]),
    )


def row_ids(graph: Graph) -> np.ndarray:
    """Return the names of nodes, their numbers as texts if they have none."""
    if graph.node_ids is not None:
        return graph.node_ids
    return np.arange(graph.num_nodes).astype(np.dtypes.StringDType())


def value_ids(links: Links, column: np.ndarray, values: tuple[str, ...]) -> np.ndarray:
    """Return the names of the nodes of values."""
    names = [f"{links.columns[number]}={value}" for number, value in zip(column.tolist(), values, strict=True)]
    return np.array(names, np.dtypes.StringDType())


def _extended(rows: Tensor, count: int, value: int) -> Tensor:
    """Return `rows` with `count` more, all of one value."""
    return torch.cat([rows, rows.new_full((count, *rows.shape[1:]), value)])


def _with_empty_rows(table: pa.Table, count: int) -> pa.Table:
    """Return a table with more rows, which have no values."""
    empty = pa.table([pa.nulls(count, kind) for kind in table.schema.types], schema=table.schema)
    return pa.concat_tables([table, empty])


def _used(table: pa.Table, links: Links) -> list[str]:
    """Return the columns by which nearest rows are found: all but those whose values join rows."""
    return [name for name in table.column_names if name not in links.columns]
