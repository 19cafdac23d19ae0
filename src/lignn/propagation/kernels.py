"""CSR matrix times dense matrix on the CPU: the kernel and the one place that chooses how to run it.

The kernel is compiled for one number of columns, so that the sums of a row stay in vector registers while its entries
are read once. Each row is summed by one thread, in an order that depends on nothing but the row: the same product is
the same to the bit in every run and for any number of threads.

Importing this module imports Numba, so the package does it at the first product.
"""

import ctypes
import mmap
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
import torch
from llvmlite import ir
from numba import carray, cfunc, njit, types
from numba.extending import intrinsic
from torch import Tensor

from lignn.propagation import threads
from lignn.propagation.lanes import add, add_scaled, prefetch, store, zeros

BLOCK_BYTES = 512  # columns of one pass: two accumulators of this size fill half of the AVX-512 registers
PREFETCH_AHEAD = 16  # entries; hides the latency of the last-level cache
PREFETCH_ABOVE = 1 << 20  # bytes of the dense matrix: smaller ones live in the second-level cache
HUGE_PAGES_ABOVE = 1 << 22  # bytes of the result
NARROW = 16  # columns up to which a product takes about the same time
SHARES = 4  # of the entries, a thread: one that was held up leaves its last ones to the others

_ADDRESSES = ("indptr", "indices", "values", "dense", "out")
_NUMBERS = ("rows", "entries", "stride", "column", "ahead", "shares")
_TASK = np.dtype([(name, np.int64) for name in ("taken", *_ADDRESSES, *_NUMBERS)])
"""What all threads of a product are given: how many shares are taken, the addresses of the arrays, and numbers."""


@intrinsic
def _take(_typing: Any, task: Any) -> Any:
    """Add one to the task's first field in a way that all threads see; what it was before."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        integer = ir.IntType(64)
        return builder.atomic_rmw(
            "add", builder.bitcast(arguments[0], integer.as_pointer()), integer(1), ordering="monotonic"
        )

    return types.int64(task), generate


@intrinsic
def _pointer(_typing: Any, address: Any) -> Any:
    """A number as an address."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(address), generate


def cached(compiler: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[[Callable[..., None]], Any]:
    """The compiler's decorator, caching on disk where Numba finds a folder that it may write to."""

    def decorate(function: Callable[..., None]) -> Any:
        try:
            return compiler(*arguments, **options, cache=True)(function)
        except RuntimeError:  # no such folder: compile in every process
            return compiler(*arguments, **options)(function)

    return decorate


@njit(inline="always")
def _row_at(indptr, rows, entry):  # type: ignore[no-untyped-def]
    """The first row that begins at `entry` or behind it."""
    low, high = np.uint64(0), rows
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if np.uint64(indptr[middle]) < entry:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low


@cache
def _entry(width: int, index: Any, kind: Any) -> Any:
    return threads.Entry(_kernel(width, index, kind).address)


@cache
def _kernel(width: int, index: Any, kind: Any) -> Any:
    """The C function that computes `width` neighbouring columns of a product, share after share of its entries."""

    def kernel(pointer):  # type: ignore[no-untyped-def]
        task = carray(pointer, 1)[0]
        rows, count = np.uint64(task.rows), np.uint64(task.entries)
        indptr = carray(_pointer(task.indptr), (task.rows + 1,), index)
        indices = carray(_pointer(task.indices), (task.entries,), index)
        values = carray(_pointer(task.values), (task.entries,), kind)
        dense = carray(_pointer(task.dense), (1,), kind)
        out = carray(_pointer(task.out), (1,), kind)
        stride, column, ahead = np.uint64(task.stride), np.uint64(task.column), np.uint64(task.ahead)
        one, shares = np.uint64(1), np.uint64(task.shares)
        share = np.uint64(_take(pointer))
        while share < shares:
            # Shares of the entries, not of the rows: the hubs of a power-law graph sit in few rows.
            first = _row_at(indptr, rows, count * share // shares)
            last = rows if share + one == shares else _row_at(indptr, rows, count * (share + one) // shares)
            for row in range(first, last):
                # Two sums, over even and odd entries, halve the chain of additions that wait for each other.
                even = zeros(dense, width)
                odd = zeros(dense, width)
                entry = np.uint64(indptr[row])
                stop = np.uint64(indptr[row + one])
                while entry + one < stop:
                    later = entry + ahead
                    if later + one < count:
                        prefetch(even, dense, np.uint64(indices[later]) * stride + column)
                        prefetch(even, dense, np.uint64(indices[later + one]) * stride + column)
                    even = add_scaled(even, values[entry], dense, np.uint64(indices[entry]) * stride + column)
                    entry += one
                    odd = add_scaled(odd, values[entry], dense, np.uint64(indices[entry]) * stride + column)
                    entry += one
                if entry < stop:
                    even = add_scaled(even, values[entry], dense, np.uint64(indices[entry]) * stride + column)
                store(add(even, odd), out, row * stride + column)
            share = np.uint64(_take(pointer))

    return cached(cfunc, types.void(types.CPointer(numba.from_dtype(_TASK))))(kernel)


def multiply(indptr: Tensor, indices: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """The product of a CSR matrix and a dense matrix of the same type, both on the CPU."""
    rows, entries, width = indptr.shape[0] - 1, indices.shape[0], dense.shape[1]
    dense = dense.contiguous()
    out = dense.new_empty((rows, width))
    if out.nbytes > HUGE_PAGES_ABOVE:
        _use_huge_pages(out)
    ahead = PREFETCH_AHEAD if dense.nbytes > PREFETCH_ABOVE and width > NARROW else entries
    addresses = [tensor.data_ptr() for tensor in (indptr, indices, values, dense, out)]
    index, kind = _NUMPY[indices.dtype], _NUMPY[values.dtype]
    block = BLOCK_BYTES // dense.element_size()
    count = threads.threads_for(entries * max(width, NARROW))
    for column in range(0, width, block):
        numbers = rows, entries, width, column, ahead, count * SHARES if count > 1 else 1
        task = np.array([0, *addresses, *numbers], np.int64)
        threads.run(_entry(min(block, width - column), index, kind), task.ctypes.data, count)
    return out


_NUMPY: dict[torch.dtype, Any] = {
    torch.int32: np.int32, torch.int64: np.int64, torch.float32: np.float32, torch.float64: np.float64,
}  # fmt: skip


def _use_huge_pages(tensor: Tensor) -> None:
    """Ask Linux for huge pages before the first touch: faults of 4 KiB are a fifth of the time of a large product."""
    advise = _madvise()
    if advise is not None:
        start = -(-tensor.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        # Advice: a refusal does not matter.
        advise(start, tensor.data_ptr() + tensor.nbytes - start, mmap.MADV_HUGEPAGE)


@cache
def _madvise() -> Callable[[int, int, int], int] | None:
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    function = ctypes.CDLL(None).madvise
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function
