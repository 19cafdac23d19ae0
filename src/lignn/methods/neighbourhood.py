"""Rows of a table from a graph: what a node and its neighbours have, for classifiers that know nothing of edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from lignn.errors import ConfigError
from lignn.methods.problem import Problem
from lignn.propagation import Adjacency, SparseMatrix
from lignn.propagation.adjacency import by_type

Rows = Any
"""A dense array or a CSR matrix, one row per node."""

_POWERS = 4
"""Power iterations of the decomposition."""
_ROUNDING = 1e-9
"""Part of a sum below which what is left of it is rounding."""


class Way(NamedTuple):
    """A way in which labels reach a node: `A_t` of one type of edges, or two steps along them.

    Attributes:
        matrix: `A_t` without self-loops.
        returning: the diagonal of `A_t A_t` for two hops, None for one.
    """

    matrix: sp.csr_array
    returning: np.ndarray | None

    def sums(self, state: np.ndarray) -> np.ndarray:
        """Return `A_t Ŷ`, or `(A_t A_t - diag(A_t A_t)) Ŷ`: a node never counts itself."""
        one = self.matrix @ state
        if self.returning is None:
            return one
        two = self.matrix @ one
        return without_rounding(two - self.returning[:, None] * state, two)

    def weights(self, node: int) -> np.ndarray:
        """Return how much every other node counts for one node."""
        row = self.matrix[[node]]
        if self.returning is None:
            return row.toarray()[0]
        found = (row @ self.matrix).toarray()[0]
        found[node] = 0
        return found


@dataclass(frozen=True)
class LabelColumns:
    """What a row says of other nodes' labels, for each type of edges and each hop apart.

    Attributes:
        hops: 1 for neighbours; 2 also for nodes that share a neighbour; 0 for no labels.
        types: names of the types of edges; empty for all edges together.
        shares: share of each class and logarithm of its number, instead of the number alone.
    """

    hops: int = 1
    types: tuple[str, ...] = ()
    shares: bool = False

    def __post_init__(self) -> None:
        if self.hops not in (0, 1, 2):
            raise ConfigError(f"hops: 0, 1 or 2 is needed, got {self.hops!r}")

    def width(self, num_classes: int) -> int:
        """Return the number of columns."""
        return max(len(self.types), 1) * self.hops * num_classes * (1 + self.shares)

    def ways(self, problem: Problem) -> list[Way]:
        """Return the ways in which labels reach a node, in the order of the columns."""

        def make() -> list[Way]:
            edges = problem.edges.without_self_loops()
            found = []
            for part in by_type(edges, self.types) if self.types else [edges]:
                matrix = _in_numpy(Adjacency.normalized(part, "none", self_loops=False))
                if self.hops >= 1:
                    found.append(Way(matrix, None))
                if self.hops == 2:
                    found.append(Way(matrix, np.asarray(matrix.multiply(matrix.T).sum(1)).ravel()))
            return found

        return problem.once(("ways of labels", self), make)

    def of(self, problem: Problem, state: Tensor) -> np.ndarray:
        """Return the columns for a label state (n×c), whose rows of zeros stand for unknown labels."""
        present = with_presence(state)
        blocks = [self.shown(way.sums(present)) for way in self.ways(problem)]
        return np.hstack(blocks) if blocks else present[:, :0]

    def shown(self, sums: np.ndarray) -> np.ndarray:
        """Return the columns of sums of labels and, in the last column, of their number."""
        if not self.shares:
            return sums[:, :-1]
        total = sums[:, -1:]
        shares = np.divide(sums[:, :-1], total, out=np.zeros_like(sums[:, :-1]), where=total > 0)
        return np.hstack([shares, np.log1p(np.maximum(sums[:, :-1], 0))])


def without_rounding(left: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return what is left of a sum after parts were taken away, with zeros where it is rounding."""
    return np.where(np.abs(left) > _ROUNDING * np.abs(whole), left, 0.0)


COUNTS = LabelColumns()
"""Numbers of the neighbours' known labels."""


def with_presence(state: Tensor) -> np.ndarray:
    """Return a label state with a further column, which is 1 where something is known, in double precision."""
    found = state.cpu().numpy().astype(np.float64)
    return np.hstack([found, found.any(1, keepdims=True)])


def width(num_features: int, num_classes: int, neighbours: bool, labels: LabelColumns = COUNTS) -> int:
    """Return the number of columns of `rows`."""
    return 2 * num_features + labels.width(num_classes) if neighbours else num_features


def rows(
    problem: Problem, neighbours: bool, inputs: np.ndarray | None = None, projection: np.ndarray | None = None
) -> Rows:
    """Return `[X | D⁻¹A X | columns of labels]`: features, mean of the neighbours' features, other nodes' labels.

    A has no self-loops, so the label of a node is not in its own row. Sparse features are scaled to rows of length one.

    Args:
        problem: graph, features and known labels.
        neighbours: whether to add the blocks of the neighbours; without them the rows are X.
        inputs: the columns of labels; default the neighbours' numbers of known labels, `A M_t Y`.
        projection: P, for X P in place of X; None for X.
    """
    if not neighbours:
        return own_features(problem, projection)
    inputs = COUNTS.of(problem, problem.labels.onehot) if inputs is None else inputs
    return beside(features(problem, projection), inputs)


def features(problem: Problem, projection: np.ndarray | None = None) -> Rows:
    """Return `[X | D⁻¹A X]`, or the same of X P."""

    def make() -> Rows:
        own = own_features(problem, projection)
        mean = Adjacency.normalized(problem.edges.without_self_loops(), "row", self_loops=False)
        return beside(own, _in_numpy(mean) @ own)

    return problem.once(("features of neighbourhoods", _key(projection)), make)


def own_features(problem: Problem, projection: np.ndarray | None = None) -> Rows:
    """Return X, or X P; sparse rows are divided by their lengths."""
    own = problem.once("rows of features", lambda: _own_features(problem))
    return own if projection is None else problem.once(("projected", _key(projection)), lambda: own @ projection)


def _key(projection: np.ndarray | None) -> int | None:
    return None if projection is None else hash(projection.tobytes())


def principal(problem: Problem, count: int) -> np.ndarray:
    """Return the directions (d×count) in which the features of all seen nodes have the largest second moments.

    They are those of a randomised singular value decomposition: Halko, Martinsson and Tropp, SIAM Review 2011. Labels
    have no part in them.
    """
    own = own_features(problem)
    x = own if problem.seen is None else own[problem.seen.numpy()]
    found = np.random.default_rng(0).standard_normal((x.shape[1], count))
    for _ in range(_POWERS):
        found = np.linalg.qr(x.T @ (x @ found))[0]
    turned = np.linalg.svd(x @ found, full_matrices=False)[2]
    return found @ turned.T


def beside(left: Rows, right: Rows) -> Rows:
    """Return two blocks of columns as one, sparse if the left one is."""
    if sp.issparse(left):
        return sp.csr_array(sp.hstack([left, sp.csr_array(right)], format="csr"))
    return np.hstack([left, np.asarray(right)])


def _own_features(problem: Problem) -> Rows:
    x = problem.x
    if x is None:
        return np.zeros((len(problem.labels.mask), 0))
    if not isinstance(x, SparseMatrix):
        return x.cpu().numpy().astype(np.float64)
    matrix = sp.csr_array(x.to("cpu").to_scipy(), dtype=np.float64)
    length = np.sqrt(matrix.multiply(matrix).sum(1))
    return sp.csr_array(sp.diags_array(1 / np.where(length > 0, length, 1)) @ matrix)


def _in_numpy(adj: Adjacency) -> sp.csr_array:
    return sp.csr_array(adj.to_scipy(), dtype=np.float64)
