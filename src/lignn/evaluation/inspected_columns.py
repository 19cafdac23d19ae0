"""The columns of a graph's tables: the role of each, what it holds, and what will be done with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from lignn.errors import quoted
from lignn.features import Column, describe
from lignn.graph import Graph, Split
from lignn.graph.split import PARTS

_EXAMPLES = 3
_WIDE = 40
"""Characters of a range that are printed."""
USES = {
    "id": "names the nodes",
    "label": "learned and predicted",
    "labels": "learned and predicted",
    "split": "says which labels are held back",
    "time": "for splits by time; no feature",
    "group": "for splits by group; no feature",
    "source": "where an edge starts",
    "target": "where an edge ends",
    "weight": "weighs the edges",
    "edge_type": "tells edges apart, with --backbone rgcn",
}
"""What is done with the column of a role."""


@dataclass(frozen=True)
class InspectedColumn:
    """A column of the nodes or edges.

    Attributes:
        table: file or table that it is in.
        name: its name; without tables, that of its role.
        role: its role; "feature" or "ignored" for others.
        kind: what it holds; None for an ignored column, which is not read.
        missing: number of rows without a value, None if unknown.
        distinct: number of different values, None if unknown.
        range: smallest and largest value, or examples.
        treatment: what will be done with it, in words.
    """

    table: str
    name: str
    role: str
    kind: str | None = None
    missing: int | None = None
    distinct: int | None = None
    range: str = ""
    treatment: str = "ignored"

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a printed table."""
        counts = ("" if count is None else f"{count:,}" for count in (self.missing, self.distinct))
        shown = self.range if len(self.range) <= _WIDE else f"{self.range[: _WIDE - 1]}…"
        return (self.name, self.role, self.kind or "", *counts, shown, self.treatment)


@dataclass(frozen=True)
class ColumnTable:
    """A printed table of the columns of one table.

    Attributes:
        title: file or table that they are in, and how many columns are not shown.
        rows: one row a column, below `HEADER`.
    """

    title: str
    rows: list[tuple[str, ...]]


HEADER = ("column", "role", "kind", "missing", "distinct", "range", "what will be done")


def tables(inspected: Sequence[InspectedColumn], most: int) -> list[ColumnTable]:
    """Return a table of the columns of each table, with at most so many columns."""
    found = []
    for file, group in groupby(inspected, key=lambda column: column.table):
        rows = [column.cells for column in group]
        more = f", {len(rows) - most} more columns; --json has all" if len(rows) > most else ""
        found.append(ColumnTable(file + more, rows[:most]))
    return found


def columns(graph: Graph) -> tuple[InspectedColumn, ...]:
    """Return the columns of the nodes, those with a role first, and then of the edges.

    A graph that was not read from tables has columns named by role; its features are one column, `x`.
    """
    ids = None if graph.node_ids is None else graph.node_ids[:_EXAMPLES].tolist()
    if graph.value_of is not None and graph.reading is not None and "id" not in graph.reading.columns:
        ids = None  # numbers of rows, which no column holds
    return (*of_nodes(graph, ids), *_features(graph), *_of_edges(graph))


def of_nodes(graph: Graph, ids: Sequence[str] | None) -> Iterator[InspectedColumn]:
    """Yield the columns with a role, and the ignored ones; `ids` are the first ids, None if there are none."""
    read = None if graph.reading is None else graph.reading.nodes
    file, roles = ("nodes", ()) if read is None else (read.file, read.roles)
    names = dict(reversed(roles))

    def column(role: str, kind: str, missing: int, distinct: int, shown: str) -> InspectedColumn:
        return InspectedColumn(file, names.get(role, role), role, kind, missing, distinct, shown, USES[role])

    if ids is not None:
        yield column("id", "id", 0, int(graph.is_row.sum()), _examples(ids))
    if graph.y is not None:
        role = "labels" if graph.is_multilabel else "label"
        unknown = int((graph.is_row & ~graph.labelled).sum())
        yield column(role, "category", unknown, graph.num_classes, _examples(class_names(graph)))
    columns_of_splits = [name for role, name in roles if role == "split"] or ["split"] * len(graph.splits)
    for name, split in zip(columns_of_splits, graph.splits, strict=True):
        yield _split(file, name, split)
    if graph.time is not None:
        known = graph.time[~np.isnan(graph.time)]
        yield column("time", "number", graph.num_nodes - len(known), len(np.unique(known)), _range(known))
    if graph.group is not None:
        unknown = int((graph.group < 0).sum())
        distinct = len(np.unique(graph.group[graph.group >= 0]))
        yield column("group", "category", unknown, distinct, "")
    yield from (InspectedColumn(file, name, "ignored") for name in (() if read is None else read.ignored))


def _split(file: str, name: str, split: Split) -> InspectedColumn:
    sizes = {part: int(getattr(split, part).sum()) for part in PARTS}
    shown = ", ".join(f"{size:,} {part}" for part, size in sizes.items() if size)
    missing, parts = split.num_nodes - sum(sizes.values()), sum(size > 0 for size in sizes.values())
    return InspectedColumn(file, name, "split", "category", missing, parts, shown, USES["split"])


def _features(graph: Graph) -> Iterator[InspectedColumn]:
    read = None if graph.reading is None else graph.reading.nodes
    file, kind_of_node = ("nodes", None) if read is None else (read.file, dict(read.roles).get("type"))
    if graph.columns is not None:
        rows = graph.columns if graph.value_of is None else graph.columns.filter(graph.is_row.numpy())
        yield from of_table(file, describe(rows, graph.name), kind_of_node)
    elif graph.x is not None and graph.num_features:
        shown = f"{float(graph.x.min()):.6g} … {float(graph.x.max()):.6g}"
        used = f"{graph.num_features:,} features, used as they are"
        yield InspectedColumn(file, "x", "feature", "number", 0, None, shown, used)


def of_table(file: str, described: Sequence[Column], kind_of_node: str | None) -> Iterator[InspectedColumn]:
    """Yield the columns that become features, and those that cannot; `kind_of_node` names that of the role type."""
    for one in described:
        role = "type" if one.name == kind_of_node else "feature" if one.used else "ignored"
        counted = None if one.kind == "other" else one.distinct
        yield InspectedColumn(file, one.name, role, one.kind, one.missing, counted, one.summary, one.treatment)


def _of_edges(graph: Graph) -> Iterator[InspectedColumn]:
    read = None if graph.reading is None else graph.reading.edges
    file, names = ("edges", {}) if read is None else (read.file, dict(read.roles))

    def column(role: str, kind: str, distinct: int, shown: str) -> InspectedColumn:
        return InspectedColumn(file, names.get(role, role), role, kind, 0, distinct, shown, USES[role])

    for role, ends in zip(("source", "target"), graph.edge_index, strict=True):
        if role in names:
            yield column(role, "id", len(ends.unique()), "")
    if graph.edge_weight is not None:
        weights = graph.edge_weight.numpy()
        yield column("weight", "number", len(np.unique(weights)), _range(weights))
    if graph.edge_types is not None and (read is not None or graph.reading is None):  # rules have no column of types
        yield column("edge_type", "category", len(graph.edge_types), _examples(graph.edge_types))
    if graph.edge_table is not None:
        for one in describe(graph.edge_table.rows, graph.name):
            told = "sum, mean and last" if one.kind in ("number", "boolean") else "mean and last"
            told = f"{'share of each' if one.kind in ('category', 'text') else told}, at both ends"
            yield InspectedColumn(file, one.name, "feature", one.kind, one.missing, one.distinct, one.summary, told)
    yield from (InspectedColumn(file, name, "ignored") for name in (() if read is None else read.ignored))


def class_names(graph: Graph) -> tuple[str, ...]:
    """Return the names of the classes; their numbers if they have none."""
    return graph.class_names or tuple(map(str, range(graph.num_classes)))


def _examples(values: Sequence[object]) -> str:
    shown = ", ".join(quoted(str(value)) for value in values[:_EXAMPLES])
    return f"{shown} …" if len(values) > _EXAMPLES else shown


def _range(values: np.ndarray) -> str:
    return f"{values.min():.12g} … {values.max():.12g}" if len(values) else ""
