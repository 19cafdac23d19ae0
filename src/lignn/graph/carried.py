"""Edges that carry columns, such as payments with an amount, a time and a kind.

What its edges carry becomes columns of a node. For its edges as their source ("out") and as their target ("in"), these
are the number of edges; of numbers the sum, the mean and the last; of times the mean and the last; of categories the
share of each. Such edges are in the graph in both directions, the reversed ones as types of their own.

`Carried` is the rule: which columns, which categories, and in whose order the last one is found. It is learned once,
from the edges that a fit has, and holds for new edges and for other graphs. Labels have no part in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from lignn.errors import InputError, did_you_mean
from lignn.features import append, as_table, describe
from lignn.features.columns import Kind, rare
from lignn.features.kinds import FEW
from lignn.features.values import values
from lignn.graph import types
from lignn.graph.joins import ranks

if TYPE_CHECKING:
    from lignn.graph.graph import Graph

BACK = "back"
_RULE = b"rule"
_TIME = re.compile(r"(^|[^a-z])(time|timestamp|date|datetime|day)$", re.IGNORECASE)


@dataclass(frozen=True)
class CarriedColumn:
    """A column of edges.

    Attributes:
        name: its name.
        kind: what it holds: "number", "boolean", "date" or "category".
        categories: of a category, the values whose shares are told.
    """

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()


@dataclass(frozen=True)
class Carried:
    """Which columns of edges become columns of nodes.

    Attributes:
        columns: the columns.
        order: the column in whose order the last edge is the last; None for the order of the rows.
    """

    columns: tuple[CarriedColumn, ...]
    order: str | None = None

    @classmethod
    def learned(cls, rows: pa.Table, order: str | None, where: str) -> Carried:
        """Return the rule for the edges of a table.

        Args:
            rows: columns of the edges that have no other role.
            order: the column that orders them; by default the first one that looks like times.
            where: name of the table, for errors.
        """
        if order is not None and order not in rows.column_names:
            raise InputError(f"--order {order}: {where} has no such column; {did_you_mean(order, rows.column_names)}")
        described = describe(rows, where)
        if order is None:
            order = next(
                (
                    name
                    for name, type_ in zip(rows.column_names, rows.schema.types, strict=True)
                    if is_time(name, type_)
                ),
                None,
            )
        found = []
        for column in described:
            if column.kind in ("number", "boolean", "date"):
                found.append(CarriedColumn(column.name, column.kind))
            elif column.kind in ("category", "text"):
                told = _categories(rows.column(column.name), column.name, where)
                found += [CarriedColumn(column.name, "category", told)] if told else []
        return cls(tuple(found), order)

    @classmethod
    def restored(cls, record: Mapping[str, Any] | None) -> Carried | None:
        """Return the rule whose `dataclasses.asdict` was stored as JSON."""
        if record is None:
            return None
        columns = (CarriedColumn(each["name"], each["kind"], tuple(each["categories"])) for each in record["columns"])
        return cls(tuple(columns), record["order"])

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of edges that the rule reads."""
        order = () if self.order is None else (self.order,)
        return tuple(dict.fromkeys((*(column.name for column in self.columns), *order)))


@dataclass(frozen=True, eq=False)
class EdgeTable:
    """The edges that carry columns, m of them, each once and in its own direction.

    Attributes:
        ends: 2×m numbers of nodes, sources above targets.
        rows: their columns, in the order of the edges.
        rule: what becomes of them.
    """

    ends: np.ndarray
    rows: pa.Table
    rule: Carried

    def of_nodes(self, num_nodes: int) -> pa.Table:
        """Return the columns of the nodes that follow from their edges."""
        order = _order(self.rows, self.rule.order)
        found: dict[str, np.ndarray] = {}
        arrays = {
            column.name: values(self.rows.column(column.name), column.kind, column.name, "edges")
            for column in self.rule.columns
        }
        for direction, end in zip(("out", "in"), self.ends, strict=True):
            found[f"edges {direction}"] = np.bincount(end, minlength=num_nodes)
            for column in self.rule.columns:
                told = (_shares if column.kind == "category" else _numbers)(
                    column, arrays[column.name][order], end[order], num_nodes
                )
                skipped = "sum" if column.kind == "date" or column.name == self.rule.order else None
                found |= {f"{column.name} {direction}: {what}": v for what, v in told.items() if what != skipped}
        return pa.table({name: pa.array(each, from_pandas=True) for name, each in found.items()})

    def with_rows(self, ends: np.ndarray, rows: pa.Table) -> EdgeTable:
        """Return the table with more edges, whose columns are found by name; raise for columns that it has not."""
        there = self.rows.column_names
        if unknown := [name for name in rows.column_names if name not in there]:
            raise InputError(
                f"edge_columns: {unknown[0]!r} is no column of the edges; {did_you_mean(unknown[0], there)}"
            )
        return replace(self, ends=np.concatenate([self.ends, ends], axis=1), rows=append(self.rows, rows))

    def where(self, keep: np.ndarray) -> EdgeTable:
        """Return the table with some of its edges (a mask)."""
        return replace(self, ends=self.ends[:, keep], rows=self.rows.filter(pa.array(keep)))

    def without_nodes(self, kept: np.ndarray) -> EdgeTable:
        """Return the table without the edges at nodes that are not in `kept` (a mask), which get smaller numbers."""
        left = self.where(kept[self.ends].all(0))
        return replace(left, ends=(kept.cumsum() - 1)[left.ends])

    def as_table(self) -> pa.Table:
        """Return the ends, the columns and, as metadata, the rule as one table."""
        ends = {f"end {number}": pa.array(end) for number, end in enumerate(self.ends)}
        columns = [*ends.values(), *self.rows.columns]
        table = pa.table(columns, names=[*ends, *self.rows.column_names])
        return table.replace_schema_metadata({_RULE: json.dumps(asdict(self.rule))})

    @classmethod
    def of_table(cls, table: pa.Table) -> EdgeTable:
        """Return what `as_table` has made a table of."""
        rule = Carried.restored(json.loads((table.schema.metadata or {})[_RULE]))
        assert rule is not None
        ends = np.stack([table.column(number).to_numpy() for number in range(2)]).astype(np.int64)
        return cls(ends, table.select(range(2, table.num_columns)).replace_schema_metadata(), rule)


def is_time(name: str, kind: pa.DataType) -> bool:
    """Return whether a column looks like times: dates, or numbers under a header such as `time`."""
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return bool(pa.types.is_temporal(kind) or (numbers and _TIME.search(name) is not None))


def types_both_ways(types: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the types of edges that go both ways, those of the reversed edges last."""
    return ("forth", BACK) if types is None else (*types, *(f"{name} ({BACK})" for name in types))


def both_ways(graph: Graph, rows: EdgeTable) -> Graph:
    """Return a graph whose edges, which carry columns, have their reverse beside them as types of their own."""
    kinds = np.zeros(graph.num_edges, np.int64) if graph.edge_type is None else graph.edge_type.numpy()
    types = types_both_ways(graph.edge_types)
    weight = graph.edge_weight
    return graph.replace(
        edge_index=torch.cat([graph.edge_index, graph.edge_index.flip(0)], 1),
        edge_weight=None if weight is None else torch.cat([weight, weight]),
        edge_type=np.concatenate([kinds, kinds + len(types) // 2]),
        edge_types=types,
        x=None,
        table=graph.table,
        edge_table=rows,
    )


def with_edges(graph: Graph, edges: Any, columns: Any, edge_weight: Any = None, edge_type: Any = None) -> Graph:
    """Return a graph whose edges carry columns with more of them, beside those that are there.

    Args:
        graph: the graph.
        edges: 2×E numbers of nodes, sources above targets.
        columns: one row per edge, as `features.as_table` takes rows; columns that are not there are missing.
        edge_weight: one weight per edge, for a graph with weights.
        edge_type: one type per edge, by number or name, for edges of several types.
    """
    from lignn.graph.graph import Graph

    assert graph.edge_table is not None
    assert graph.edge_types is not None
    assert graph.edge_type is not None
    forth = graph.edge_types[: len(graph.edge_types) // 2]
    if len(forth) == 1:
        edge_type = np.zeros(np.shape(edges)[1], np.int64)
    for what, parameter, old, new in (
        ("weights", "edge_weight", graph.edge_weight, edge_weight),
        ("types", "edge_type", forth, edge_type),
        ("columns", "edge_columns", forth, columns),
    ):
        if (old is None) != (new is None):
            wanted = f"no {what}: leave them out" if old is None else f"{what}: give {parameter}"
            raise InputError(f"the edges of the graph have {wanted} for the new edges")
    added = Graph(
        edges, num_nodes=graph.num_nodes, edge_weight=edge_weight, edge_type=types.numbers(edge_type, forth),
        edge_types=forth,
    )  # fmt: skip
    rows = as_table(columns)
    if rows.num_rows != added.num_edges:
        raise InputError(f"edge_columns: {added.num_edges} rows are needed, one for each edge, got {rows.num_rows}")
    both = both_ways(added, graph.edge_table)
    weight = None
    if graph.edge_weight is not None and both.edge_weight is not None:
        weight = torch.cat([graph.edge_weight, both.edge_weight.to(graph.edge_weight.dtype)])
    return graph.replace(
        edge_index=torch.cat([graph.edge_index, both.edge_index], 1),
        edge_weight=weight,
        edge_type=torch.cat([graph.edge_type, cast(torch.Tensor, both.edge_type)]),
        edge_table=graph.edge_table.with_rows(added.edge_index.numpy(), rows),
    )


def _categories(column: pa.ChunkedArray, name: str, where: str) -> tuple[str, ...]:
    """Return the most frequent values of a column, at most `FEW`, that are not rare; equally frequent ones by name."""
    texts = pa.chunked_array([pa.array(values(column, "category", name, where), pa.large_string())])
    counts = pc.value_counts(texts.drop_null())
    found = [(-one["counts"], one["values"]) for one in counts.to_pylist() if one["counts"] >= rare(len(column))]
    return tuple(value for _, value in sorted(found)[:FEW])


def _order(rows: pa.Table, name: str | None) -> np.ndarray:
    """Return the numbers of the rows, the last one last; rows without a time come first."""
    if name is None:
        return np.arange(rows.num_rows)
    return np.argsort(ranks(rows.column(name), name), kind="stable")


def _numbers(column: CarriedColumn, numbers: np.ndarray, end: np.ndarray, n: int) -> dict[str, np.ndarray]:  # noqa: ARG001
    """Return the sum, the mean and the last number at each node; NaN where there is none but for the sum."""
    there = ~np.isnan(numbers)
    end, numbers = end[there], numbers[there]
    count, total = np.bincount(end, minlength=n), np.bincount(end, numbers, minlength=n)
    last = np.full(n, np.nan)
    last[end] = numbers  # of repeated places the last value stays
    return {"sum": total, "mean": _divided(total, count), "last": last}


def _shares(column: CarriedColumn, cells: np.ndarray, end: np.ndarray, n: int) -> dict[str, np.ndarray]:
    """Return the share of each category among the edges at each node that have a value; NaN where there is none."""
    code = pc.index_in(pa.array(cells, pa.large_string()), pa.array(column.categories, pa.large_string()))
    code = code.fill_null(-1).to_numpy().astype(np.int64)
    count = np.bincount(end[np.array([cell is not None for cell in cells], bool)], minlength=n)
    return {
        f"share of {name}": _divided(np.bincount(end[code == number], minlength=n), count)
        for number, name in enumerate(column.categories)
    }


def _divided(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
