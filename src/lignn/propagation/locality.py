"""The order in which the rows of a matrix are computed, so that neighbouring rows gather the same sources.

A product gathers one row of the dense matrix for every entry. If that matrix is larger than the caches, and the nodes
of a graph come in any order, nearly every gather goes to memory. Computed community by community, most of them find
what a row just before has gathered.

Only the order of the rows changes. The dense matrices stay as they are, nobody outside sees the order, and the sum of a
row has the same bits. The order is chosen by counts of the graph alone, never by the clock.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from numba import njit
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

from lignn.propagation.product_kernels import cached_on_disk

WORTH_ABOVE = 1 << 20  # bytes of the dense matrix; a smaller one stays in the second-level cache
REPAID_AFTER = 16  # products; finding an order takes about as long as this many products save
WINDOW = 1 << 12  # gathered rows that are still at hand: with 64 columns they fill a second-level cache
GAIN = 0.1  # of all entries; if fewer find their source at hand that did not before, the rows stay in their own order
HUB = 8  # times the mean number of entries; a row with more is a hub
SWEEPS = 2  # of label propagation; more make the communities larger, and no product faster

Arrays = tuple[Tensor, Tensor, Tensor, Tensor | None]
"""Row pointers, indices and values of rows in some order, and that order; None for the order of the matrix."""


def ordered(indptr: Tensor, indices: Tensor, values: Tensor) -> Arrays:
    """Return the rows of a square matrix in a better order, or as they are if no order is much better."""
    rows = len(indptr) - 1
    matrix = sp.csr_array((values.numpy(), indices.numpy(), indptr.numpy()), shape=(rows, rows))
    order = row_order(matrix)
    if order is None:
        return indptr, indices, values, None
    sorted_rows = matrix[order]
    index = indices.numpy().dtype
    arrays = sorted_rows.indptr.astype(index), sorted_rows.indices.astype(index), sorted_rows.data, order.astype(index)
    first, second, third, fourth = (torch.from_numpy(array) for array in arrays)
    return first, second, third, fourth


def row_order(matrix: sp.csr_array) -> np.ndarray | None:
    """Return an order of the rows of a square matrix, or None if their own is about as good.

    A graph with hubs is ordered by communities: everything is within a few steps of a hub, so Cuthill and McKee's
    breadth-first search does not separate anything there. On a graph without hubs, such as a grid or a graph of nearest
    neighbours, that search is the better order.
    """
    degree = np.diff(matrix.indptr)
    if degree.max(initial=0) > HUB * degree.mean():
        order = np.argsort(_communities(matrix.indptr, matrix.indices, SWEEPS), kind="stable")
    else:
        order = reverse_cuthill_mckee(matrix)
    orders = np.arange(len(order)), np.asarray(order, np.int64)
    before, after = (_at_hand(matrix.indptr, matrix.indices, rows, WINDOW) for rows in orders)
    return order if after - before > GAIN * matrix.nnz else None


@cached_on_disk(njit, nogil=True)
def _communities(indptr, indices, sweeps):  # type: ignore[no-untyped-def]
    """Return the community of each node: in every sweep, each node takes the one most common among its sources.

    Raghavan, Albert and Kumara, "Near linear time algorithm to detect community structures in large-scale networks",
    2007. Nodes are visited in their order; a tie keeps the own community, or takes the one that was counted first.
    """
    nodes = len(indptr) - 1
    community = np.arange(nodes).astype(indices.dtype)
    count = np.zeros(nodes, np.int64)
    for _ in range(sweeps):
        for node in range(nodes):
            best, most = community[node], 0
            for entry in range(indptr[node], indptr[node + 1]):
                other = community[indices[entry]]
                if indices[entry] != node:
                    count[other] += 1
                    if count[other] > most or (count[other] == most and other == community[node]):
                        best, most = other, count[other]
            for entry in range(indptr[node], indptr[node + 1]):
                count[community[indices[entry]]] = 0
            community[node] = best
    return community


@cached_on_disk(njit, nogil=True)
def _at_hand(indptr, indices, order, window):  # type: ignore[no-untyped-def]
    """Count the entries whose source was gathered at most `window` entries before, if rows are computed in `order`."""
    gathered = np.full(len(indptr) - 1, -window - 1)
    now, count = 0, 0
    for row in order:
        for entry in range(indptr[row], indptr[row + 1]):
            count += now - gathered[indices[entry]] <= window
            gathered[indices[entry]] = now
            now += 1
    return count
