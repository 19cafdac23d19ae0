"""`StreamedAdjacency`: Ã of a graph in a store, whose rows are read part by part for every product.

Ã is never formed. The store has the rows of A, and `Ã x = D_l (A (D_r x) + L D_r x)`, where the diagonal matrices D
depend on the normalisation and L has the self-loops that A lacks. So one store serves all networks, and an unweighted
graph needs no values. While a part is multiplied, a second thread reads the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lignn.errors import InputError
from lignn.propagation.adjacency import Normalization
from lignn.propagation.exchange import Exchange
from lignn.propagation.rows import Held, Rows, dense
from lignn.propagation.stored import StoredRows
from lignn.store import Part, Share, StoredGraph
from lignn.store.parts import Csr

_PAGE = 4096
_WORTH_READING_AHEAD = 2**16
"""Entries of a matrix; to read fewer takes less time than to wake a thread."""


class StreamedAdjacency:
    """The rows of Ã that this process holds, as an operator with `@`, like `Adjacency`.

    A product returns `Rows`, so that maps of its rows are recorded and run block by block.

    Attributes:
        share: the nodes of the rows.
        exchanges: the exchange of rows with other processes, by direction; it counts bytes.
    """

    def __init__(
        self,
        graph: StoredGraph,
        share: Share,
        normalization: Normalization,
        self_loops: bool,
        dtype: torch.dtype,
        kinds: Sequence[int | None] | None = None,
        reversed_: bool = False,
    ) -> None:
        """Read the degrees.

        Args:
            graph: the graph in a store.
            share: the nodes of the rows.
            normalization: as for `Adjacency.normalized`.
            self_loops: as for `Adjacency.normalized`.
            dtype: float32 or float64.
            kinds: numbers of the types of edges; None: all, or edges without types.
            reversed_: whether the edges are taken in the other direction.
        """
        self.graph, self.share, self.dtype = graph, share, dtype
        self.normalization, self.self_loops, self.reversed = normalization, self_loops, reversed_
        self.kinds = graph.kinds if kinds is None else list(kinds)
        names = [graph.matrix_name("out" if reversed_ else "in", kind) for kind in self.kinds]
        degree, loops = np.zeros(len(share)), np.zeros(len(share), bool)
        for name in names:
            degree += graph.array(f"{name}_degree")[graph.rows]
            loops |= graph.array(f"{name}_loop")[graph.rows]
        lacking = ~loops & self_loops
        degree += lacking
        power = {"symmetric": -0.5, "row": -1.0, "none": 0.0}[normalization]
        scale = np.power(degree, power, out=np.zeros_like(degree), where=degree > 0)
        self.left = None if normalization == "none" else torch.from_numpy(scale).to(dtype)
        self.right = self.left if normalization == "symmetric" else None
        self.loops = torch.from_numpy(lacking).to(dtype) if lacking.any() else None
        self.exchanges: dict[str, Exchange] = {}
        self._parts: dict[str, list[tuple[Part, Tensor]]] = {}

    device = torch.device("cpu")

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows of this process, twice: its square block."""
        return len(self.share), len(self.share)

    def parts(self, direction: str) -> list[tuple[Part, Tensor]]:
        """Return the parts of one direction, each with the rows of a product's buffer that its halo is in.

        The first call prepares the exchange of rows.
        """
        if direction not in self._parts:
            found = [part for kind in self.kinds for part in self.graph.matrix(direction, kind)]
            processes, bounds = self.share.processes, self.graph.bounds
            starts = [len(bounds[:-1]) * rank // processes.count for rank in range(processes.count + 1)]
            exchange = Exchange([part.nodes for part in found], self.graph.rows.start, bounds[starts], processes)
            self.exchanges[direction] = exchange
            self._parts[direction] = [(part, exchange.places(part.nodes)) for part in found]
        return self._parts[direction]

    def __matmul__(self, x: Tensor | Rows) -> Rows:
        if isinstance(x, StoredRows):
            return x.propagated(self, lambda columns: self.product(columns, transposed=False))
        x = dense(x)
        if x.ndim != 2 or len(x) != len(self.share) or x.dtype != self.dtype:
            raise InputError(
                f"this operator of {len(self.share)} rows and {self.dtype} cannot multiply a tensor of shape "
                f"{tuple(x.shape)} and {x.dtype}"
            )
        if torch.is_grad_enabled() and x.requires_grad:
            return Held(self.share, _Product.apply(x, self, False))
        return Held(self.share, self.product(x, transposed=False))

    def product(self, x: Tensor, transposed: bool) -> Tensor:
        """Return `Ã x`, or `Ãᵀ x`, without gradients."""
        left, right = (self.right, self.left) if transposed else (self.left, self.right)
        direction = "out" if transposed != self.reversed and not self.graph.is_undirected else "in"
        parts = self.parts(direction)
        exchange = self.exchanges[direction]
        buffer = x.new_empty(len(x) + len(exchange.nodes), x.shape[1])
        own = buffer[: len(x)]
        own.copy_(x) if right is None else torch.mul(x, right[:, None], out=own)
        wait = exchange.start(buffer, transposed)
        out = torch.zeros_like(x)
        for part, _ in _read_ahead(parts, lambda part: part.local):
            out[part.rows] += _multiply(part.local, own[part.rows])
        wait()
        for part, places in _read_ahead(parts, lambda part: part.halo):
            out[part.rows] += _multiply(part.halo, buffer.index_select(0, places))
        if self.loops is not None:
            out.addcmul_(own, self.loops[:, None])
        return out if left is None else out.mul_(left[:, None])

    def doubled(self) -> StreamedAdjacency:
        """Return the operator in double precision."""
        if self.dtype == torch.float64:
            return self
        options = (self.self_loops, torch.float64, self.kinds, self.reversed)
        return StreamedAdjacency(self.graph, self.share, self.normalization, *options)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal."""
        found = torch.zeros(len(self.share), dtype=self.dtype) if self.loops is None else self.loops.clone()
        for part, _ in self.parts("out" if self.reversed and not self.graph.is_undirected else "in"):
            matrix, rows = part.local, np.arange(part.rows.stop - part.rows.start)
            on = np.repeat(rows, np.diff(matrix.indptr)) == matrix.indices
            values = np.ones(on.sum()) if matrix.values is None else matrix.values[on]
            found[part.rows.start + torch.from_numpy(matrix.indices[on])] += torch.from_numpy(values).to(self.dtype)
        for factor in (self.left, self.right):
            found = found if factor is None else found * factor
        return found.numpy()

    def reached(self, known: Tensor) -> Tensor:
        """Return the mask of the rows that a row in `known` (a mask) reaches along the edges."""
        reached, count = known.to(self.dtype)[:, None], -1
        while count != (now := int(self.share.processes.sum((reached > 0).sum()))):
            count = now
            reached = ((self.product(reached, transposed=False) + reached) > 0).to(self.dtype)
        return reached[:, 0] > 0

    def spectral_radius(self) -> float:
        """Return a bound on ‖Ã‖₂: 1 for a normalised undirected graph, else `√(‖Ã‖₁ ‖Ã‖_∞)`."""
        if self.normalization == "symmetric" and self.graph.is_undirected:
            return 1.0
        ones = torch.ones(len(self.share), 1, dtype=self.dtype)
        largest = [float(self.product(ones, transposed).max()) for transposed in (False, True)]
        return float(np.sqrt(np.prod([self.share.processes.largest(each) for each in largest])))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.graph.name}, {len(self.share)} of {self.share.total} rows, {self.dtype})"


@dataclass(frozen=True, eq=False)
class StreamedTyped:
    """The operators of the types of edges of a store, like `TypedAdjacency`.

    Attributes:
        parts: Ã_r = D_r^-1 A_r of each type r.
    """

    parts: tuple[StreamedAdjacency, ...]

    @classmethod
    def of(
        cls, graph: StoredGraph, share: Share, types: Sequence[str], both_directions: bool, dtype: torch.dtype
    ) -> StreamedTyped:
        """Return the operators of a store, one per type; see `TypedAdjacency.of`."""
        if tuple(types) != (graph.edge_types or ()):
            there, wanted = (", ".join(each or ()) or "none" for each in (graph.edge_types, types))
            raise InputError(f"{graph.name}: its types of edges are {there}, those of the network {wanted}")
        directions = (False, True) if both_directions else (False,)
        parts = [
            StreamedAdjacency(graph, share, "row", False, dtype, [kind], reversed_)
            for reversed_ in directions
            for kind in graph.kinds
        ]
        return cls(tuple(parts))

    @property
    def exchanges(self) -> dict[str, Exchange]:
        """The exchanges of all types."""
        named = [(number, part.exchanges) for number, part in enumerate(self.parts)]
        return {f"{number} {name}": each for number, found in named for name, each in found.items()}

    def stacked_norm(self) -> float:
        """Return `√(‖B‖₁ ‖B‖_∞)`, a bound of `‖B‖₂`, for `B = [I; Ã_1; …]`, whose rows sum to at most 1."""
        share, dtype = self.parts[0].share, self.parts[0].dtype
        ones = torch.ones(len(share), 1, dtype=dtype)
        columns = torch.stack([part.product(ones, transposed=True) for part in self.parts]).sum(0)
        return float(np.sqrt(1 + share.processes.largest(float(columns.max()))))


class _Product(torch.autograd.Function):
    """`Ã x`; its gradient is `Ãᵀ g`, by the plan of the transposed matrix."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, operator: StreamedAdjacency, transposed: bool) -> Tensor:
        ctx.operator, ctx.transposed = operator, transposed
        return operator.product(x, transposed)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.operator.product(grad, not ctx.transposed), None, None


def _multiply(matrix: Csr, x: Tensor) -> Tensor:
    if not len(matrix.indices):
        return x.new_zeros(len(matrix.indptr) - 1, x.shape[1])
    indptr, indices = torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices)
    if matrix.values is None:
        values = _ones(1 << (len(indices) - 1).bit_length(), x.dtype)[: len(indices)]
    else:
        values = torch.from_numpy(matrix.values).to(x.dtype)
    return torch.ops.lignn.spmm.default(indptr, indices, values, x.detach(), ())


@cache
def _ones(length: int, dtype: torch.dtype) -> Tensor:
    """Return the values of unweighted matrices, which all parts share."""
    return torch.ones(length, dtype=dtype)


def _touch(matrix: Csr) -> None:
    """Read one byte of every page."""
    for array in (matrix.indptr, matrix.indices, matrix.values):
        if array is not None and len(array):
            array.view(np.uint8)[::_PAGE].sum()


@cache
def _reader() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="lignn-prefetch")


def _read_ahead(parts: list[tuple[Part, Tensor]], matrix: Callable[[Part], Csr]) -> Iterator[tuple[Part, Tensor]]:
    """Yield the parts; while the matrix of one is used, a second thread reads that of the next."""
    reading: Future[None] | None = None
    for part, following in zip_longest(parts, parts[1:]):
        if reading is not None:
            reading.result()
        reading = None
        if following is not None and len((ahead := matrix(following[0])).indices) >= _WORTH_READING_AHEAD:
            reading = _reader().submit(_touch, ahead)
        yield part
