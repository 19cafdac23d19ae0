"""Upper bounds of the norms of propagation matrices, for proofs that a map contracts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from lignn.propagation.adjacency import Adjacency, TypedAdjacency
from lignn.propagation.streamed import StreamedAdjacency, StreamedTyped

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
    parts = adj.parts if isinstance(adj, TypedAdjacency | StreamedTyped) else (adj,)
    bound = {"rows": _rows, "spectral": _spectral}[kind]
    return tuple(bound(_Absolute.of(part)) for part in parts)


def least_norms(adj: Adjacency) -> list[tuple[float, ...]]:
    """Return the bounds of both kinds, or only one if it is nowhere above the other."""
    spectral, rows = norm_bounds(adj, "spectral"), norm_bounds(adj, "rows")
    if all(one <= other for one, other in zip(spectral, rows, strict=True)):
        return [spectral]
    return [rows] if all(one >= other for one, other in zip(spectral, rows, strict=True)) else [spectral, rows]


@dataclass(frozen=True)
class _Absolute:
    """Products with the absolute values of an operator, which a store has no negative ones of.

    Attributes:
        times: multiplies a vector.
        transposed: multiplies a vector with the transpose.
        diagonal: the diagonal.
        largest: returns the largest entry of a vector, of all processes.
    """

    times: Callable[[np.ndarray], np.ndarray]
    transposed: Callable[[np.ndarray], np.ndarray]
    diagonal: np.ndarray
    largest: Callable[[np.ndarray], float]

    @classmethod
    def of(cls, adj: Adjacency | StreamedAdjacency) -> _Absolute:
        """Return the products with an operator in memory or in a store."""
        if isinstance(adj, StreamedAdjacency):
            double, processes = adj.doubled(), adj.share.processes

            def product(transposed: bool) -> Callable[[np.ndarray], np.ndarray]:
                return lambda v: double.product(torch.from_numpy(v)[:, None], transposed)[:, 0].numpy()

            largest = lambda v: processes.largest(float(v.max()))  # noqa: E731
            return cls(product(False), product(True), double.diagonal(), largest)
        matrix = abs(adj.to_scipy().astype(np.float64))
        back = matrix.T.tocsr()
        return cls(lambda v: matrix @ v, lambda v: back @ v, matrix.diagonal(), lambda v: float(v.max(initial=0.0)))


def _rows(matrix: _Absolute) -> float:
    return matrix.largest(matrix.times(np.ones(len(matrix.diagonal))))


def _spectral(matrix: _Absolute) -> float:
    """Return a bound of `‖B‖₂` for a matrix B without negative entries.

    For every positive vector v, `‖B‖₂² = ρ(BᵀB) ≤ max_i (BᵀB v)_i / v_i` (Collatz and Wielandt). Each round of power
    iteration makes the quotient smaller or leaves it. The start `v_i = B_ii^-½` is the eigenvector of the symmetric
    normalisation of an undirected graph, whose bound is then 1 at once.
    """
    v = np.where(matrix.diagonal > 0, np.maximum(matrix.diagonal, 1e-12), 1.0) ** -0.5
    best = np.inf
    for _ in range(_ROUNDS):
        product = matrix.transposed(matrix.times(v))
        bound, most = matrix.largest(product / v), matrix.largest(product)
        if bound > best * (1 - 1e-4) or most == 0:
            return float(np.sqrt(min(bound, best)))
        best = bound
        v = np.maximum(product / most, 1e-6)  # positive, also where the matrix has a column of zeros
    return float(np.sqrt(best))
