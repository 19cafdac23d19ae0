"""New nodes that join a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.classifier.columns import align_table
from lignn.errors import InputError
from lignn.graph import Graph, Split, types
from lignn.graph.names import lookup
from lignn.labels import KnownLabels
from lignn.methods import Prediction

if TYPE_CHECKING:
    import pyarrow as pa


def grow(
    graph: Graph,
    features: Any,
    edges: Any,
    ids: Sequence[str] | None,
    edge_weight: Any,
    edge_type: Any = None,
    edge_columns: Any = None,
) -> Graph:
    """Return `graph` with more nodes, which follow its last one, and the edges that join them.

    In an undirected graph the new edges go both ways too. Rows of a table that is joined by rules are joined by the
    same rules; values that they share with a row for the first time are further nodes after them.
    """
    x = None if graph.x is None else _stacked(graph.x, align_table(features, graph))
    table = None if graph.table is None else _appended(graph.table, features)
    rows = x if table is None else table
    n = graph.num_nodes + _count_new(ids, features) if rows is None else rows.shape[0]
    if n == graph.num_nodes:
        raise InputError("no new node is given")
    links = None if graph.reading is None else graph.reading.links
    if graph.value_of is not None and ids is None and graph.reading is not None and "id" not in graph.reading.columns:
        ids = _following_numbers(graph, n - graph.num_nodes)
    if (graph.node_ids is None) != (ids is None):
        wanted = "has ids: give ids for the new nodes" if ids is None else "has no ids: leave them out"
        raise InputError(f"the graph {wanted}")
    node_ids = None
    if graph.node_ids is not None:
        node_ids = np.concatenate([graph.node_ids, np.asarray(ids, graph.node_ids.dtype)])
    edges = np.empty((2, 0), np.int64) if edges is None else edges
    given = (edges, edge_columns, edge_weight, edge_type)
    if graph.edge_table is None:
        refuse_edge_columns(edge_columns)
    else:  # `given` join when the nodes are there
        edges, edge_weight = np.empty((2, 0), np.int64), None if graph.edge_weight is None else np.empty(0)
    check_edges("edge weights", "edge_weight", graph.edge_weight, edge_weight)
    if graph.edge_table is None and (links is None or np.size(edges)):
        check_edges("types of edges", "edge_type", graph.edge_type, edge_type)
    elif graph.edge_type is not None:
        edge_type = np.empty(0, np.int64)
    added = Graph(
        edge_numbers(edges, node_ids),
        num_nodes=n,
        node_ids=node_ids,
        edge_weight=edge_weight,
        edge_type=None if edge_type is None else types.numbers(edge_type, graph.edge_types or ()),
        edge_types=graph.edge_types,
    )
    if graph.is_undirected:
        added = added.to_undirected()
    grown = Graph(
        torch.cat([graph.edge_index, added.edge_index], 1),
        x=x,
        y=None if graph.y is None else padded(graph.y, n, -1),
        edge_weight=_joined(graph.edge_weight, added.edge_weight),
        num_nodes=n,
        node_ids=node_ids,
        class_names=graph.class_names,
        name=graph.name,
        feature_names=graph.feature_names,
        edge_type=_joined(graph.edge_type, added.edge_type),
        edge_types=graph.edge_types,
        table=table,
        time=_extended(graph.time, n, np.nan),
        group=_extended(graph.group, n, -1),
        reading=graph.reading,
        value_of=_extended(graph.value_of, n, -1),
        edge_table=graph.edge_table,
    )
    if grown.edge_table is not None and np.size(given[0]):
        from lignn.graph import carried  # imports pyarrow

        return carried.with_edges(grown, edge_numbers(given[0], node_ids), *given[1:])
    if links is None or grown.table is None:
        return grown
    from lignn.graph import linked  # imports pyarrow

    return linked.with_new_rows(grown, graph, links)


def _following_numbers(graph: Graph, count: int) -> list[str]:
    """Return the numbers that follow those of the rows of a table without a column of ids."""
    assert graph.node_ids is not None
    last = max((int(name) for name in graph.node_ids[graph.is_row.numpy()] if name.isdecimal()), default=-1)
    return [str(last + 1 + number) for number in range(count)]


def _extended(values: np.ndarray | None, num_nodes: int, unknown: float) -> np.ndarray | None:
    """Return times or groups, unknown for the new nodes."""
    if values is None:
        return None
    return np.concatenate([values, np.full(num_nodes - len(values), unknown, values.dtype)])


def labels_for(labels: KnownLabels, num_nodes: int) -> KnownLabels:
    """Return the known labels, with unknown rows for the new nodes."""
    return replace(labels, mask=padded(labels.mask, num_nodes), onehot=padded(labels.onehot, num_nodes))


def state_for(prediction: Prediction, num_nodes: int) -> Tensor | None:
    """Return the equilibrium, with zeros for the new nodes; None if a solve cannot start from it."""
    solution = prediction.solution
    return padded(solution.value, num_nodes) if solution is not None and prediction.bound.accepts_start else None


def split_for(split: Split, num_nodes: int) -> Split:
    """Return the split with the new nodes in its test part."""
    return Split(padded(split.train, num_nodes), padded(split.val, num_nodes), ~padded(~split.test, num_nodes))


def padded(rows: Tensor, num_nodes: int, value: int = 0) -> Tensor:
    """Return `rows` with more rows, all of one value."""
    return torch.cat([rows, rows.new_full((num_nodes - len(rows), *rows.shape[1:]), value)])


def check_edges(what: str, parameter: str, old: Tensor | None, new: Any) -> None:
    """Refuse new edges without what the old ones have, or with what they do not have."""
    if (old is None) != (new is None):
        wanted = f"has {what}: give {parameter}" if new is None else f"has no {what}: leave them out"
        raise InputError(f"the graph {wanted} for the new edges")


def refuse_edge_columns(given: Any) -> None:
    """Refuse columns of new edges for a graph whose edges carry none."""
    if given is not None:
        raise InputError("the edges of the graph carry no columns: leave edge_columns out")


def _joined(old: Tensor | None, new: Tensor | None) -> Tensor | None:
    """Return the values of the old and the new edges."""
    return None if old is None or new is None else torch.cat([old, new.to(old.dtype)])


def _count_new(ids: Sequence[str] | None, features: Any) -> int:
    """Return how many nodes join a graph without features."""
    if features is not None and not isinstance(features, Integral):
        raise InputError("the graph has no features: give the number of new nodes instead of theirs")
    return len(ids) if ids is not None else max(int(features or 0), 0)


def edge_numbers(edges: Any, node_ids: np.ndarray | None) -> Any:
    """Return 2×E node numbers from numbers or ids."""
    texts = np.asarray(edges) if not isinstance(edges, Tensor) else None
    if texts is None or texts.dtype.kind not in "UTO":
        return edges
    if node_ids is None:
        raise InputError("the nodes of this graph have numbers, no ids: give edges as numbers")
    number = {str(name): i for i, name in enumerate(node_ids)}
    found = [[lookup(number, str(end)) for end in ends] for ends in texts]
    for ends, numbers in zip(texts, found, strict=True):
        if None in numbers:
            unknown = str(ends[numbers.index(None)])
            raise InputError(f"edge to node {unknown!r}, which is neither in the graph nor new")
    return np.array(found, dtype=np.int64)


def _stacked(x: Any, features: Any) -> Any:
    """Return old and new features, sparse if the old ones are."""
    if features is None or isinstance(features, Integral):
        raise InputError(f"the graph has {x.shape[1]} features: give those of the new nodes")
    sparse = sp.issparse(features)
    new: Any
    if isinstance(x, sp.csr_array):
        new = sp.csr_array(features if sparse else _table(features), dtype=x.dtype)
    else:
        new = torch.from_numpy(_table(features.toarray() if sparse else features)).to(x.dtype)
    if new.shape[1] != x.shape[1]:
        raise InputError(f"new nodes have {new.shape[1]} features, those of the graph {x.shape[1]}")
    return sp.vstack([x, new], format="csr") if isinstance(x, sp.csr_array) else torch.cat([x, new])


def _appended(table: pa.Table, features: Any) -> pa.Table:
    """Return the rows of the old and the new nodes."""
    from lignn.features import append, as_table  # imports pyarrow, which is slow and not needed without tables

    if features is None or isinstance(features, Integral):
        raise InputError(f"the graph has a table of {table.num_columns} columns: give a row for each new node")
    return append(table, as_table(features))


def _table(features: Any) -> np.ndarray:
    """Return features as an array, one row a node."""
    try:
        table = np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the features of the new nodes are not rows of numbers: {error}") from error
    if table.ndim != 2:
        raise InputError(f"features: one row a new node is needed, got an array of {table.ndim} dimension(s)")
    # torch cannot share a read-only array, such as that of a data frame
    return table if table.flags.writeable else table.copy()
