"""The three kernels of a fused step between its two products with Ã, for one number of classes c.

A two-layer network `σ(Ã relu(Ã X W + F) V + b)` with input `X = scale ∘ Z + offset` is, forward,

    enter    X ← scale ∘ Z + offset          (mixes the state Z first, if the solver is Anderson's)
    product  P ← Ã X
    rows     Q ← (relu(P W + F) ∘ D) V       n×hidden numbers that never leave the registers
    product  Y ← Ã Q
    finish   f ← σ(Y + b), and all sums that the solver needs

and its transposed derivative at a state, backward,

    enter    X ← σ'(G)                       p ∘ (G - ⟨p, G⟩) for a softmax
    product  P ← Ãᵀ X
    rows     Q ← ((P Vᵀ) ∘ D') Wᵀ            D' = D ∘ [P W + F > 0], recorded by a forward step
    product  Y ← Ãᵀ Q
    finish   f ← scale ∘ Y + offset, and the sums

A kernel is a C function of the address of a `TASK`. All threads call it; each takes blocks of tiles until none is left.
Sums are kept per block and added in the order of the blocks, so that they do not depend on the number of threads.
"""

from functools import cache
from typing import Any

import numba
import numpy as np
from numba import carray, cfunc, njit, types

from lignn.propagation.columns import (
    TILE_BYTES,
    add_outer,
    add_to_columns,
    add_weighted,
    load,
    load_columns,
    multiply,
    positive,
    relu,
    sigmoid,
    softmax,
    softmax_gradient,
    store_columns,
    zero_columns,
)
from lignn.propagation.intrinsics import as_pointer, count_up, store
from lignn.propagation.product_kernels import cached_on_disk

MEMORY = 10
"""Most steps that a solver may remember."""
BLOCK_TILES = 8
"""Tiles of a block."""
SUMS = 5 + 2 * MEMORY
"""Sums of a block: of squares of r, of f, of the differences of f and of z; the largest |r|; inner products with r."""

_ADDRESSES = (
    "taken", "x", "p", "q", "y", "first", "second", "features", "mask", "recorded", "bias", "scale", "offset", "output",
    "z", "f", "last_z", "last_f", "r", "last_r", "values", "changes", "gamma", "sums",
)  # fmt: skip
_NUMBERS = (
    "entries", "padded", "hidden", "tiles", "blocks", "backward", "diagonal", "sigmoid", "has_mask", "records",
    "remembers", "has_last", "held", "slot", "mixes",
)  # fmt: skip
FIELDS = _ADDRESSES + _NUMBERS
TASK = np.dtype([(name, np.int64) for name in FIELDS])
"""What a kernel reads: addresses of arrays, sizes, and what to compute.

Arrays of states have `padded` entries, the first `entries` of which count. `values` and `changes` hold the last
differences of f and of r, one row a slot: `mixes` slots are mixed into the state, then `slot` is written, after which
`held` slots are in use.
"""


@cache
def lanes(kind: Any) -> int:
    """Return the number of rows of a tile."""
    return TILE_BYTES // np.dtype(kind).itemsize


@cache
def enter(c: int, kind: Any) -> Any:
    """Compile the kernel that computes the input of the first product."""
    width = lanes(kind)

    def kernel(pointer):  # type: ignore[no-untyped-def]
        task = carray(pointer, 1)[0]
        z = carray(as_pointer(task.z), (task.padded,), kind)
        last_f = carray(as_pointer(task.last_f), (task.padded,), kind)
        x = carray(as_pointer(task.x), (task.padded,), kind)
        scale = carray(as_pointer(task.scale), (task.padded,), kind)
        offset = carray(as_pointer(task.offset), (task.padded,), kind)
        output = carray(as_pointer(task.output), (task.padded,), kind)
        values = carray(as_pointer(task.values), (MEMORY, task.padded), kind)
        gamma = carray(as_pointer(task.gamma), (MEMORY,), np.float64)
        block = count_up(as_pointer(task.taken))
        while block < task.blocks:
            first, last = block * BLOCK_TILES, min((block + 1) * BLOCK_TILES, task.tiles)
            low, high = first * width * c, last * width * c
            if task.mixes:
                for i in range(low, high):
                    z[i] = last_f[i]
                for j in range(task.mixes):
                    factor = kind(gamma[j])
                    for i in range(low, high):
                        z[i] -= factor * values[j, i]
            if not task.backward:
                for i in range(low, high):
                    x[i] = scale[i] * z[i] + offset[i]
            elif task.diagonal:
                for i in range(low, high):
                    x[i] = output[i] * (kind(1) - output[i]) * z[i]
            else:
                for tile in range(first, last):
                    place = tile * width * c
                    g = softmax_gradient(load_columns(output, place, c), load_columns(z, place, c))
                    store_columns(g, x, place)
            block = count_up(as_pointer(task.taken))

    return _compiled(kernel)


@cache
def rows(c: int, kind: Any) -> Any:
    """Compile the kernel that maps the rows between the two products."""
    width = lanes(kind)

    def kernel(pointer):  # type: ignore[no-untyped-def]
        task = carray(pointer, 1)[0]
        hidden = task.hidden
        p = carray(as_pointer(task.p), (task.padded,), kind)
        q = carray(as_pointer(task.q), (task.padded,), kind)
        first = carray(as_pointer(task.first), (hidden * c,), kind)
        second = carray(as_pointer(task.second), (hidden * c,), kind)
        features = carray(as_pointer(task.features), (task.tiles * hidden * width,), kind)
        mask = carray(as_pointer(task.mask), (task.tiles * hidden * width,), kind)
        recorded = carray(as_pointer(task.recorded), (task.tiles * hidden * width,), kind)
        block = count_up(as_pointer(task.taken))
        while block < task.blocks:
            for tile in range(block * BLOCK_TILES, min((block + 1) * BLOCK_TILES, task.tiles)):
                columns, total = load_columns(p, tile * width * c, c), zero_columns(p, c)
                nothing, place = total[0], tile * hidden * width
                for t in range(hidden):
                    if task.backward:
                        h = multiply(add_weighted(nothing, columns, first, t * c), mask, place)
                    else:
                        h = relu(add_weighted(load(columns, features, place), columns, first, t * c))
                        active = positive(h)
                        if task.has_mask:
                            h, active = multiply(h, mask, place), multiply(active, mask, place)
                        if task.records:
                            store(active, recorded, place)
                    total = add_outer(total, h, second, t * c)
                    place += width
                store_columns(total, q, tile * width * c)
            block = count_up(as_pointer(task.taken))

    return _compiled(kernel)


@cache
def finish(c: int, kind: Any) -> Any:
    """Compile the kernel that computes the next state from the second product, and the sums over its block."""
    width = lanes(kind)

    def kernel(pointer):  # type: ignore[no-untyped-def]
        task = carray(pointer, 1)[0]
        y = carray(as_pointer(task.y), (task.padded,), kind)
        f = carray(as_pointer(task.f), (task.padded,), kind)
        bias = carray(as_pointer(task.bias), (c,), kind)
        scale = carray(as_pointer(task.scale), (task.padded,), kind)
        offset = carray(as_pointer(task.offset), (task.padded,), kind)
        block = count_up(as_pointer(task.taken))
        while block < task.blocks:
            first, last = block * BLOCK_TILES, min((block + 1) * BLOCK_TILES, task.tiles)
            low, high = first * width * c, last * width * c
            if task.backward:
                for i in range(low, high):
                    f[i] = scale[i] * y[i] + offset[i]
            else:
                for tile in range(first, last):
                    logits = add_to_columns(load_columns(y, tile * width * c, c), bias)
                    if task.sigmoid:
                        store_columns(sigmoid(logits), f, tile * width * c)
                    else:
                        store_columns(softmax(logits), f, tile * width * c)
            _measure(task, f, block, low, min(high, task.entries))
            if task.remembers:
                _remember(task, f, block, low, min(high, task.entries))
            block = count_up(as_pointer(task.taken))

    return _compiled(kernel)


@njit(fastmath={"reassoc", "contract"}, error_model="numpy")
def _measure(task, f, block, low, high):  # type: ignore[no-untyped-def]
    """Sum the squares of the change and of the value over a block."""
    z = carray(as_pointer(task.z), (task.padded,), f.dtype)
    sums = carray(as_pointer(task.sums), (task.blocks, SUMS), np.float64)
    change, value, largest = 0.0, 0.0, 0.0
    for i in range(low, high):
        r = np.float64(f[i] - z[i])
        change += r * r
        value += np.float64(f[i]) * np.float64(f[i])
        largest = max(largest, abs(r))
    sums[block, 0], sums[block, 1], sums[block, 4] = change, value, largest


@njit(fastmath={"reassoc", "contract"}, error_model="numpy")
def _remember(task, f, block, low, high):  # type: ignore[no-untyped-def]
    """Write the change and the differences to the last step, and sum their inner products over a block."""
    z = carray(as_pointer(task.z), (task.padded,), f.dtype)
    r = carray(as_pointer(task.r), (task.padded,), f.dtype)
    for i in range(low, high):
        r[i] = f[i] - z[i]
    if not task.has_last:
        return
    last_z = carray(as_pointer(task.last_z), (task.padded,), f.dtype)
    last_f = carray(as_pointer(task.last_f), (task.padded,), f.dtype)
    last_r = carray(as_pointer(task.last_r), (task.padded,), f.dtype)
    values = carray(as_pointer(task.values), (MEMORY, task.padded), f.dtype)
    changes = carray(as_pointer(task.changes), (MEMORY, task.padded), f.dtype)
    sums = carray(as_pointer(task.sums), (task.blocks, SUMS), np.float64)
    of_values, of_states = 0.0, 0.0
    for i in range(low, high):
        step, moved = f[i] - last_f[i], np.float64(z[i] - last_z[i])
        values[task.slot, i] = step
        changes[task.slot, i] = r[i] - last_r[i]
        of_values += np.float64(step) * np.float64(step)
        of_states += moved * moved
    sums[block, 2], sums[block, 3] = of_values, of_states
    for j in range(task.held):
        with_new, with_change = 0.0, 0.0
        for i in range(low, high):
            old = np.float64(changes[j, i])
            with_new += old * np.float64(changes[task.slot, i])
            with_change += old * np.float64(r[i])
        sums[block, 5 + j], sums[block, 5 + MEMORY + j] = with_new, with_change


def _compiled(kernel: Any) -> Any:
    return cached_on_disk(cfunc, types.void(types.CPointer(numba.from_dtype(TASK))))(kernel)
