"""One step of a lazy walk on the CPU: the kernel.

It is the kernel of products without the entries of the matrix. All of them are one, so a step reads half as much.

This module imports Numba, so the package imports it at the first step.
"""

import struct
from functools import cache
from typing import Any

import numba
import numpy as np
import torch
from numba import carray, cfunc, types

from lignn.propagation.intrinsics import add, add_scaled, as_pointer, count_up, scaled, store, zeros
from lignn.propagation.product_kernels import NUMPY, cached_on_disk, row_at
from lignn.propagation.threads import ThreadFunction

FIELDS = (
    "shares_taken",  # counter from which the threads take shares of the rows
    "indptr", "indices", "factors", "keep",  # addresses
    "rows", "entries", "shares",  # counts
    "state", "out",  # addresses
)  # fmt: skip
"""What a task is: 64-bit integers that all threads of one step read."""

pack_task = struct.Struct(f"{len(FIELDS)}q").pack
"""Return a task as bytes: `pack_task(0, indptr, …, out)`."""

_TASK = np.dtype([(name, np.int64) for name in FIELDS])


@cache
def _kernel(width: int, index: Any, kind: Any) -> Any:
    """Compile the C function that sets each row of `out` to `keep · own row + factor · sum of the sources' rows`."""

    def kernel(pointer):  # type: ignore[no-untyped-def]
        task = carray(pointer, 1)[0]
        rows, count = np.uint64(task.rows), np.uint64(task.entries)
        indptr = carray(as_pointer(task.indptr), (task.rows + 1,), index)
        indices = carray(as_pointer(task.indices), (task.entries,), index)
        factors = carray(as_pointer(task.factors), (task.rows,), kind)
        keep = carray(as_pointer(task.keep), (1,), kind)[0]
        state = carray(as_pointer(task.state), (1,), kind)
        out = carray(as_pointer(task.out), (1,), kind)
        one, shares, stride, unit = np.uint64(1), np.uint64(task.shares), np.uint64(width), kind(1)
        share = np.uint64(count_up(pointer))
        while share < shares:
            first = row_at(indptr, rows, count * share // shares)
            last = rows if share + one == shares else row_at(indptr, rows, count * (share + one) // shares)
            for row in range(first, last):
                even = zeros(state, width)
                odd = zeros(state, width)
                entry, stop = np.uint64(indptr[row]), np.uint64(indptr[row + one])
                while entry + one < stop:
                    even = add_scaled(even, unit, state, np.uint64(indices[entry]) * stride)
                    entry += one
                    odd = add_scaled(odd, unit, state, np.uint64(indices[entry]) * stride)
                    entry += one
                if entry < stop:
                    even = add_scaled(even, unit, state, np.uint64(indices[entry]) * stride)
                total = scaled(add(even, odd), factors[row])
                store(add_scaled(total, keep, state, row * stride), out, row * stride)
            share = np.uint64(count_up(pointer))

    return cached_on_disk(cfunc, types.void(types.CPointer(numba.from_dtype(_TASK))))(kernel)


@cache
def kernel(width: int, index: torch.dtype, kind: torch.dtype) -> Any:
    """Return the C function of one step for states of `width` columns."""
    return ThreadFunction(_kernel(width, NUMPY[index], NUMPY[kind]).address)
