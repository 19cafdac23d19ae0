"""New nodes joining a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.classifier.live import Live
from lignn.errors import InputError
from lignn.graph import Graph, Split
from lignn.labels import KnownLabels


def grow(graph: Graph, features: Any, edges: Any, ids: Sequence[str] | None, edge_weight: Any) -> Graph:
    """`graph` with more nodes, numbered from its last one on, and the edges that join them.

    Where all edges of the graph go both ways, so do the new ones.
    """
    number = _count_new(graph, features, ids)
    n = graph.num_nodes + number
    if (graph.node_ids is None) != (ids is None):
        wanted = "has ids: give ids for the new nodes" if ids is None else "has no ids: leave them out"
        raise InputError(f"the graph {wanted}")
    if (graph.edge_weight is None) != (edge_weight is None):
        wanted = "has edge weights: give edge_weight" if edge_weight is None else "has no edge weights: leave them out"
        raise InputError(f"the graph {wanted} for the new edges")
    node_ids = None
    if graph.node_ids is not None:
        node_ids = np.concatenate([graph.node_ids, np.asarray(ids, graph.node_ids.dtype)])
    added = Graph(_edge_index(edges, node_ids), num_nodes=n, node_ids=node_ids, edge_weight=edge_weight)
    if graph.is_undirected:
        added = added.to_undirected()
    weight = None
    if graph.edge_weight is not None and added.edge_weight is not None:
        weight = torch.cat([graph.edge_weight, added.edge_weight.to(graph.edge_weight.dtype)])
    return Graph(
        torch.cat([graph.edge_index, added.edge_index], 1),
        x=None if graph.x is None else _stacked(graph.x, features),
        y=None if graph.y is None else torch.cat([graph.y, graph.y.new_full((number, *graph.y.shape[1:]), -1)]),
        edge_weight=weight,
        num_nodes=n,
        node_ids=node_ids,
        class_names=graph.class_names,
        name=graph.name,
    )


def labels_for(live: Live, num_nodes: int) -> KnownLabels:
    """What is known, with unknown rows for the new nodes."""
    labels = live.problem.labels
    return KnownLabels(padded(labels.mask, num_nodes), padded(labels.onehot, num_nodes), labels.multilabel)


def state_for(live: Live, num_nodes: int) -> Tensor | None:
    """The equilibrium, with zeros for the new nodes; None where a solve cannot start from it."""
    return padded(live.solution.value, num_nodes) if live.iterates and live.solution is not None else None


def split_for(split: Split, num_nodes: int) -> Split:
    """The new nodes belong to those to be predicted."""
    return Split(padded(split.train, num_nodes), padded(split.val, num_nodes), ~padded(~split.test, num_nodes))


def padded(rows: Tensor, num_nodes: int) -> Tensor:
    """More rows of zeros."""
    return torch.cat([rows, rows.new_zeros(num_nodes - len(rows), *rows.shape[1:])])


def _count_new(graph: Graph, features: Any, ids: Sequence[str] | None) -> int:
    if graph.x is None:
        if features is not None and not isinstance(features, int):
            raise InputError("the graph has no features: give the number of new nodes instead of theirs")
        number = len(ids) if ids is not None else features
    elif features is None or isinstance(features, int):
        raise InputError(f"the graph has {graph.num_features} features: give those of the new nodes")
    else:
        number = features.shape[0] if hasattr(features, "shape") else len(features)
    if not number:
        raise InputError("no new node is given")
    return int(number)


def _edge_index(edges: Any, node_ids: np.ndarray | None) -> Any:
    """2×E numbers from numbers or ids."""
    texts = np.asarray(edges) if not isinstance(edges, Tensor) else None
    if texts is None or texts.dtype.kind not in "UTO":
        return edges
    if node_ids is None:
        raise InputError("the nodes of this graph have numbers, no ids: give edges as numbers")
    number = {str(name): i for i, name in enumerate(node_ids)}
    try:
        return np.array([[number[str(end)] for end in ends] for ends in texts], dtype=np.int64)
    except KeyError as error:
        raise InputError(f"edge to node {error}, which is neither in the graph nor new") from error


def _stacked(x: Any, features: Any) -> Any:
    """Old and new features, sparse if the old ones are."""
    width = features.shape[1] if hasattr(features, "shape") and len(features.shape) == 2 else len(features[0])
    if width != x.shape[1]:
        raise InputError(f"new nodes have {width} features, those of the graph {x.shape[1]}")
    if isinstance(x, sp.csr_array):
        return sp.vstack([x, sp.csr_array(features, dtype=x.dtype)], format="csr")
    dense = features.toarray() if sp.issparse(features) else features
    return torch.cat([x, torch.as_tensor(np.asarray(dense)).to(x.dtype)])
