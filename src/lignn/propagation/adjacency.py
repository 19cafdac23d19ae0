"""`Adjacency`: the normalised propagation matrix Ã of a graph, alone or one for each type of edges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
Value = TypeVar("Value")

DENSE_UP_TO = 500  # nodes; for so few, all eigenvalues of the dense matrix are computed


@dataclass(frozen=True, eq=False, repr=False)
class Adjacency(SparseMatrix):
    """Square sparse matrix over the nodes of a graph: rows are targets, columns are sources of edges.

    Row i of `adj @ X` is the weighted sum of the rows of X that belong to the sources of node i. Derived matrices are
    computed on the CPU and moved to the device of this one, as `SparseMatrix` describes.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shape[0] != self.shape[1]:
            raise InputError(f"an adjacency matrix must be square, not {self.shape[0]} × {self.shape[1]}")

    @classmethod
    def normalized(
        cls,
        graph: Graph,
        normalization: Normalization = "symmetric",
        self_loops: bool = True,
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """Return the propagation matrix of a graph, by default Ã = D^-1/2 (A + I) D^-1/2.

        The degree of a node is the sum of the weights of its incoming edges. The weights of repeated edges are added.
        A node that already has a self-loop keeps its weight and gets no second one, as in PyG's `gcn_norm`. A node
        without edges and without a self-loop has a row of zeros.

        Args:
            graph: the graph; its edges are directed from source to target and are used as given.
            normalization: "symmetric" for D^-1/2 A D^-1/2, "row" for D^-1 A, or "none".
            self_loops: whether to add a self-loop of weight 1 to each node that has none.
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
                factor *= scale[matrix.indices]
            matrix.data *= factor  # scale_i * scale_j comes first, so that entries ij and ji have the same bits
        return cls._wrap(matrix, dtype)

    def lazy(self, lam: float) -> Self:
        """Return A_λ = (1 - λ) I + λ Ã, the matrix of label propagation."""
        if not 0 <= lam <= 1:
            raise InputError(f"λ must be between 0 and 1, not λ = {lam}")
        matrix = self.to_scipy()
        identity = sp.eye_array(self.shape[0], dtype=matrix.dtype, format="csr")
        return self._wrap_like_self((1 - lam) * identity + lam * matrix)

    def without_diagonal(self) -> Self:
        """Return Ã - diag(Ã), in which no node is its own neighbour."""
        row, column = self._coordinates()
        return self._selected(row != column)

    def restricted(self, rows: Tensor | None = None, columns: Tensor | None = None) -> Self:
        """Return a matrix of the same shape with only the entries whose row and column are in the masks.

        Args:
            rows: boolean mask over the nodes; None keeps all rows.
            columns: boolean mask over the nodes; None keeps all columns.
        """
        row, column = self._coordinates()
        keep = np.ones(self.nnz, dtype=bool)
        if rows is not None:
            keep &= self._as_node_mask(rows)[row]
        if columns is not None:
            keep &= self._as_node_mask(columns)[column]
        return self._selected(keep)

    def subgraph(self, mask: Tensor) -> Self:
        """Return the rows and columns of the nodes in the mask. The entries are not normalised again."""
        nodes = np.flatnonzero(self._as_node_mask(mask))
        return self._wrap_like_self(self.to_scipy()[nodes][:, nodes])

    def spectral_radius(self) -> float:
        """Return ρ(Ã), the largest absolute eigenvalue, with a relative error of about 1e-8."""
        return _spectral_radius(self.to_scipy().astype(np.float64), symmetric=self.T is self)

    @property
    def edge_index(self) -> Tensor:
        """Edge list of shape 2 × nnz for models that need one: sources, then targets; sorted by target."""
        row, column = self._coordinates()
        return torch.from_numpy(np.stack([column, row]).astype(np.int64)).to(self.device)

    @property
    def edge_weight(self) -> Tensor:
        """Weights of the edges, in the order of `edge_index`."""
        return self.values

    def _coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        matrix = self.to_scipy()
        return np.repeat(np.arange(self.shape[0]), np.diff(matrix.indptr)), matrix.indices

    def _as_node_mask(self, mask: Tensor) -> np.ndarray:
        array = torch.as_tensor(mask).cpu().numpy()
        if array.dtype != bool or array.shape != (self.shape[0],):
            raise InputError(
                f"a mask over the nodes must be boolean with {self.shape[0]} entries, "
                f"not {array.dtype} of shape {array.shape}"
            )
        return array

    def _selected(self, keep: np.ndarray) -> Self:
        """Return a matrix of the same shape with only the entries in a mask over the entries."""
        matrix = self.to_scipy()
        indptr = np.concatenate([[0], np.cumsum(keep)])[matrix.indptr]
        return self._wrap_like_self(sp.csr_array((matrix.data[keep], matrix.indices[keep], indptr), shape=self.shape))


class PerOperator(WeakKeyDictionary[Adjacency, Value]):
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
        without_loop = np.ones(n, dtype=bool)
        without_loop[source[source == target]] = False
        nodes = np.flatnonzero(without_loop).astype(source.dtype)
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
    # An entry between two strongly connected components is on no cycle and does not change the spectrum. Without these
    # entries, the matrix of an acyclic graph, for which Arnoldi's method fails, is diagonal.
    component = connected_components(matrix, connection="strong")[1]
    row = np.repeat(np.arange(n), np.diff(matrix.indptr))
    cyclic = component[row] == component[matrix.indices]
    if np.array_equal(row[cyclic], matrix.indices[cyclic]):
        return float(np.abs(matrix.data[cyclic]).max(initial=0.0))
    matrix = sp.csr_array((matrix.data[cyclic], (row[cyclic], matrix.indices[cyclic])), shape=matrix.shape)
    if n <= DENSE_UP_TO:
        return float(np.abs(np.linalg.eigvals(matrix.toarray())).max())
    start = np.random.default_rng(0).random(n)
    try:
        if symmetric:  # the error of an eigenvalue is the square of the error of its eigenvector
            found = eigsh(matrix, k=1, tol=1e-6, v0=start, return_eigenvectors=False)
        else:
            found = eigs(matrix, k=1, tol=1e-8, v0=start, maxiter=1000, return_eigenvectors=False)
    except ArpackNoConvergence as error:
        raise ConvergenceError(
            f"the largest eigenvalue of the {n} × {n} adjacency matrix was not found, because many eigenvalues have "
            "nearly the same absolute value: add self-loops or use normalization='row'",
            solution=None,
        ) from error
    return float(np.abs(found[0]))


@dataclass(frozen=True, eq=False, repr=False)
class TypedAdjacency(Adjacency):
    """The sum `Σ_r Ã_r` over the types r of edges, and the matrices Ã_r themselves.

    As an `Adjacency` it is the sum: so are its products, its transpose and all matrices that are derived from it. A
    network with a weight per type multiplies with the `parts`.

    Attributes:
        parts: Ã_r = D_r^-1 A_r, the mean over the sources of the edges of type r. A node without such edges has a row
            of zeros.
    """

    parts: tuple[Adjacency, ...] = ()

    @classmethod
    def of(
        cls,
        graph: Graph,
        types: Sequence[str] = (),
        both_directions: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """Return the operators of a graph, one per type.

        Args:
            graph: the graph. Its types are found by their names; it may lack some, whose matrices are then empty.
            types: names of the types, in the order of the operators; empty for a graph whose edges have no types, which
                are then all of one type.
            both_directions: add the operators of the reversed edges, in the same order. They are types of their own.
            dtype: float32 or float64.
        """
        kinds = list(by_type(graph, types))
        if both_directions:
            kinds += [kind.replace(edge_index=kind.edge_index.flip(0)) for kind in kinds]
        parts = tuple(Adjacency.normalized(kind, "row", self_loops=False, dtype=dtype) for kind in kinds)
        total = cls._wrap(sum((part.to_scipy() for part in parts[1:]), start=parts[0].to_scipy().copy()), dtype)
        return replace(total, parts=parts)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Return the operators with another dtype, on another device, or both."""
        moved = super().to(*args, **kwargs)
        return moved if moved is self else replace(moved, parts=tuple(part.to(*args, **kwargs) for part in self.parts))

    def stacked_norm(self) -> float:
        """Return `√(‖B‖₁ ‖B‖_∞)`, a bound of `‖B‖₂`, for `B = [I; Ã_1; …]`, whose rows sum to at most 1."""
        return float(np.sqrt(1 + self.to_scipy().sum(0).max()))

    def _wrap_like_self(self, csr: sp.csr_array) -> Any:
        """Build a matrix that is derived from the sum; it has no types."""
        return Adjacency._wrap(csr, self.dtype).to(self.device)


def by_type(graph: Graph, types: Sequence[str]) -> Iterator[Graph]:
    """Yield the graph with the edges of each type only."""
    if graph.edge_type is None or graph.edge_types is None:
        if types:
            raise InputError(f"{graph.name}: the edges have no types, the network needs {', '.join(types)}")
        yield graph
        return
    for number in graph.edge_type.unique().tolist():
        name = graph.edge_types[number]
        if name not in types:
            advice = did_you_mean(name, types) if types else "it was built for edges without types"
            raise InputError(f"{graph.name}: the network does not know edges of type {name!r}; {advice}")
    for name in types:
        yield graph.of_type(graph.edge_types.index(name) if name in graph.edge_types else -1)
