"""Work on the rows of a CSR matrix divided among the threads that PyTorch computes with.

PyTorch's OpenMP threads stay awake for a while after an operator. A second pool would find the cores taken by them and
pay a wake-up for every product; so kernels run on the same threads. `torch.set_num_threads` governs them.
"""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch

PARALLEL_ABOVE = 1 << 20  # multiplications: smaller products take about as long as it takes two threads to meet

Entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
"""A C function that every thread calls with the same address; it takes its share of the work by itself."""


def threads_for(work: int) -> int:
    """How many threads this many multiplications are worth."""
    return torch.get_num_threads() if work > PARALLEL_ABOVE and not _forked else 1


def run(entry: Any, task: int, threads: int) -> None:
    """Call `entry(task)` once in each of so many threads, at the same time, and wait for all."""
    if threads == 1:
        entry(task)
    elif (openmp := _openmp()) is not None:
        openmp(entry, task, threads, 0)
    else:
        list(_pool().map(entry, [task] * threads))


def over_rows(work_on: Callable[[int, int], None], indptr: np.ndarray, work: int) -> None:
    """Call `work_on(first, last)` for blocks of rows with equally many entries, one a thread.

    Rows alone would not do: the hubs of a power-law graph sit in few of them.
    """
    threads = threads_for(work)
    if threads == 1:
        work_on(0, len(indptr) - 1)
        return
    inner = np.searchsorted(indptr, np.linspace(0, indptr[-1], threads + 1)[1:-1]).tolist()
    blocks = iter(pairwise([0, *inner, len(indptr) - 1]))
    errors: list[BaseException] = []

    def take(_: Any) -> None:
        try:
            for block in blocks:
                work_on(*block)
        except BaseException as error:  # a callback from C cannot raise; it is raised below
            errors.append(error)

    run(Entry(take), 0, threads)
    if errors:
        raise errors[0]


@cache
def _openmp() -> Callable[..., None] | None:
    """`GOMP_parallel(entry, task, threads, flags)` of the library that PyTorch has loaded; None where it is another."""
    function = getattr(ctypes.CDLL(None), "GOMP_parallel", None) if os.name == "posix" else None
    if function is not None:
        function.argtypes = [Entry, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        function.restype = None
    return function


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="lignn-kernel")


_forked = False


def _forget_threads() -> None:
    """A child process does not inherit threads, and OpenMP would wait for its own for ever: compute with one."""
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
