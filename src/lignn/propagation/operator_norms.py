"""Upper bounds of the norms of propagation matrices, for proofs that a map contracts."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.sparse as sp

from lignn.propagation.adjacency import Adjacency
from lignn.propagation.typed import TypedAdjacency

Kind = Literal["spectral", "rows"]

_ROUNDS = 30
"""Rounds of the power iteration that sharpens the spectral bound; each costs two products with one column."""


def norm_bounds(adj: Adjacency, kind: Kind) -> tuple[float, ...]:
    """Return a bound of the norm of an operator, or of each of the operators Ã_r of a graph with types of edges.

    Args:
        adj: the operator.
        kind: "spectral" for `‖Ã‖₂`, the norm of `H ↦ Ã H` if states are measured by their Frobenius norm; "rows" for
            `max_i Σ_j |Ã_ij|`, its norm if they are measured by the length of their longest row.
    """
    parts = adj.parts if isinstance(adj, TypedAdjacency) else (adj,)
    return tuple(_bound(part.to_scipy(), kind) for part in parts)


def least_norms(adj: Adjacency) -> list[tuple[float, ...]]:
    """Return the bounds of both kinds, or only one if it is nowhere above the other."""
    spectral, rows = norm_bounds(adj, "spectral"), norm_bounds(adj, "rows")
    if all(one <= other for one, other in zip(spectral, rows, strict=True)):
        return [spectral]
    return [rows] if all(one >= other for one, other in zip(spectral, rows, strict=True)) else [spectral, rows]


def _bound(matrix: sp.csr_array, kind: Kind) -> float:
    absolute = abs(matrix.astype(np.float64))
    if not absolute.nnz:
        return 0.0
    return float(absolute.sum(1).max()) if kind == "rows" else _spectral(absolute)


def _spectral(matrix: sp.csr_array) -> float:
    """Return a bound of `‖B‖₂` for a matrix B without negative entries.

    For every positive vector v, `‖B‖₂² = ρ(BᵀB) ≤ max_i (BᵀB v)_i / v_i` (Collatz and Wielandt). Each round of power
    iteration makes the quotient smaller or leaves it. The start `v_i = B_ii^-½` is the eigenvector of the symmetric
    normalisation of an undirected graph, whose bound is then 1 at once.
    """
    diagonal = matrix.diagonal()
    v = np.where(diagonal > 0, np.maximum(diagonal, 1e-12), 1.0) ** -0.5
    transposed, best = matrix.T.tocsr(), np.inf
    for _ in range(_ROUNDS):
        product = transposed @ (matrix @ v)
        bound = float((product / v).max())
        if bound > best * (1 - 1e-4):
            return float(np.sqrt(min(bound, best)))
        best = bound
        v = np.maximum(product / product.max(), 1e-6)  # positive, also where the matrix has a column of zeros
    return float(np.sqrt(best))
