"""The one place that chooses how a product runs on the CPU: kernel, threads, prefetching, huge pages, order, tiles.

Everything that depends only on the matrix and on the number of columns is chosen once and kept. A product of a small
matrix takes a few microseconds, and most of them are this file, so `__call__` does no more than it has to.

This module imports Numba, so the package imports it at the first product.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lignn.propagation import locality, threads, tiles
from lignn.propagation.product_kernels import kernel, pack_task

BLOCK_BYTES = 512  # bytes of a row per pass: two vectors of this size fill half of the AVX-512 registers
PREFETCH_AHEAD = 16  # entries; hides the latency of the last-level cache
PREFETCH_ABOVE = 1 << 20  # bytes of the dense matrix; smaller ones stay in the second-level cache
PREFETCH_FROM = 4  # columns; with fewer, many rows share a cache line
NARROW = 16  # columns; products with fewer take about the same time
SHARES_PER_THREAD = 4  # shares of the entries: if a thread is interrupted, the others take its remaining ones

Pass = tuple[Any, tuple[int, ...]]
"""A kernel, and what its task consists of between the counter and the shares."""


class Product:
    """Products of one matrix on the CPU.

    After `locality.REPAID_AFTER` products with large dense matrices, the rows are computed in an order in which
    neighbouring rows have sources in common. The sum of a row does not change, so neither does any bit of the result.

    Args:
        indptr: row pointers of the matrix.
        indices: column of each entry.
        values: the entries.
        columns: number of columns of the matrix.
        lasting: whether many products are expected, so that entries may be stored once more, in tiles.
    """

    def __init__(self, indptr: Tensor, indices: Tensor, values: Tensor, columns: int, lasting: bool = False) -> None:
        self.rows, self.entries = indptr.shape[0] - 1, indices.shape[0]
        self.arrays: locality.Arrays = indptr, indices, values, None
        self._passes: dict[int, tuple[list[Pass], int]] = {}
        self._until_ordered = locality.REPAID_AFTER if self.rows == columns else 0
        self._tileable = lasting and self.rows != columns
        self._tiles: dict[int, tiles.Tiles] = {}

    def __call__(self, dense: Tensor) -> Tensor:
        """Return the product with a dense matrix of the same dtype on the CPU."""
        rows, width = dense.shape
        dense = dense.contiguous()
        out = torch.empty_like(dense) if rows == self.rows else dense.new_empty((self.rows, width))
        passes, multiplications = self._passes.get(width) or self._choose(width, dense)
        address = dense.data_ptr()
        if multiplications:
            self._in_threads(passes, multiplications, address, out)
            self._count(1, dense)
        else:
            for function, fixed in passes:
                function(pack_task(0, *fixed, 1, address, out.data_ptr()))  # new bytes, so the kernel may count in them
        return out

    def _choose(self, width: int, dense: Tensor) -> tuple[list[Pass], int]:
        """Return the kernel and the task of each pass over the columns, and the multiplications; 0 for one thread."""
        multiplications = self.entries * max(width, NARROW)
        result = self.rows * width * dense.element_size()
        small = multiplications <= threads.PARALLEL_ABOVE and result <= threads.HUGE_PAGES_ABOVE
        block, row_bytes = BLOCK_BYTES // dense.element_size(), min(width * dense.element_size(), BLOCK_BYTES)
        stored = None if small or not self._tileable else tiles.tiled(*self.arrays[:3], len(dense), row_bytes)
        if stored is not None:
            self._tiles[width] = stored
        arrays, together = (self.arrays, 1) if stored is None else (stored.arrays, stored.together)
        prefetches = dense.nbytes > PREFETCH_ABOVE and width >= PREFETCH_FROM and stored is None
        addresses = [0 if array is None else array.data_ptr() for array in arrays]
        ahead = PREFETCH_AHEAD if prefetches else 0
        rows, index, kind = len(arrays[0]) - 1, arrays[1].dtype, arrays[2].dtype
        passes = []
        for column in range(0, width, block):
            function = kernel(min(block, width - column), index, kind, ahead, adds=stored is not None)
            passes.append((function, (*addresses, rows, self.entries, width, column, together)))
        chosen = self._passes[width] = passes, 0 if small else multiplications
        return chosen

    def prepared(self, dense: Tensor, out: Tensor, count: int, expected: int) -> list[tuple[Any, np.ndarray]]:
        """Return the C function and the task of each pass of a product, for compiled loops that repeat it.

        The first number of a task counts the shares that were taken. Set it to zero before every repetition. The tasks
        hold addresses: keep the matrix and both tensors while they are in use.

        Args:
            dense: contiguous factor; rows after those that the matrix needs are ignored.
            out: contiguous result of the same width.
            count: number of threads that will call the function with the address of the task.
            expected: how many repetitions are expected, to decide whether the rows are worth ordering.
        """
        self._count(expected, dense)
        passes, _ = self._passes.get(dense.shape[1]) or self._choose(dense.shape[1], dense)
        ends = _shares(count), dense.data_ptr(), out.data_ptr()
        return [(function, np.array([0, *fixed, *ends], np.int64)) for function, fixed in passes]

    def _in_threads(self, passes: list[Pass], multiplications: int, address: int, out: Tensor) -> None:
        threads.use_huge_pages(out)
        if out.shape[1] in self._tiles:
            out.zero_()  # the parts of a row are added to it
        count = threads.threads_for(multiplications)
        for function, fixed in passes:
            task = ctypes.create_string_buffer(pack_task(0, *fixed, _shares(count), address, out.data_ptr()))
            threads.run_in_threads(function, ctypes.addressof(task), count)

    def _count(self, products: int, dense: Tensor) -> None:
        """Count the products with large dense matrices, and order the rows when that will be repaid."""
        if not self._until_ordered or dense.nbytes <= locality.WORTH_ABOVE:
            return
        self._until_ordered = max(self._until_ordered - products, 0)
        if self._until_ordered == 0:
            self.arrays = locality.ordered(*self.arrays[:3])
            self._passes = {}  # a product in another thread keeps the tasks that it has, and they stay valid


def _shares(count: int) -> int:
    """Return in how many shares so many threads divide the rows."""
    return count * SHARES_PER_THREAD if count > 1 else 1
