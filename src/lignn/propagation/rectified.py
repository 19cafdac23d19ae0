"""`relu(Y + B)` and the change that it makes to the last state, in one pass over memory: the kernel of IGNN's step.

PyTorch needs five passes for the same: the sum, relu, the difference, and two norms of it. The products before it are
PyTorch's and those of `product`.

Sums are kept per block of entries and added in the order of the blocks, so they do not depend on the number of threads.

This module imports Numba, so the package imports it at the first use.
"""

import math
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import carray, cfunc, types
from torch import Tensor

from lignn.propagation import threads
from lignn.propagation.intrinsics import as_pointer, count_up
from lignn.propagation.product_kernels import NUMPY, cached_on_disk
from lignn.propagation.threads import ThreadFunction

BLOCK = 1 << 13
"""Entries of a block."""
FIELDS = ("taken", "y", "offset", "last", "sums", "entries", "blocks")
"""A counter from which the threads take blocks, four addresses, and two counts."""
TASK = np.dtype([(name, np.int64) for name in FIELDS])


def rectify(y: Tensor, offset: Tensor, last: Tensor) -> tuple[float, float, float]:
    """Set `y` to `relu(y + offset)`; return `‖y - last‖`, `‖y‖` and the largest entry of `|y - last|`.

    Args:
        y: the state before the activation; contiguous, on the CPU.
        offset: B, of the same shape and type.
        last: the last state, of the same shape and type.
    """
    offset, last = offset.contiguous(), last.contiguous()
    blocks = -(-y.numel() // BLOCK)
    sums = np.zeros((blocks, 3))
    addresses = y.data_ptr(), offset.data_ptr(), last.data_ptr(), sums.ctypes.data
    task = np.array([0, *addresses, y.numel(), blocks], np.int64)
    threads.run_in_threads(_function(NUMPY[y.dtype]), task.ctypes.data, threads.threads_for(4 * y.numel()))
    change, value = sums[:, :2].sum(0).tolist()
    return math.sqrt(change), math.sqrt(value), float(sums[:, 2].max(initial=0.0))


@cache
def _function(kind: Any) -> Any:
    return ThreadFunction(_kernel(kind).address)


@cache
def _kernel(kind: Any) -> Any:
    """Compile the kernel for one type of entries."""

    def kernel(pointer):  # type: ignore[no-untyped-def]
        task = carray(pointer, 1)[0]
        y = carray(as_pointer(task.y), (task.entries,), kind)
        offset = carray(as_pointer(task.offset), (task.entries,), kind)
        last = carray(as_pointer(task.last), (task.entries,), kind)
        sums = carray(as_pointer(task.sums), (task.blocks, 3), np.float64)
        block = count_up(pointer)
        while block < task.blocks:
            change, value, largest = 0.0, 0.0, 0.0
            for i in range(block * BLOCK, min((block + 1) * BLOCK, task.entries)):
                total = y[i] + offset[i]
                total = kind(0) if total < kind(0) else total  # NaN stays
                difference = np.float64(total - last[i])
                y[i] = total
                change += difference * difference
                value += np.float64(total) * np.float64(total)
                largest = max(largest, abs(difference))
            sums[block, 0], sums[block, 1], sums[block, 2] = change, value, largest
            block = count_up(pointer)

    signature = types.void(types.CPointer(numba.from_dtype(TASK)))
    return cached_on_disk(cfunc, signature, fastmath={"reassoc", "contract"}, error_model="numpy")(kernel)
