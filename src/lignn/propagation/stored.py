"""`StoredRows`: features of a store, read block by block, and their products with Ã in a file of their own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
import torch
from torch import Generator, Tensor

from lignn.propagation.rows import Held, Rows, dense
from lignn.propagation.sparse import SparseMatrix, scaled_rows, unit_rows
from lignn.store import Share, StoredGraph
from lignn.store.share import entries_kept

_WIDTH = 8
"""Columns of a product that is written to a file."""


class StoredRows(Rows):
    """Features on the disk.

    Attributes:
        factor: a factor per row; None: 1.
        starts: of sparse features, the number of entries before each row in the source; None for dense ones.
        entries: number of entries of sparse features in the source.
        keep: whether products with a weight that are narrower than the features are kept in memory, see `keeps`.
    """

    def __init__(
        self,
        share: Share,
        read: Callable[[slice], Any],
        width: int,
        dtype: torch.dtype,
        keep: bool,
        folder: str | None,
        starts: np.ndarray | None = None,
        entries: int = 0,
    ) -> None:
        super().__init__(share, torch.empty(0, width, dtype=dtype))
        self.read, self.keep, self.folder, self.starts, self.entries = read, keep, folder, starts, entries
        self.factor: Tensor | None = None
        self._products: WeakKeyDictionary[Any, StoredRows] = WeakKeyDictionary()

    @classmethod
    def of(cls, graph: StoredGraph, share: Share, dtype: torch.dtype, keep: bool) -> StoredRows:
        """Return the features of the rows of this process."""
        first, arrays = graph.rows.start, graph.manifest["arrays"]
        width = graph.num_features
        read: Callable[[slice], Any]
        starts, entries = None, 0
        if "x_data" in arrays:
            matrix = [graph.array(f"x_{name}") for name in ("indptr", "indices", "data")]
            read = _csr_reader(matrix, first, width, dtype, graph.unit_rows)
            starts, entries = _starts(graph, matrix[0]), len(matrix[2])
        elif "x" in arrays:
            x = graph.array("x")
            read = _dense_reader(x, first, dtype)
        else:
            return cls.empty(share, dtype)
        return cls(share, read, width, dtype, keep, str(graph.path.resolve().parent), starts, entries)

    @classmethod
    def empty(cls, share: Share, dtype: torch.dtype) -> StoredRows:
        """Return features of width 0."""
        return cls(share, lambda rows: torch.empty(rows.stop - rows.start, 0, dtype=dtype), 0, dtype, False, None)

    def scaled(self, factor: Tensor) -> StoredRows:
        """Return the same features with each row multiplied by a number."""
        other = self._with(self.read)
        other.factor = factor if self.factor is None else factor * self.factor
        return other

    def dropped(self, rate: float, generator: Generator) -> StoredRows:
        """Return the same features with each entry set to zero with probability `rate`, drawn as in memory."""
        starts = self.starts
        if starts is None:
            bits = self.share.drawn(self.shape[1], lambda size: entries_kept(size, rate, generator))

            def read(rows: slice) -> Any:
                kept = torch.from_numpy(np.unpackbits(bits[rows], axis=1, count=self.shape[1]))
                return self.read(rows) * kept.to(self.dtype).div_(1 - rate)

        else:
            kept = entries_kept(self.entries, rate, generator)

            def read(rows: slice) -> Any:
                block = self.read(rows)
                indptr = block.indptr.numpy()
                places = np.arange(block.nnz) + np.repeat(starts[rows] - indptr[:-1], np.diff(indptr))
                return block.with_values(block.values * kept[places].to(self.dtype).div_(1 - rate))

        other = self._with(read)
        other.factor = self.factor
        return other

    def _with(self, read: Callable[[slice], Any]) -> StoredRows:
        """Return features of the same size that are read otherwise."""
        return StoredRows(
            self.share, read, self.shape[1], self.dtype, self.keep, self.folder, self.starts, self.entries
        )

    @property
    def sparse(self) -> bool:
        """Whether blocks are sparse matrices."""
        return self.starts is not None

    def block(self, rows: slice, given: dict[int, Tensor], memo: dict[int, Any]) -> Any:  # noqa: ARG002
        """Read a block: a tensor, or a `SparseMatrix`."""
        if id(self) not in memo:
            block = self.read(rows)
            if self.factor is not None:
                block = scaled_rows(block, self.factor[rows])
            memo[id(self)] = block
        return memo[id(self)]

    def keeps(self, width: int) -> bool:
        """Return whether a product of so many columns is kept in memory.

        If not, it is computed block by block each time, and a network that propagates features does so once, before the
        product: `(Ã X) W` instead of `Ã (X W)`. For features that are as narrow as the product, that is quicker too.
        """
        return self.keep and (self.sparse or self.shape[1] > width)

    def __matmul__(self, weight: Tensor) -> Rows:
        product = super().__matmul__(weight)
        return Held(self.share, dense(product)) if self.keeps(weight.shape[1]) else product

    def propagated(self, operator: Any, product: Callable[[Tensor], Tensor]) -> StoredRows:
        """Return the product with an operator, which is written to a file that vanishes with it.

        Args:
            operator: identifies the product, which is computed once.
            product: multiplies some columns.
        """
        if operator not in self._products:
            shape = self.shape
            with tempfile.TemporaryFile(dir=self.folder) as file:
                file.truncate(max(shape.numel() * self.sample.element_size(), 1))
                out = np.memmap(file, _NUMPY[self.dtype], "r+", shape=tuple(shape))  # keeps the file
            for first in range(0, shape[1], _WIDTH):
                columns = slice(first, min(first + _WIDTH, shape[1]))
                x = torch.empty(shape[0], columns.stop - first, dtype=self.dtype)
                for rows in self.share.blocks():
                    block = self.block(rows, {}, {})
                    x[rows] = (block.to_dense() if isinstance(block, SparseMatrix) else block)[:, columns]
                out[:, columns] = product(x).numpy()
            read = _dense_reader(out, 0, self.dtype)
            self._products[operator] = StoredRows(self.share, read, shape[1], self.dtype, self.keep, self.folder)
        return self._products[operator]


_NUMPY: dict[torch.dtype, Any] = {torch.float32: np.float32, torch.float64: np.float64}


def _dense_reader(x: np.ndarray, first: int, dtype: torch.dtype) -> Callable[[slice], Tensor]:
    return lambda rows: torch.from_numpy(x[first + rows.start : first + rows.stop]).to(dtype)


def _starts(graph: StoredGraph, indptr: np.ndarray) -> np.ndarray:
    """Return how many entries of sparse features the source has before the row of each node of this process."""
    number, counts = graph.array("number"), np.empty(graph.total + 1, np.int64)
    counts[0] = 0
    counts[number + 1] = np.diff(indptr)
    return np.cumsum(counts)[graph.number.numpy()]


def _csr_reader(
    matrix: list[np.ndarray], first: int, width: int, dtype: torch.dtype, unit: bool
) -> Callable[[slice], SparseMatrix]:
    indptr, indices, data = matrix

    def read(rows: slice) -> SparseMatrix:
        pointers = np.array(indptr[first + rows.start : first + rows.stop + 1])
        entries = slice(int(pointers[0]), int(pointers[-1]))
        parts = np.array(data[entries]), np.array(indices[entries]), (pointers - pointers[0]).astype(np.int32)
        block = sp.csr_array(parts, shape=(rows.stop - rows.start, width))
        return SparseMatrix.from_scipy(unit_rows(block) if unit else block, dtype)

    return read
