"""Product of a CSR matrix and a dense matrix on the CPU: the kernel.

The kernel is compiled for one number of columns, so that the sums of a row stay in vector registers while its entries
are read once. Each row is summed by one thread, in an order that depends on the row alone. So a product has the same
bits in every run, for any number of threads and in any order of the rows.

This module imports Numba, so the package imports it at the first product.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
import torch
from numba import carray, cfunc, njit, types

from lignn.propagation.intrinsics import add, add_scaled, as_pointer, count_up, prefetch, store, zeros
from lignn.propagation.threads import ThreadFunction

FIELDS = (
    "shares_taken",  # counter from which the threads take shares of the rows
    "indptr", "indices", "values", "order",  # addresses; the rows of the matrix are stored in this order, 0: their own
    "rows", "entries", "stride", "column",  # counts; column: the first one
    "together",  # so many rows, from a multiple of this number on, belong to one thread
    "shares", "dense", "out",
)  # fmt: skip
"""What a task is: 64-bit integers that all threads of one product read."""

pack_task = struct.Struct(f"{len(FIELDS)}q").pack
"""Return a task as bytes: `pack_task(0, indptr, …, out)`."""

_TASK = np.dtype([(name, np.int64) for name in FIELDS])

NUMPY: dict[torch.dtype, Any] = {
    torch.int16: np.uint16, torch.int32: np.int32, torch.int64: np.int64,
    torch.float32: np.float32, torch.float64: np.float64,
}  # fmt: skip
"""NumPy's names of the types of indices and of entries."""


def cached_on_disk(compiler: Callable[..., Any], *args: Any, **options: Any) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator that compiles a function, with a cache on disk if Numba finds a folder it can write to."""

    def decorate(function: Callable[..., None]) -> Any:
        try:
            return compiler(*args, **options, cache=True)(function)
        except RuntimeError:  # no such folder: every process compiles
            return compiler(*args, **options)(function)

    return decorate


@njit(inline="always")
def row_at(indptr, rows, entry):  # type: ignore[no-untyped-def]
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
def _kernel(width: int, index: Any, kind: Any, ahead: int, adds: bool) -> Any:
    """Compile the C function that computes `width` neighbouring columns of a product, one share after the other."""
    same = kind(1)

    def kernel(pointer):  # type: ignore[no-untyped-def]
        task = carray(pointer, 1)[0]
        rows, count = np.uint64(task.rows), np.uint64(task.entries)
        indptr = carray(as_pointer(task.indptr), (task.rows + 1,), index)
        indices = carray(as_pointer(task.indices), (task.entries,), index)
        values = carray(as_pointer(task.values), (task.entries,), kind)
        order = carray(as_pointer(task.order), (task.rows,), index)
        dense = carray(as_pointer(task.dense), (1,), kind)
        out = carray(as_pointer(task.out), (1,), kind)
        stride, column, together = np.uint64(task.stride), np.uint64(task.column), np.uint64(task.together)
        one, shares, ordered = np.uint64(1), np.uint64(task.shares), task.order != 0
        share = np.uint64(count_up(pointer))
        while share < shares:
            # Shares have equally many entries, not rows: few rows of a power-law graph hold most entries.
            first = row_at(indptr, rows, count * share // shares)
            last = rows if share + one == shares else row_at(indptr, rows, count * (share + one) // shares)
            if adds:  # parts of one row must not belong to two threads
                first -= first % together
                last -= last % together if last < rows else np.uint64(0)
            for row in range(first, last):
                target = np.uint64(order[row]) if ordered else row
                # With two sums, over even and odd entries, an addition does not wait for the one before it.
                even = zeros(dense, width)
                odd = zeros(dense, width)
                if adds:  # known to the compiler
                    even = add_scaled(even, same, out, target * stride + column)
                entry = np.uint64(indptr[row])
                stop = np.uint64(indptr[row + one])
                while entry + one < stop:
                    if ahead > 0:  # known to the compiler
                        later = entry + np.uint64(ahead)
                        if later + one < count:
                            prefetch(even, dense, np.uint64(indices[later]) * stride + column)
                            prefetch(even, dense, np.uint64(indices[later + one]) * stride + column)
                    even = add_scaled(even, values[entry], dense, np.uint64(indices[entry]) * stride + column)
                    entry += one
                    odd = add_scaled(odd, values[entry], dense, np.uint64(indices[entry]) * stride + column)
                    entry += one
                if entry < stop:
                    even = add_scaled(even, values[entry], dense, np.uint64(indices[entry]) * stride + column)
                store(add(even, odd), out, target * stride + column)
            share = np.uint64(count_up(pointer))

    return cached_on_disk(cfunc, types.void(types.CPointer(numba.from_dtype(_TASK))))(kernel)


@cache
def kernel(width: int, index: torch.dtype, kind: torch.dtype, ahead: int, adds: bool = False) -> Any:
    """Return the C function that computes some neighbouring columns of a product; its address is `address`.

    Args:
        width: number of columns.
        index: type of the row pointers and indices.
        kind: type of the entries and of the dense matrices.
        ahead: how many entries ahead to prefetch rows of the dense matrix; 0 for not at all.
        adds: whether the sums are added to what the result holds, so that a row can be stored in several parts.
    """
    address = _kernel(width, NUMPY[index], NUMPY[kind], ahead, adds).address
    function: Any = ThreadFunction(address)
    function.address = address
    return function
