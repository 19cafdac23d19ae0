"""The gradient of the rows between the two products of a fused step: the kernel.

Forward, the rows of a two-layer network are `Q = (relu(P W + F) ∘ D) V`, see `step_kernels`. From `B = dL/dQ` follow

    H  = relu(P W + F) ∘ D        computed again, row by row
    dF = (B Vᵀ) ∘ D ∘ [H > 0]     the gradient of what the features contribute
    dW = Pᵀ dF,  dV = Hᵀ B,  dP = dF Wᵀ

in one pass over the rows. A row of H and of dF stays in the first-level cache. Weights are c×hidden here, so that all
inner loops run over the hidden units, which lie side by side, and the compiler turns them into vector instructions.

Threads take blocks of rows. Sums are kept per block, so that they do not depend on the number of threads.

This module imports Numba, so the package imports it at the first gradient.
"""

from functools import cache
from typing import Any

import numba
import numpy as np
from numba import carray, cfunc, types

from lignn.propagation.intrinsics import as_pointer, count_up
from lignn.propagation.product_kernels import cached_on_disk

BLOCK_ROWS = 512
"""Rows of a block."""

FIELDS = (
    "taken",  # counter from which the threads take blocks
    "p", "b", "features", "mask", "first", "second", "d_features", "d_p", "sums", "scratch",  # addresses
    "rows", "hidden", "blocks",
)  # fmt: skip
TASK = np.dtype([(name, np.int64) for name in FIELDS])
"""What the kernel reads. `sums` has dW and dV of each block, `scratch` a row of H and of dF for each block."""


@cache
def kernel(c: int, kind: Any, has_mask: bool) -> Any:
    """Compile the kernel for one number of classes."""

    def kernel(pointer):  # type: ignore[no-untyped-def]
        task = carray(pointer, 1)[0]
        hidden = task.hidden
        p = carray(as_pointer(task.p), (task.rows, c), kind)
        b = carray(as_pointer(task.b), (task.rows, c), kind)
        features = carray(as_pointer(task.features), (task.rows, hidden), kind)
        mask = carray(as_pointer(task.mask), (task.rows, hidden), kind)
        first = carray(as_pointer(task.first), (c, hidden), kind)
        second = carray(as_pointer(task.second), (c, hidden), kind)
        d_features = carray(as_pointer(task.d_features), (task.rows, hidden), kind)
        d_p = carray(as_pointer(task.d_p), (task.rows, c), kind)
        sums = carray(as_pointer(task.sums), (task.blocks, 2, c, hidden), kind)
        scratch = carray(as_pointer(task.scratch), (task.blocks, 2, hidden), kind)
        block = count_up(pointer)
        while block < task.blocks:
            d_first, d_second = sums[block, 0], sums[block, 1]
            h, d = scratch[block, 0], scratch[block, 1]
            for row in range(block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, task.rows)):
                for j in range(hidden):
                    value, change = features[row, j], kind(0)
                    for k in range(c):
                        value += p[row, k] * first[k, j]
                        change += b[row, k] * second[k, j]
                    factor = mask[row, j] if has_mask else kind(1)
                    factor = factor if value > 0 else kind(0)
                    h[j], d[j] = value * factor, change * factor
                for j in range(hidden):
                    d_features[row, j] = d[j]
                for k in range(c):
                    total = kind(0)
                    for j in range(hidden):
                        d_first[k, j] += p[row, k] * d[j]
                        d_second[k, j] += b[row, k] * h[j]
                        total += d[j] * first[k, j]
                    d_p[row, k] = total
            block = count_up(pointer)

    signature = types.void(types.CPointer(numba.from_dtype(TASK)))
    return cached_on_disk(cfunc, signature, fastmath={"reassoc", "contract"}, error_model="numpy")(kernel)
