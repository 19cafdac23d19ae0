"""Nearest-neighbour graphs from features."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.errors import GraphError
from lignn.graph import validate
from lignn.graph.graph import Graph

_BLOCK = 2**24
"""Number of distances in memory at a time: 64 MiB in float32."""


def knn(x: Any, k: int, **parts: Any) -> Graph:
    """Return a graph with a directed edge from each row of `x` to its `k` nearest other rows, in Euclidean distance.

    The search is exact. It works on blocks of rows, so that no n×n matrix is needed. Distances are computed from
    coordinate differences, not from expanded products, so that equal distances (common with integer features) are
    exactly equal. Among equally near rows, those that `torch.topk` selects are taken.

    Args:
        x: features, one row per node, dense or sparse.
        k: number of neighbours of each node.
        parts: other arguments of `Graph`.
    """
    features = validate.features(x)
    dense = torch.from_numpy(features.toarray()) if isinstance(features, sp.csr_array) else features
    n = len(dense)
    if not 1 <= k < n:
        raise GraphError(f"k: between 1 and {n - 1} neighbours are possible among {n} rows, got {k}")
    target = torch.cat([_nearest(dense, block, k) for block in torch.arange(n).split(max(1, _BLOCK // n))])
    source = torch.arange(n).repeat_interleave(k)
    return Graph(torch.stack([source, target.flatten()]), x=features, **parts)


def _nearest(x: Tensor, rows: Tensor, k: int) -> Tensor:
    """Return the k nearest rows to each of `rows`, excluding the row itself, which need not come first among ties."""
    distance = torch.cdist(x[rows], x, compute_mode="donot_use_mm_for_euclid_dist")
    near = distance.topk(k + 1, largest=False).indices
    itself = near == rows[:, None]
    itself[~itself.any(1), -1] = True
    return near[~itself].view(len(rows), k)
