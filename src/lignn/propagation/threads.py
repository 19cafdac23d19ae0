"""The threads and the memory pages that the kernels run on.

PyTorch's OpenMP threads stay awake for a while after an operator. A second pool of threads would have to wake up for
every product and would find the cores occupied. So the kernels run on PyTorch's threads, and `torch.set_num_threads`
sets their number.
"""

from __future__ import annotations

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
from torch import Tensor

PARALLEL_ABOVE = 1 << 19  # multiplications; for fewer, a second thread costs more time than it saves
HUGE_PAGES_ABOVE = 1 << 22  # bytes of a tensor

ThreadFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
"""C function that every thread calls with the same address, and that takes its share of the work by itself."""


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


def use_huge_pages(tensor: Tensor) -> None:
    """Ask Linux for huge pages before the first write: page faults of 4 KiB take a fifth of a large product's time."""
    advise = _madvise()
    if advise is not None and tensor.nbytes > HUGE_PAGES_ABOVE:
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


@cache
def _gomp_parallel() -> Callable[..., None] | None:
    """Return `GOMP_parallel(function, address, threads, flags)` of GNU's OpenMP if PyTorch has loaded it, else None."""
    function = getattr(ctypes.CDLL(None), "GOMP_parallel", None) if os.name == "posix" else None
    if function is not None:
        function.argtypes = [ThreadFunction, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        function.restype = None
    return function


@cache
def sched_yield() -> int:
    """Return the address of the system's function that lets other threads run, or 0."""
    function = getattr(ctypes.CDLL(None), "sched_yield", None) if os.name == "posix" else None
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


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
