"""Conversion from and to PyG's `HeteroData`, in which nodes and edges have types.

A `Graph` has one list of nodes. The types of nodes become the column `type` of its table. The features of a type become
columns of their own, `TYPE.0`, `TYPE.1` and so on, which have no values at nodes of other types. Edges keep their
types: the name of `(source, relation, target)` is the relation if no other type of edges has it, else all three joined
by `__`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.errors import GraphError
from lignn.graph import convert
from lignn.graph.graph import Graph
from lignn.graph.split import PARTS, Split

if TYPE_CHECKING:
    import pyarrow as pa
    from torch_geometric.data import HeteroData

TYPE = "type"
"""The column of the table with the types of nodes."""
_UNNAMED = "unknown"
"""Type of nodes of which the column says nothing."""
_RELATION = "to"
"""Relation of edges without types, as PyG's own conversions call it."""


def has_node_types(graph: Graph) -> bool:
    """Return whether the table of a graph has a column of types."""
    return graph.table is not None and TYPE in graph.table.column_names


def of_labelled_types(graph: Graph, labelled: Tensor) -> Tensor | None:
    """Return a mask of the nodes of types that have labels: others have no class. None if nodes have no types.

    Values that rows of a table share are nodes without a class.

    Args:
        graph: the graph.
        labelled: mask of the nodes whose labels count.
    """
    if graph.table is None or not has_node_types(graph):
        return None if graph.value_of is None else graph.is_row
    types = _types(graph.table)
    with_labels = {types[node] for node in labelled.nonzero().flatten().tolist()}
    return torch.tensor([each in with_labels for each in types]) & graph.is_row


def _types(table: pa.Table) -> list[str]:
    """Return the type of each node; what has no type is a type of its own."""
    return [_UNNAMED if kind is None else str(kind) for kind in table[TYPE].to_pylist()]


def from_hetero(data: HeteroData, **parts: Any) -> Graph:
    """Return a graph from a `HeteroData`, with its nodes in the order of its types.

    Labels of all types are class numbers of one list; nodes of types without labels are unlabelled.
    """
    counts = {kind: data[kind].num_nodes for kind in data.node_types}
    for kind, count in counts.items():
        if count is None:
            raise GraphError(f"node type {kind!r}: the number of its nodes is unknown; set data[{kind!r}].num_nodes")
    stores = [data[kind] for kind in counts]
    arguments = _edges(data, counts) | {
        "y": _stacked([convert.labels_of(store) for store in stores], counts, -1),
        "splits": _splits(stores, counts),
        "table": _table(data, counts),
    }
    return Graph(**(arguments | parts))


def _edges(data: HeteroData, counts: dict[str, int]) -> dict[str, Any]:
    """Return edges, weights and types of edges of all types."""
    first = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
    relations = Counter(relation for _, relation, _ in data.edge_types)
    names = [kind[1] if relations[kind[1]] == 1 else "__".join(kind) for kind in data.edge_types]
    stores = [data[kind] for kind in data.edge_types]
    edges = [
        store.edge_index + torch.tensor([[first[source]], [first[target]]])
        for store, (source, _, target) in zip(stores, data.edge_types, strict=True)
    ]
    weights = [convert.weights_of(store) for store in stores]
    weight = None
    if any(each is not None for each in weights):
        weight = torch.cat(
            [torch.ones(e.shape[1]) if w is None else w.float() for e, w in zip(edges, weights, strict=True)]
        )
    return {
        "edge_index": torch.cat(edges, 1) if edges else torch.empty(2, 0, dtype=torch.long),
        "edge_weight": weight,
        "edge_type": np.repeat(np.arange(len(edges)), [each.shape[1] for each in edges]),
        "edge_types": names,
    }


def _stacked(rows: list[Tensor | None], counts: dict[str, int], fill: int) -> Tensor | None:
    """Return the rows of all types of nodes, filled for types without any; None if no type has them."""
    there = [each for each in rows if each is not None]
    if not there:
        return None
    if len({each.shape[1:] for each in there}) > 1:
        raise GraphError(f"the types of nodes have rows of different shapes: {[tuple(each.shape) for each in there]}")
    like = there[0]
    filled = [
        like.new_full((count, *like.shape[1:]), fill) if each is None else each
        for each, count in zip(rows, counts.values(), strict=True)
    ]
    return torch.cat(filled)


def _splits(stores: list[Any], counts: dict[str, int]) -> list[Split]:
    masks = [_stacked([store.get(f"{part}_mask") for store in stores], counts, 0) for part in PARTS]
    return convert.splits_of(masks, sum(counts.values()))


def _table(data: HeteroData, counts: dict[str, int]) -> pa.Table:
    """Return the column of types, and the features of each type."""
    import pyarrow as pa

    kinds = np.repeat(list(counts), list(counts.values()))
    columns = {TYPE: pa.array(kinds.tolist(), pa.string())}
    for kind in counts:
        x = data[kind].get("x")
        if x is None:
            continue
        rows = x.to_dense().numpy() if x.layout != torch.strided else x.numpy()
        others = kinds != kind
        values = np.zeros((len(kinds), rows.shape[1]), rows.dtype)
        values[~others] = rows
        columns |= {f"{kind}.{i}": pa.array(column, mask=others) for i, column in enumerate(values.T)}
    return pa.table(columns)


def to_hetero(graph: Graph) -> HeteroData:
    """Return a `HeteroData` with the types of nodes in the table's column `type`.

    The features of a type are those of the graph and the columns of numbers in which one of its nodes has a value; NaN
    for nodes without one. Types without labels, or without nodes in the first split, have no `y` and no masks.
    """
    from torch_geometric.data import HeteroData

    assert graph.table is not None
    kinds = np.array(_types(graph.table))
    names = list(dict.fromkeys(kinds.tolist()))
    data, place = HeteroData(), np.empty(graph.num_nodes, np.int64)
    for name in names:
        nodes = np.flatnonzero(kinds == name)
        place[nodes] = np.arange(len(nodes))
        _fill(data[name], graph, nodes)
    number = np.array([names.index(kind) for kind in kinds.tolist()])
    source, target = graph.edge_index.numpy()
    edge_type = np.zeros(graph.num_edges, np.int64) if graph.edge_type is None else graph.edge_type.numpy()
    triples = np.stack([number[source], edge_type, number[target]], 1)
    found, first, group = np.unique(triples, axis=0, return_index=True, return_inverse=True)
    for each in np.argsort(first):
        start, kind, end = found[each].tolist()
        edges = np.flatnonzero(group.reshape(-1) == each)
        store = data[names[start], _relation(graph, kind, names[start], names[end]), names[end]]
        store.edge_index = torch.from_numpy(place[graph.edge_index.numpy()[:, edges]])
        if graph.edge_weight is not None:
            store.edge_weight = graph.edge_weight[edges]
    return data


def _relation(graph: Graph, kind: int, source: str, target: str) -> str:
    name = _RELATION if graph.edge_types is None else graph.edge_types[kind]
    return name.removeprefix(f"{source}__").removesuffix(f"__{target}")


def _fill(store: Any, graph: Graph, nodes: np.ndarray) -> None:
    """Set features, labels and masks of the nodes of one type."""
    store.num_nodes = len(nodes)
    if (x := _features(graph, nodes)) is not None:
        store.x = x
    if graph.y is not None and graph.labelled[nodes].any():
        store.y = graph.y[nodes]
    masks = {part: getattr(graph.splits[0], part)[nodes] for part in PARTS} if graph.splits else {}
    if any(mask.any() for mask in masks.values()):
        for part, mask in masks.items():
            store[f"{part}_mask"] = mask


def _features(graph: Graph, nodes: np.ndarray) -> Tensor | None:
    """Return the features of some nodes, and their values in columns of numbers; None if there are neither."""
    import pyarrow as pa

    parts: list[np.ndarray] = []
    if graph.x is not None:
        x = graph.x
        parts.append(x[nodes].toarray() if isinstance(x, sp.csr_array) else x[nodes].numpy())
    assert graph.table is not None
    for column in graph.table.take(nodes).columns:
        kind = column.type
        if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and column.null_count < len(nodes):
            parts.append(column.to_numpy()[:, None])
    return torch.from_numpy(np.concatenate(parts, 1)) if parts else None
