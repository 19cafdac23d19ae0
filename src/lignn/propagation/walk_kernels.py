"""Steps of a lazy walk on the CPU: the kernel of one step, and the loop over steps without Python between them.

A step is a product without the entries of the matrix. All of them are one, so it reads half as much. Rows of known
nodes are reset by the step that would compute them, which therefore skips their sums.

This module imports Numba, so the package imports it at the first step.
"""

from functools import cache
from typing import Any

import numba
import numpy as np
import torch
from numba import carray, cfunc, njit, types

from lignn.propagation.intrinsics import add, add_scaled, as_pointer, count_up, scaled, store, zeros
from lignn.propagation.product_kernels import NUMPY, cached_on_disk, row_at
from lignn.propagation.solve_kernel import ENTERED, GATE, TEAM, add_at, follow, run
from lignn.propagation.threads import ThreadFunction

FIELDS = (
    "shares_taken",  # counter from which the threads take shares of the rows
    "indptr", "indices", "factors", "keep",  # addresses
    "resets", "known",  # addresses: the place of each row among the known ones, -1 for none; and the known rows
    "rows", "entries", "shares",  # counts
    "state", "out",  # addresses
    "clamps",  # whether rows of known nodes are reset instead of computed
    "step", "own", "count", "team", "yield_thread",  # of the loop: C function, address of this task, steps, threads
)  # fmt: skip
"""What a task is: 64-bit integers that all threads read."""

__all__ = ["TASK", "TEAM", "step", "take_rows", "walk"]

TASK = np.dtype([(name, np.int64) for name in FIELDS])


@cached_on_disk(njit, nogil=True)
def take_rows(source, nodes, factors, out):  # type: ignore[no-untyped-def]
    """Set row i of `out` to `factors[i] · source[nodes[i]]`; columns that the source does not have become zero."""
    columns, width = np.uint64(min(source.shape[1], out.shape[1])), np.uint64(out.shape[1])
    for i in range(len(nodes)):
        row, node, factor = np.uint64(i), np.uint64(nodes[i]), factors[i]  # unsigned: not counted from the end
        for column in range(columns):
            out[row, column] = factor * source[node, column]
        for column in range(columns, width):
            out[row, column] = 0


@cache
def _step(width: int, pointer_kind: Any, index: Any, kind: Any) -> Any:
    """Compile the C function that sets each row of `out` to `keep · own row + factor · sum of the sources' rows`."""

    def kernel(pointer):  # type: ignore[no-untyped-def]
        task = carray(pointer, 1)[0]
        rows, count, clamps = np.uint64(task.rows), np.uint64(task.entries), task.clamps
        indptr = carray(as_pointer(task.indptr), (task.rows + 1,), pointer_kind)
        indices = carray(as_pointer(task.indices), (task.entries,), index)
        resets = carray(as_pointer(task.resets), (task.rows,), np.int32)
        known = carray(as_pointer(task.known), (1,), kind)
        factors = carray(as_pointer(task.factors), (task.rows,), kind)
        keep = carray(as_pointer(task.keep), (task.rows,), kind)
        state = carray(as_pointer(task.state), (1,), kind)
        out = carray(as_pointer(task.out), (1,), kind)
        one, shares, stride, unit = np.uint64(1), np.uint64(task.shares), np.uint64(width), kind(1)
        share = np.uint64(count_up(pointer))
        while share < shares:
            first = row_at(indptr, rows, count * share // shares)
            last = rows if share + one == shares else row_at(indptr, rows, count * (share + one) // shares)
            for row in range(first, last):
                if clamps and resets[row] >= 0:
                    reset = add_scaled(zeros(state, width), unit, known, np.uint64(resets[row]) * stride)
                    store(reset, out, row * stride)
                    continue
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
                store(add_scaled(total, keep[row], state, row * stride), out, row * stride)
            share = np.uint64(count_up(pointer))

    return cached_on_disk(cfunc, types.void(types.CPointer(numba.from_dtype(TASK))))(kernel)


@cache
def _walk() -> Any:
    """Compile the C function that takes `count` steps; one thread leads, as in `solve_kernel`."""

    def kernel(pointer):  # type: ignore[no-untyped-def]
        task = carray(pointer, 1)[0]
        if add_at(task.team + 8 * ENTERED, 1) > 0:
            follow(task)
            return
        for number in range(task.count):
            task.shares_taken, task.clamps = 0, number < task.count - 1
            run(task, task.step, task.own)
            task.state, task.out = task.out, task.state
        add_at(task.team + 8 * GATE, -(1 << 62))

    return cached_on_disk(cfunc, types.void(types.CPointer(numba.from_dtype(TASK))))(kernel)


@cache
def walk() -> Any:
    """Return the C function that takes the steps of a task, all but the last one with clamped rows."""
    return ThreadFunction(_walk().address)


@cache
def step(width: int, indptr: torch.dtype, indices: torch.dtype, kind: torch.dtype) -> int:
    """Return the address of the C function of one step for states of `width` columns."""
    address: int = _step(width, NUMPY[indptr], NUMPY[indices], NUMPY[kind]).address
    return address
