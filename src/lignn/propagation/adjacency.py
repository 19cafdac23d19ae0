"""`Adjacency`: the normalised propagation matrix Ã of a graph and what the methods derive from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar, get_args
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigs, eigsh
from torch import Tensor

from lignn.errors import ConfigError, ConvergenceError, InputError, did_you_mean
from lignn.graph import Graph
from lignn.propagation.sparse import SparseMatrix, numpy_dtype

Normalization = Literal["symmetric", "row", "none"]
T = TypeVar("T")

DENSE_BELOW = 500  # nodes up to which all eigenvalues are computed


@dataclass(frozen=True, eq=False, repr=False)
class Adjacency(SparseMatrix):
    """Square CSR operator on node signals: row = target, column = source, so `adj @ X` gathers at the targets."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shape[0] != self.shape[1]:
            raise InputError(f"an adjacency matrix is square, not {self.shape[0]} × {self.shape[1]}")

    @classmethod
    def normalized(
        cls,
        graph: Graph,
        normalization: Normalization = "symmetric",
        self_loops: bool = True,
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """The propagation matrix of a graph, Ã = D^-1/2 (A + I) D^-1/2 unless told otherwise.

        Degrees are sums of weights at the target. Edges given twice add up. A node that has a self-loop keeps it with
        its weight and gets no second one (PyG's `gcn_norm`). A node without any edge or loop has a row of zeros.

        Args:
            graph: its edges, taken as they are: directed, source → target.
            normalization: "symmetric" D^-1/2 A D^-1/2, "row" D^-1 A, or "none".
            self_loops: give a self-loop of weight 1 to each node that has none; False leaves all as it is.
            dtype: float32 or float64.
        """
        if normalization not in get_args(Normalization):
            choices = get_args(Normalization)
            raise ConfigError(f"unknown normalization {normalization!r}: {did_you_mean(normalization, choices)}")
        matrix = _edges_as_csr(graph, self_loops, dtype)
        if normalization != "none":
            entries_per_row = np.diff(matrix.indptr)
            degree = matrix.sum(axis=1, dtype=np.float64)
            power = -0.5 if normalization == "symmetric" else -1.0
            scale = np.power(degree, power, out=np.zeros_like(degree), where=degree > 0).astype(matrix.dtype)
            factor = np.repeat(scale, entries_per_row)
            if normalization == "symmetric":
                factor *= scale[
                    matrix.indices
                ]  # the product is formed first, so that entries ij and ji agree to the bit
            matrix.data *= factor
        return cls._adopt(matrix, dtype)

    def lazy(self, lam: float) -> Self:
        """A_λ = (1 - λ) I + λ Ã, the matrix of label propagation."""
        if not 0 <= lam <= 1:
            raise InputError(f"λ = {lam} is not between 0 and 1")
        matrix = self.to_scipy()
        return self._like((1 - lam) * sp.eye_array(self.shape[0], dtype=matrix.dtype, format="csr") + lam * matrix)

    def without_diagonal(self) -> Self:
        """Ã - diag(Ã): no node sees itself."""
        row, column = self._coordinates()
        return self._kept(row != column)

    def restricted(self, rows: Tensor | None = None, columns: Tensor | None = None) -> Self:
        """The same shape with only the entries whose row and column are in the masks; None keeps all."""
        row, column = self._coordinates()
        keep = np.ones(self.nnz, dtype=bool)
        if rows is not None:
            keep &= self._mask(rows)[row]
        if columns is not None:
            keep &= self._mask(columns)[column]
        return self._kept(keep)

    def subgraph(self, mask: Tensor) -> Self:
        """Rows and columns of the nodes in the mask only, entries as they are (nothing is normalised again)."""
        nodes = np.flatnonzero(self._mask(mask))
        return self._like(self.to_scipy()[nodes][:, nodes])

    def spectral_radius(self) -> float:
        """ρ(Ã), the largest absolute eigenvalue, to about 1e-8 relative to it."""
        return _spectral_radius(self.to_scipy().astype(np.float64), symmetric=self.T is self)

    @property
    def edge_index(self) -> Tensor:
        """2×nnz, sources above targets, ordered by target: for models that take an edge list."""
        row, column = self._coordinates()
        return torch.from_numpy(np.stack([column, row]).astype(np.int64)).to(self.device)

    @property
    def edge_weight(self) -> Tensor:
        """The entries, in the order of `edge_index`."""
        return self.values

    def _coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        matrix = self.to_scipy()
        return np.repeat(np.arange(self.shape[0]), np.diff(matrix.indptr)), matrix.indices

    def _mask(self, mask: Tensor) -> np.ndarray:
        array = torch.as_tensor(mask).cpu().numpy()
        if array.dtype != bool or array.shape != (self.shape[0],):
            raise InputError(
                f"a mask over the nodes is boolean with {self.shape[0]} entries, "
                f"the one given is {array.dtype} of shape {array.shape}"
            )
        return array

    def _kept(self, keep: np.ndarray) -> Self:
        """The entries chosen by a mask over them, in the same shape."""
        matrix = self.to_scipy()
        indptr = np.concatenate([[0], np.cumsum(keep)])[matrix.indptr]
        return self._like(sp.csr_array((matrix.data[keep], matrix.indices[keep], indptr), shape=self.shape))


class PerOperator(WeakKeyDictionary[Adjacency, T]):
    """Cache of what a module has computed for each operator, dropped together with that operator.

    A deep copy and a pickle of the cache are empty, so a copied or loaded module computes its own values.
    """

    def __deepcopy__(self, memo: Any) -> Self:
        return type(self)()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


def _edges_as_csr(graph: Graph, self_loops: bool, dtype: torch.dtype) -> sp.csr_array:
    n = graph.num_nodes
    source, target = graph.edge_index.cpu().numpy().astype(np.int32 if n < 2**31 else np.int64)
    kind = numpy_dtype(dtype)
    values = np.ones(len(source), kind) if graph.edge_weight is None else graph.edge_weight.cpu().numpy().astype(kind)
    if self_loops:
        bare = np.ones(n, dtype=bool)
        bare[source[source == target]] = False
        nodes = np.flatnonzero(bare).astype(source.dtype)
        source, target = np.concatenate([source, nodes]), np.concatenate([target, nodes])
        values = np.concatenate([values, np.ones(len(nodes), kind)])
    return sp.coo_array((values, (target, source)), shape=(n, n)).tocsr()


def _spectral_radius(matrix: sp.csr_array, symmetric: bool) -> float:
    n = matrix.shape[0]
    sums = matrix.sum(axis=1)
    if matrix.nnz == 0:
        return 0.0
    if matrix.data.min() >= 0 and np.ptp(sums) <= 1e-12 * sums.max():
        return float(sums.max())  # Collatz-Wielandt: the radius lies between the smallest and the largest row sum
    # An entry between two strongly connected components is on no cycle and does not change the spectrum. Without them
    # the eigenvalues of an acyclic graph, on which Arnoldi's method fails, are the diagonal.
    component = connected_components(matrix, connection="strong")[1]
    row = np.repeat(np.arange(n), np.diff(matrix.indptr))
    cyclic = component[row] == component[matrix.indices]
    if np.array_equal(row[cyclic], matrix.indices[cyclic]):
        return float(np.abs(matrix.data[cyclic]).max(initial=0.0))
    matrix = sp.csr_array((matrix.data[cyclic], (row[cyclic], matrix.indices[cyclic])), shape=matrix.shape)
    if n <= DENSE_BELOW:
        return float(np.abs(np.linalg.eigvals(matrix.toarray())).max())
    start = np.random.default_rng(0).random(n)
    try:
        if symmetric:  # the error of an eigenvalue is the square of that of its vector
            found = eigsh(matrix, k=1, tol=1e-6, v0=start, return_eigenvectors=False)
        else:
            found = eigs(matrix, k=1, tol=1e-8, v0=start, maxiter=1000, return_eigenvectors=False)
    except ArpackNoConvergence as error:
        raise ConvergenceError(
            f"the largest eigenvalue of this {n} × {n} matrix was not found: many have nearly the same absolute value; "
            "self-loops or the row normalization separate them",
            solution=None,
        ) from error
    return float(np.abs(found[0]))
