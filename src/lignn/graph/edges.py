"""The same nodes with other edges: fewer, reversed, or merged. These are the methods of `Graph` of similar names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

if TYPE_CHECKING:
    from lignn.graph.graph import Graph


def where(graph: Graph, keep: Tensor) -> Graph:
    """Return the graph with these edges, given as a mask or as numbers."""
    weight, edge_type = (None if part is None else part[keep] for part in (graph.edge_weight, graph.edge_type))
    return graph.replace(edge_index=graph.edge_index[:, keep], edge_weight=weight, edge_type=edge_type)


def of_type(graph: Graph, number: int) -> Graph:
    """Return the graph with the edges of one type, which then have none."""
    assert graph.edge_type is not None
    return where(graph, graph.edge_type == number).replace(edge_type=None, edge_types=None)


def are_undirected(graph: Graph) -> bool:
    """Return whether every edge has a reverse edge, equally often and with the same weights."""
    source, target = graph.edge_index.numpy()
    weight = np.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight.numpy()
    kind = np.zeros(graph.num_edges, np.int8) if graph.edge_type is None else graph.edge_type.numpy()
    forth, back = np.lexsort((weight, kind, target, source)), np.lexsort((weight, kind, source, target))
    pairs = ((source, target), (target, source), (kind, kind), (weight, weight))
    return all(np.array_equal(ours[forth], reversed_[back]) for ours, reversed_ in pairs)


def with_reversed(graph: Graph) -> Graph:
    """Return the graph with the reverse of every edge but self-loops appended."""
    proper = graph.edge_index[0] != graph.edge_index[1]
    repeated = torch.cat([torch.arange(graph.num_edges), proper.nonzero().flatten()])
    edge_index = torch.cat([graph.edge_index, graph.edge_index[:, proper].flip(0)], 1)
    return where(graph, repeated).replace(edge_index=edge_index)


def symmetrised(graph: Graph) -> Graph:
    """Return the graph with repeated edges merged, and the larger weight of the two directions for both."""
    return _of_matrices(graph, lambda matrix: matrix.maximum(matrix.T))


def merged(graph: Graph) -> Graph:
    """Return the graph with repeated edges merged (weights summed), sorted by type, source, then target."""
    return _of_matrices(graph, lambda matrix: matrix)


def _of_matrices(graph: Graph, change: Callable[[sp.csr_array], sp.csr_array]) -> Graph:
    """Return the graph with the edges of `change(matrix)` instead of those of each type's matrix."""
    kinds = (
        [graph] if graph.edge_type is None else [of_type(graph, kind) for kind in range(len(graph.edge_types or ()))]
    )
    matrices = [change(kind.to_scipy()).tocoo() for kind in kinds]
    weight = edge_type = None
    if graph.edge_weight is not None:
        weight = torch.from_numpy(np.concatenate([matrix.data for matrix in matrices])).to(graph.edge_weight.dtype)
    if graph.edge_type is not None:
        edge_type = np.repeat(np.arange(len(matrices)), [matrix.nnz for matrix in matrices])
    edge_index = np.concatenate([np.stack(matrix.coords) for matrix in matrices], 1).astype(np.int64)
    return graph.replace(edge_index=edge_index, edge_weight=weight, edge_type=edge_type)
