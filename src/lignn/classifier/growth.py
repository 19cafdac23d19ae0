"""New nodes that join a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.classifier.columns import align_table
from lignn.errors import InputError
from lignn.graph import Graph, Split
from lignn.graph.names import lookup
from lignn.labels import KnownLabels
from lignn.methods import Prediction


def grow(graph: Graph, features: Any, edges: Any, ids: Sequence[str] | None, edge_weight: Any) -> Graph:
    """Return `graph` with more nodes, which follow its last one, and the edges that join them.

    In an undirected graph the new edges go both ways too.
    """
    x = None if graph.x is None else _stacked(graph.x, align_table(features, graph))
    n = graph.num_nodes + _count_new(ids, features) if x is None else x.shape[0]
    if n == graph.num_nodes:
        raise InputError("no new node is given")
    if (graph.node_ids is None) != (ids is None):
        wanted = "has ids: give ids for the new nodes" if ids is None else "has no ids: leave them out"
        raise InputError(f"the graph {wanted}")
    check_weights(graph, edge_weight)
    node_ids = None
    if graph.node_ids is not None:
        node_ids = np.concatenate([graph.node_ids, np.asarray(ids, graph.node_ids.dtype)])
    added = Graph(edge_numbers(edges, node_ids), num_nodes=n, node_ids=node_ids, edge_weight=edge_weight)
    if graph.is_undirected:
        added = added.to_undirected()
    weight = None
    if graph.edge_weight is not None and added.edge_weight is not None:
        weight = torch.cat([graph.edge_weight, added.edge_weight.to(graph.edge_weight.dtype)])
    return Graph(
        torch.cat([graph.edge_index, added.edge_index], 1),
        x=x,
        y=None if graph.y is None else padded(graph.y, n, -1),
        edge_weight=weight,
        num_nodes=n,
        node_ids=node_ids,
        class_names=graph.class_names,
        name=graph.name,
        feature_names=graph.feature_names,
    )


def check_weights(graph: Graph, edge_weight: Any) -> None:
    """Refuse new edges without weights for a graph that has some, and the other way round."""
    if (graph.edge_weight is None) != (edge_weight is None):
        wanted = "has edge weights: give edge_weight" if edge_weight is None else "has no edge weights: leave them out"
        raise InputError(f"the graph {wanted} for the new edges")


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
