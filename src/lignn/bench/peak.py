"""Peak memory, in two ways: what a process held, and what its tensors held."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lignn.errors import LignnError

MIB = 2**20


@dataclass(frozen=True)
class Measured:
    """What some work gave, and the peak of resident memory above what was there before it.

    Attributes:
        value: its result.
        peak_mib: None where the system does not tell (only Linux does).
    """

    value: Any
    peak_mib: float | None


def in_fresh_process(prepare: Callable[..., Any], work: Callable[[Any], Any], *arguments: Any) -> Measured:
    """`work(prepare(*arguments))` in a process of its own with as many threads; only the peak of `work` counts.

    Resident memory holds everything, also what no allocator of torch sees, but a process never gives all of it back:
    two sides can be compared only if each begins anew.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        try:
            return pool.submit(_measure, torch.get_num_threads(), prepare, work, arguments).result()
        except BrokenProcessPool as error:
            raise LignnError(f"the process that measured {arguments} died, most likely for want of memory") from error


def _measure(threads: int, prepare: Callable[..., Any], work: Callable[[Any], Any], arguments: Any) -> Measured:
    torch.set_num_threads(threads)
    given = prepare(*arguments)
    status = Path("/proc/self/status")
    if not status.exists():
        return Measured(work(given), None)
    Path("/proc/self/clear_refs").write_text("5")  # sets the high-water mark to what is resident now
    before = _kibibytes(status, "VmRSS")
    value = work(given)
    return Measured(value, (_kibibytes(status, "VmHWM") - before) / 1024)


def _kibibytes(status: Path, field: str) -> int:
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(f"{field}:"))


def of_tensors(work: Callable[[], object]) -> int:
    """Most bytes of tensors alive at once during `work` that it has allocated, from the profiler's events."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    live = most = 0
    for event in profiler.profiler.kineto_results.events():
        if event.name() == "[memory]":
            live += event.nbytes()
            most = max(most, live)
    return most
