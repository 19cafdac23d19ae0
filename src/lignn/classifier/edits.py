"""Changes of a graph's nodes, edges and features; in an undirected graph an edge stands for both directions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.classifier.growth import check_edges, edge_numbers, refuse_edge_columns
from lignn.errors import InputError, did_you_mean, quoted
from lignn.graph import Graph, types
from lignn.graph.names import node_numbers

if TYPE_CHECKING:
    import pyarrow as pa


def kept_nodes(graph: Graph, nodes: Iterable[Any]) -> Tensor:
    """Return the mask of the nodes that are left when `nodes` (numbers or ids) are removed."""
    if isinstance(nodes, str):
        raise InputError(f"nodes: a collection of nodes is needed, got the text {quoted(nodes)}; give [{nodes!r}]")
    kept = torch.ones(graph.num_nodes, dtype=torch.bool)
    kept[node_numbers(graph, nodes)] = False
    if not kept.any():
        raise InputError("all nodes of the graph would be removed; at least one must be left")
    return kept


def without_nodes(graph: Graph, kept: Tensor) -> Graph:
    """Return the graph induced by the nodes in `kept` (a mask), in their order."""
    new = kept.cumsum(0) - 1
    edges = kept[graph.edge_index].all(0)
    rows, numbers = kept.numpy(), kept.nonzero().flatten()
    x: Any = graph.x
    return graph.replace(
        edge_index=new[graph.edge_index[:, edges]],
        edge_weight=None if graph.edge_weight is None else graph.edge_weight[edges],
        edge_type=None if graph.edge_type is None else graph.edge_type[edges],
        x=None if x is None else x[numbers.numpy() if sp.issparse(x) else numbers],
        y=None if graph.y is None else graph.y[kept],
        num_nodes=len(numbers),
        node_ids=None if graph.node_ids is None else graph.node_ids[rows],
        table=None if graph.table is None else graph.table.filter(rows),
        time=None if graph.time is None else graph.time[rows],
        group=None if graph.group is None else graph.group[rows],
        value_of=None if graph.value_of is None else graph.value_of[rows],
        edge_table=None if graph.edge_table is None else graph.edge_table.without_nodes(rows),
        splits=(),
    )


def with_edges(graph: Graph, edges: Any, edge_weight: Any, edge_type: Any, edge_columns: Any = None) -> Graph:
    """Return the graph with more edges; one that is there already is replaced, unless edges carry columns."""
    if graph.edge_table is not None:
        from lignn.graph import carried  # imports pyarrow

        return carried.with_edges(graph, edge_numbers(edges, graph.node_ids), edge_columns, edge_weight, edge_type)
    refuse_edge_columns(edge_columns)
    check_edges("edge weights", "edge_weight", graph.edge_weight, edge_weight)
    check_edges("types of edges", "edge_type", graph.edge_type, edge_type)
    kinds = None if edge_type is None else types.numbers(edge_type, graph.edge_types or ())
    added = Graph(
        edge_numbers(edges, graph.node_ids),
        num_nodes=graph.num_nodes,
        edge_weight=edge_weight,
        edge_type=kinds,
        edge_types=graph.edge_types,
    )
    added = added.to_undirected() if graph.is_undirected else added.coalesced()
    there = _matching(graph, added, kinds is not None)
    return graph.replace(
        edge_index=torch.cat([graph.edge_index[:, ~there], added.edge_index], 1),
        edge_weight=_joined(graph.edge_weight, added.edge_weight, there),
        edge_type=_joined(graph.edge_type, added.edge_type, there),
    )


def without_edges(graph: Graph, edges: Any, edge_type: Any) -> Graph:
    """Return the graph without some edges, all of which must be there; without types, those of all types are meant."""
    if edge_type is not None and graph.edge_table is not None:
        raise InputError("edges that carry columns are removed whatever their type; leave edge_type out")
    kinds = None if edge_type is None else types.numbers(edge_type, graph.edge_types or ())
    pairs = Graph(edge_numbers(edges, graph.node_ids), num_nodes=graph.num_nodes, edge_type=kinds)
    both = pairs
    if graph.is_undirected or graph.edge_table is not None:
        both = pairs.to_undirected(coalesce=False)
    missing = ~_matching(pairs, graph, kinds is not None)
    if missing.any():
        first = int(missing.nonzero()[0])
        ends = (quoted(name_of(graph, int(node))) for node in pairs.edge_index[:, first])
        raise InputError(f"there is no edge from {' to '.join(ends)}" + (" of this type" if kinds is not None else ""))
    left = ~_matching(graph, both, kinds is not None)
    weight, kept = (None if part is None else part[left] for part in (graph.edge_weight, graph.edge_type))
    rows = graph.edge_table
    if rows is not None:
        rows = rows.where(~_matching(Graph(rows.ends, num_nodes=graph.num_nodes), both, typed=False).numpy())
    return graph.replace(edge_index=graph.edge_index[:, left], edge_weight=weight, edge_type=kept, edge_table=rows)


def with_features(graph: Graph, features: Mapping[Any, Any]) -> Graph:
    """Return the graph with other features of some nodes: all of them in a list, or some by the name of the column."""
    if not isinstance(features, Mapping):
        raise InputError(f"features: a mapping from nodes to features is needed, got {type(features).__name__}")
    numbers = node_numbers(graph, features)
    if graph.table is not None:
        return graph.replace(table=_with_cells(graph, dict(zip(numbers, features.values(), strict=True))))
    if graph.x is None:
        raise InputError(f"{graph.name} has no features that could be changed")
    pairs = zip(numbers, features.values(), strict=True)
    rows = np.array([_feature_row(graph, number, given) for number, given in pairs]).reshape(-1, graph.num_features)
    if isinstance(graph.x, sp.csr_array):
        left = np.ones(graph.num_nodes, dtype=graph.x.dtype)
        left[numbers] = 0
        place = sp.csr_array((np.ones(len(numbers)), (numbers, range(len(numbers)))), (graph.num_nodes, len(numbers)))
        x: Any = sp.csr_array(sp.diags_array(left) @ graph.x + place @ sp.csr_array(rows), dtype=graph.x.dtype)
        x.eliminate_zeros()
    else:
        x = graph.x.clone()
        x[numbers] = torch.from_numpy(rows).to(x.dtype)
    return graph.replace(x=x)


def feature_row(graph: Graph, node: int) -> np.ndarray:
    """Return the features of one node."""
    x: Any = graph.x
    return x[[node]].toarray()[0] if sp.issparse(x) else x[node].numpy()


def name_of(graph: Graph, node: int) -> str:
    """Return the id of a node, its number as text in a graph without ids."""
    return str(node) if graph.node_ids is None else str(graph.node_ids[node])


def _feature_row(graph: Graph, node: int, given: Any) -> np.ndarray:
    where = f"features of {quoted(name_of(graph, node))}"
    if isinstance(given, Mapping):
        names = graph.feature_names or tuple(map(str, range(graph.num_features)))
        unknown = [str(name) for name in given if str(name) not in names]
        if unknown:
            raise InputError(f"{where}: {unknown[0]!r} is no feature; {did_you_mean(unknown[0], names)}")
        columns, values = [names.index(str(name)) for name in given], list(given.values())
    else:
        columns, values = list(range(graph.num_features)), list(given)
    try:
        numbers = np.array(values, dtype=np.float64).reshape(len(columns))
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: {len(columns)} numbers are needed ({error})") from error
    row = feature_row(graph, node).astype(np.float64)
    row[columns] = numbers
    return row


def _with_cells(graph: Graph, features: Mapping[int, Any]) -> pa.Table:
    """Return the table of a graph with other cells of some nodes, by the name of the column."""
    table = graph.table
    assert table is not None
    changed: dict[str, dict[int, Any]] = {}
    for node, given in features.items():
        where = f"features of {quoted(name_of(graph, node))}"
        if not isinstance(given, Mapping):
            raise InputError(f"{where}: values by the name of the column are needed, got {type(given).__name__}")
        for name, value in given.items():
            if name not in table.column_names:
                raise InputError(f"{where}: {name!r} is no column; {did_you_mean(str(name), table.column_names)}")
            changed.setdefault(name, {})[node] = value
    for name, values in changed.items():
        column = table[name].to_pylist()
        for node, value in values.items():
            column[node] = value
        table = table.set_column(table.column_names.index(name), name, typed_column(table, name, column))
    return table


def typed_column(table: pa.Table, name: str, values: list[Any]) -> pa.Array:
    """Return values of a column in the type that it has in `table`; dates may be texts."""
    import pyarrow as pa

    kind = table.schema.field(name).type
    try:
        if pa.types.is_temporal(kind):
            return pa.array([None if value is None else str(value) for value in values], pa.string()).cast(kind)
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"features: column {name!r} holds {kind} ({error})") from error


def _matching(graph: Graph, other: Graph, typed: bool) -> Tensor:
    """Return which edges of `graph` are edges of `other` too, of the same type if `typed`."""

    def keys(one: Graph) -> np.ndarray:
        source, target = one.edge_index.numpy()
        kind = one.edge_type.numpy() if typed and one.edge_type is not None else 0
        return (kind * graph.num_nodes + source) * graph.num_nodes + target

    return torch.from_numpy(np.isin(keys(graph), keys(other)))


def _joined(old: Tensor | None, new: Tensor | None, replaced: Tensor) -> Tensor | None:
    return None if old is None or new is None else torch.cat([old[~replaced], new.to(old.dtype)])
