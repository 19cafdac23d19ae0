"""Rows of a table from a graph: what a node and its neighbours have, for classifiers that know nothing of edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from lignn.methods.problem import Problem
from lignn.propagation import Adjacency, SparseMatrix

Rows = Any
"""A dense array or a CSR matrix, one row per node."""


def width(num_features: int, num_classes: int, neighbours: bool) -> int:
    """Return the number of columns of `rows`."""
    return 2 * num_features + num_classes if neighbours else num_features


def rows(problem: Problem, neighbours: bool) -> Rows:
    """Return `[X | D⁻¹A X | A M_t Y]`: features, mean of the neighbours' features, counts of their known labels.

    A has no self-loops, so the label of a node is not in its own row. Sparse features are scaled to rows of length one.

    Args:
        problem: graph, features and known labels.
        neighbours: whether to add the blocks of the neighbours; without them the rows are X.
    """
    own = problem.once("rows of features", lambda: _features(problem))
    if not neighbours:
        return own
    mean = problem.once("rows of neighbours", lambda: _mean_of_neighbours(problem, own))
    counts = (_operator(problem, "none") @ problem.labels.onehot.cpu().numpy()).astype(own.dtype)
    if sp.issparse(own):
        return sp.csr_array(sp.hstack([own, mean, sp.csr_array(counts)], format="csr"))
    return np.hstack([own, mean, counts])


def _features(problem: Problem) -> Rows:
    x = problem.x
    if x is None:
        return np.zeros((len(problem.labels.mask), 0))
    if not isinstance(x, SparseMatrix):
        return x.cpu().numpy().astype(np.float64)
    matrix = sp.csr_array(x.to("cpu").to_scipy(), dtype=np.float64)
    length = np.sqrt(matrix.multiply(matrix).sum(1))
    return sp.csr_array(sp.diags_array(1 / np.where(length > 0, length, 1)) @ matrix)


def _mean_of_neighbours(problem: Problem, own: Rows) -> Rows:
    mean = _operator(problem, "row") @ own
    return sp.csr_array(mean) if sp.issparse(own) else np.asarray(mean)


def _operator(problem: Problem, normalization: Any) -> sp.csr_array:
    """Return A or D⁻¹A without self-loops, in double precision."""

    def make() -> sp.csr_array:
        edges = problem.edges.without_self_loops()
        return sp.csr_array(Adjacency.normalized(edges, normalization, self_loops=False).to_scipy(), dtype=np.float64)

    return problem.once(("neighbours", normalization), make)
