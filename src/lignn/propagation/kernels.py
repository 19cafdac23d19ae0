"""CSR matrix times dense matrix on the CPU: the kernels and the one place that chooses among them.

A kernel is compiled for one number of columns, so that the sums of a row stay in vector registers while its entries are
read once. Numba's vectoriser does not get there by itself; `Lanes` gives it vectors of a fixed width, which LLVM turns
into AVX-512, AVX2 or NEON instructions.

Each row is summed by one thread, in an order that depends on nothing but the row: the same product is the same to the
bit in every run and for any number of threads. Numba's own threading layers are not used, because one of them aborts
the process on concurrent calls: kernels release the GIL and run on a small pool that `torch.set_num_threads` governs.

Importing this module imports Numba, so the package does it at the first product.
"""

import ctypes
import mmap
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model
from torch import Tensor

BLOCK_BYTES = 512  # columns of one pass: two accumulators of this size fill half of the AVX-512 registers
PREFETCH_AHEAD = 16  # entries; hides the latency of the last-level cache
PREFETCH_ABOVE = 1 << 20  # bytes of the dense matrix: smaller ones live in the second-level cache
HUGE_PAGES_ABOVE = 1 << 22  # bytes of the result
PARALLEL_ABOVE = 1 << 23  # multiplications: smaller products cost less than waking a thread
NARROW = 16  # columns up to which a product takes about the same time

INT32 = ir.IntType(32)


class Lanes(types.Type):
    """Numba type of a vector with a fixed number of elements, held as vectors whose lengths are powers of two."""

    def __init__(self, dtype: types.Float, width: int) -> None:
        self.dtype, self.width = dtype, width
        super().__init__(f"Lanes({dtype}, {width})")

    @property
    def parts(self) -> list[tuple[int, ir.VectorType]]:
        """Offset and LLVM type of each power of two in the width, the largest first (LLVM splits 40 badly)."""
        element = ir.FloatType() if self.dtype == types.float32 else ir.DoubleType()
        offset, parts = 0, []
        for bit in reversed(range(self.width.bit_length())):
            if self.width >> bit & 1:
                parts.append((offset, ir.VectorType(element, 1 << bit)))
                offset += 1 << bit
        return parts


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, ir.LiteralStructType([vector for _, vector in lanes.parts]))


def _pointer(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, offset: Any, target: ir.Type) -> ir.Value:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), target.as_pointer())


@intrinsic(prefer_literal=True)
def _zeros(_typing: Any, array: Any, width: Any) -> Any:
    lanes = Lanes(array.dtype, width.literal_value)

    def generate(context: Any, _builder: Any, _signature: Any, _arguments: Any) -> ir.Value:
        return ir.Constant(context.get_value_type(lanes), None)

    return lanes(array, width), generate


@intrinsic
def _add(_typing: Any, left: Any, right: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        total = arguments[0]
        for part in range(len(left.parts)):
            first, second = (builder.extract_value(argument, part) for argument in arguments)
            total = builder.insert_value(total, builder.fadd(first, second), part)
        return total

    return left(left, right), generate


@intrinsic
def _add_scaled(_typing: Any, lanes: Any, scale: Any, array: Any, offset: Any) -> Any:
    """`lanes + scale * array[offset : offset + width]`, fused where the processor can."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        total, factor, data, start = arguments
        for part, (shift, vector) in enumerate(lanes.parts):
            pointer = _pointer(context, builder, array, data, builder.add(start, start.type(shift)), vector)
            loaded = builder.load(pointer)
            loaded.align = array.dtype.bitwidth // 8
            undefined = ir.Constant(vector, ir.Undefined)
            single = builder.insert_element(undefined, factor, INT32(0))
            same = ir.Constant(ir.VectorType(INT32, vector.count), None)
            product = builder.fmul(builder.shuffle_vector(single, undefined, same), loaded, flags=["contract"])
            summed = builder.fadd(builder.extract_value(total, part), product, flags=["contract"])
            total = builder.insert_value(total, summed, part)
        return total

    return lanes(lanes, scale, array, offset), generate


@intrinsic
def _store(_typing: Any, lanes: Any, array: Any, offset: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        value, data, start = arguments
        for part, (shift, vector) in enumerate(lanes.parts):
            pointer = _pointer(context, builder, array, data, builder.add(start, start.type(shift)), vector)
            builder.store(builder.extract_value(value, part), pointer).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(lanes, array, offset), generate


@intrinsic
def _prefetch(_typing: Any, lanes: Any, array: Any, offset: Any) -> Any:
    """Ask for the cache lines of `array[offset : offset + width]`."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:
        _, data, start = arguments
        byte = ir.IntType(8)
        kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), INT32, INT32, INT32])
        instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        for shift in range(0, lanes.width, 64 * 8 // array.dtype.bitwidth):
            pointer = _pointer(context, builder, array, data, builder.add(start, start.type(shift)), byte)
            builder.call(instruction, [pointer, INT32(0), INT32(3), INT32(1)])  # to read, keep close, data
        return context.get_dummy_value()

    return types.void(lanes, array, offset), generate


def _jit(function: Callable[..., None]) -> Callable[..., None]:
    """Compile without the GIL, cached on disk where Numba finds a folder that it may write to."""
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # no such folder: compile in every process
        return njit(nogil=True)(function)


@cache
def _kernel(width: int) -> Callable[..., None]:
    """The kernel that computes `width` neighbouring columns, from `column` on, of the rows `first` to `last`."""

    def kernel(first, last, indptr, indices, values, dense, out, column, ahead):  # type: ignore[no-untyped-def]
        stride = np.uint64(dense.shape[1])
        column = np.uint64(column)
        count = np.uint64(indices.shape[0])
        ahead = np.uint64(ahead)
        one = np.uint64(1)
        for row in range(np.uint64(first), np.uint64(last)):
            # Two sums, over even and odd entries, halve the chain of additions that wait for each other.
            even = _zeros(dense, width)
            odd = _zeros(dense, width)
            entry = np.uint64(indptr[row])
            stop = np.uint64(indptr[row + one])
            while entry + one < stop:
                later = entry + ahead
                if later + one < count:
                    _prefetch(even, dense, np.uint64(indices[later]) * stride + column)
                    _prefetch(even, dense, np.uint64(indices[later + one]) * stride + column)
                even = _add_scaled(even, values[entry], dense, np.uint64(indices[entry]) * stride + column)
                entry += one
                odd = _add_scaled(odd, values[entry], dense, np.uint64(indices[entry]) * stride + column)
                entry += one
            if entry < stop:
                even = _add_scaled(even, values[entry], dense, np.uint64(indices[entry]) * stride + column)
            _store(_add(even, odd), out, row * stride + column)

    return _jit(kernel)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="lignn-kernel")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child process does not inherit the threads


def over_rows(run: Callable[[int, int], None], indptr: np.ndarray, work: int) -> None:
    """Call `run(first, last)` for blocks of rows with equally many entries, one a thread; little work is not divided.

    Rows alone would not do: the hubs of a power-law graph sit in few of them.
    """
    threads = torch.get_num_threads() if work > PARALLEL_ABOVE else 1
    if threads == 1:
        run(0, len(indptr) - 1)
        return
    inner = np.searchsorted(indptr, np.linspace(0, indptr[-1], threads + 1)[1:-1]).tolist()
    mine, *others = pairwise([0, *inner, len(indptr) - 1])
    running = [_pool().submit(run, *block) for block in others]
    run(*mine)
    for block in running:
        block.result()


def _use_huge_pages(tensor: Tensor) -> None:
    """Ask Linux for huge pages before the first touch: faults of 4 KiB are a fifth of the time of a large product."""
    advise = _madvise()
    if advise is not None:
        start = -(-tensor.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        advise(
            start, tensor.data_ptr() + tensor.nbytes - start, mmap.MADV_HUGEPAGE
        )  # advice: a refusal does not matter


@cache
def _madvise() -> Callable[[int, int, int], int] | None:
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    function = ctypes.CDLL(None).madvise
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function


def multiply(indptr: Tensor, indices: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """The product of a CSR matrix and a dense matrix of the same type, both on the CPU."""
    entries, width = indices.shape[0], dense.shape[1]
    out = dense.new_empty((indptr.shape[0] - 1, width))
    if out.nbytes > HUGE_PAGES_ABOVE:
        _use_huge_pages(out)
    arrays = [tensor.numpy() for tensor in (indptr, indices, values, dense.contiguous(), out)]
    ahead = PREFETCH_AHEAD if dense.nbytes > PREFETCH_ABOVE and width > NARROW else entries
    block = BLOCK_BYTES // dense.element_size()

    def run(first: int, last: int) -> None:
        for column in range(0, width, block):
            _kernel(min(block, width - column))(first, last, *arrays, column, ahead)

    over_rows(run, arrays[0], entries * max(width, NARROW))
    return out
