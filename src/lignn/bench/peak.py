"""Peak memory of a process, and of tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from lignn.evaluation import workers

MIB = 2**20


@dataclass(frozen=True)
class Measured:
    """The result of some work, and its peak memory.

    Attributes:
        value: what the work returned.
        peak_mib: peak of the resident memory minus that before the work, in MiB; None on other systems than Linux.
    """

    value: Any
    peak_mib: float | None


def in_fresh_process(prepare: Callable[..., Any], work: Callable[[Any], Any], *arguments: Any) -> Measured:
    """Call `work(prepare(*arguments))` in a new process with as many threads, and measure the peak of `work` alone.

    Resident memory includes what torch's allocators do not see, but a process never returns all of it to the system.
    Each side therefore needs a new process.
    """
    task = _Task(prepare, work, arguments, torch.get_num_threads())
    ((_, measured),) = workers.each(_measure, [task], jobs=1)
    if isinstance(measured, workers.Failure):
        raise measured.exception(f"measuring {arguments}")
    return measured


class _Task(NamedTuple):
    prepare: Callable[..., Any]
    work: Callable[[Any], Any]
    arguments: tuple[Any, ...]
    threads: int


def _measure(task: _Task) -> Measured:
    torch.set_num_threads(task.threads)
    prepared = task.prepare(*task.arguments)
    status = Path("/proc/self/status")
    if not status.exists():
        return Measured(task.work(prepared), None)
    Path("/proc/self/clear_refs").write_text("5")  # Resets the peak to what is resident now.
    before = _kibibytes(status, "VmRSS")
    value = task.work(prepared)
    return Measured(value, (_kibibytes(status, "VmHWM") - before) / 1024)


def _kibibytes(status: Path, field: str) -> int:
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(f"{field}:"))


def of_tensors(work: Callable[[], object]) -> int:
    """Return the largest number of bytes that tensors allocated by `work` hold at once, from the profiler's events."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    live = most = 0
    for event in profiler.profiler.kineto_results.events():
        if event.name() == "[memory]":
            live += event.nbytes()
            most = max(most, live)
    return most
