"""Product of a CSR matrix and a dense matrix on the CPU: the kernel, and the threads that run it.

The kernel is compiled for one number of columns, so that the sums of a row stay in vector registers while its entries
are read once. Each row is summed by one thread, in an order that depends on the row alone. So a product has the same
bits in every run and for any number of threads.

PyTorch's OpenMP threads stay awake for a while after an operator. A second pool of threads would have to wake up for
every product and would find the cores occupied. So the kernels run on PyTorch's threads, and `torch.set_num_threads`
sets their number.

This module imports Numba, so the package imports it at the first product.
"""

import ctypes
import mmap
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import torch
from numba import carray, cfunc, njit, types
from torch import Tensor

from lignn.propagation.intrinsics import add, add_scaled, as_pointer, count_up, prefetch, store, zeros

BLOCK_BYTES = 512  # bytes of a row per pass: two vectors of this size fill half of the AVX-512 registers
PREFETCH_AHEAD = 16  # entries; hides the latency of the last-level cache
PREFETCH_ABOVE = 1 << 20  # bytes of the dense matrix; smaller ones stay in the second-level cache
HUGE_PAGES_ABOVE = 1 << 22  # bytes of the result
NARROW = 16  # columns; products with fewer take about the same time
PARALLEL_ABOVE = 1 << 20  # multiplications; for fewer, a second thread costs more time than it saves
SHARES_PER_THREAD = 4  # shares of the entries: if a thread is interrupted, the others take its remaining ones

_ADDRESSES = ("indptr", "indices", "values", "dense", "out")
_NUMBERS = ("rows", "entries", "stride", "column", "ahead", "shares")
_TASK = np.dtype([(name, np.int64) for name in ("shares_taken", *_ADDRESSES, *_NUMBERS)])
"""What all threads of a product read: a counter of the shares taken, addresses of the arrays, and numbers."""

_NUMPY: dict[torch.dtype, Any] = {
    torch.int32: np.int32, torch.int64: np.int64, torch.float32: np.float32, torch.float64: np.float64,
}  # fmt: skip

ThreadFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
"""C function that every thread calls with the same address, and that takes its share of the work by itself."""


def cached_on_disk(compiler: Callable[..., Any], *args: Any, **options: Any) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator that compiles a function, with a cache on disk if Numba finds a folder it can write to."""

    def decorate(function: Callable[..., None]) -> Any:
        try:
            return compiler(*args, **options, cache=True)(function)
        except RuntimeError:  # no such folder: every process compiles
            return compiler(*args, **options)(function)

    return decorate


@njit(inline="always")
def _row_at(indptr, rows, entry):  # type: ignore[no-untyped-def]
    """Return the first row that starts at `entry` or after it."""
    low, high = np.uint64(0), rows
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if np.uint64(indptr[middle]) < entry:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low


@cache
def _kernel(width: int, index: Any, kind: Any) -> Any:
    """Compile the C function that computes `width` neighbouring columns of a product, one share after the other."""

    def kernel(pointer):  # type: ignore[no-untyped-def]
        task = carray(pointer, 1)[0]
        rows, count = np.uint64(task.rows), np.uint64(task.entries)
        indptr = carray(as_pointer(task.indptr), (task.rows + 1,), index)
        indices = carray(as_pointer(task.indices), (task.entries,), index)
        values = carray(as_pointer(task.values), (task.entries,), kind)
        dense = carray(as_pointer(task.dense), (1,), kind)
        out = carray(as_pointer(task.out), (1,), kind)
        stride, column, ahead = np.uint64(task.stride), np.uint64(task.column), np.uint64(task.ahead)
        one, shares = np.uint64(1), np.uint64(task.shares)
        share = np.uint64(count_up(pointer))
        while share < shares:
            # Shares have equally many entries, not rows: few rows of a power-law graph hold most entries.
            first = _row_at(indptr, rows, count * share // shares)
            last = rows if share + one == shares else _row_at(indptr, rows, count * (share + one) // shares)
            for row in range(first, last):
                # With two sums, over even and odd entries, an addition does not wait for the one before it.
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
            share = np.uint64(count_up(pointer))

    return cached_on_disk(cfunc, types.void(types.CPointer(numba.from_dtype(_TASK))))(kernel)


@cache
def _thread_function(width: int, index: Any, kind: Any) -> Any:
    return ThreadFunction(_kernel(width, index, kind).address)


def multiply(indptr: Tensor, indices: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """Return the product of a CSR matrix and a dense matrix of the same dtype, both on the CPU."""
    rows, entries, width = indptr.shape[0] - 1, indices.shape[0], dense.shape[1]
    dense = dense.contiguous()
    out = dense.new_empty((rows, width))
    if out.nbytes > HUGE_PAGES_ABOVE:
        _use_huge_pages(out)
    ahead = PREFETCH_AHEAD if dense.nbytes > PREFETCH_ABOVE and width > NARROW else entries
    addresses = [tensor.data_ptr() for tensor in (indptr, indices, values, dense, out)]
    index, kind = _NUMPY[indices.dtype], _NUMPY[values.dtype]
    block = BLOCK_BYTES // dense.element_size()
    threads = threads_for(entries * max(width, NARROW))
    for column in range(0, width, block):
        numbers = rows, entries, width, column, ahead, threads * SHARES_PER_THREAD if threads > 1 else 1
        task = np.array([0, *addresses, *numbers], np.int64)
        run_in_threads(_thread_function(min(block, width - column), index, kind), task.ctypes.data, threads)
    return out


def _use_huge_pages(tensor: Tensor) -> None:
    """Ask Linux for huge pages before the first write: page faults of 4 KiB take a fifth of a large product's time."""
    advise = _madvise()
    if advise is not None:
        start = -(-tensor.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        # The result is not checked, since without huge pages the product is slower and nothing else.
        advise(start, tensor.data_ptr() + tensor.nbytes - start, mmap.MADV_HUGEPAGE)


@cache
def _madvise() -> Callable[[int, int, int], int] | None:
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    function = ctypes.CDLL(None).madvise
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function


def threads_for(multiplications: int) -> int:
    """Return the number of threads to use for this many multiplications."""
    return torch.get_num_threads() if multiplications > PARALLEL_ABOVE and not _forked else 1


def run_in_threads(function: Any, address: int, threads: int) -> None:
    """Call `function(address)` once in each of several threads at the same time, and wait for all of them."""
    if threads == 1:
        function(address)
    elif (gomp_parallel := _gomp_parallel()) is not None:
        gomp_parallel(function, address, threads, 0)
    else:
        list(_pool().map(function, [address] * threads))


def run_over_rows(function: Callable[[int, int], None], indptr: np.ndarray, multiplications: int) -> None:
    """Call `function(first, last)` for one block of rows per thread.

    The blocks have about equally many entries, not rows, because few rows of a power-law graph hold most entries.
    """
    threads = threads_for(multiplications)
    if threads == 1:
        function(0, len(indptr) - 1)
        return
    inner = np.searchsorted(indptr, np.linspace(0, indptr[-1], threads + 1)[1:-1]).tolist()
    blocks = iter(pairwise([0, *inner, len(indptr) - 1]))
    errors: list[BaseException] = []

    def take_blocks(_: Any) -> None:
        try:
            for block in blocks:
                function(*block)
        except BaseException as error:  # C code that calls Python cannot pass on an exception: it is raised below
            errors.append(error)

    run_in_threads(ThreadFunction(take_blocks), 0, threads)
    if errors:
        raise errors[0]


@cache
def _gomp_parallel() -> Callable[..., None] | None:
    """Return `GOMP_parallel(function, address, threads, flags)` of GNU's OpenMP if PyTorch has loaded it, else None."""
    function = getattr(ctypes.CDLL(None), "GOMP_parallel", None) if os.name == "posix" else None
    if function is not None:
        function.argtypes = [ThreadFunction, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        function.restype = None
    return function


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="lignn-kernel")


_forked = False


def _use_one_thread() -> None:
    """Use one thread in a forked process: it has not inherited the threads that OpenMP would wait for."""
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_use_one_thread)
