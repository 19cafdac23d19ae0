"""Peak memory of a process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from lignn.runs import workers

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
    measure = partial(_measure, prepare, work, torch.get_num_threads())
    ((_, measured),) = workers.each(measure, [arguments], jobs=1)
    if isinstance(measured, workers.Failure):
        raise measured.exception(f"measuring {arguments}")
    return measured


def _measure(
    prepare: Callable[..., Any], work: Callable[[Any], Any], threads: int, arguments: tuple[Any, ...]
) -> Measured:
    torch.set_num_threads(threads)
    prepared = prepare(*arguments)
    reset()
    before = resident("VmRSS")
    value = work(prepared)
    peak = resident("VmHWM")
    return Measured(value, None if before is None or peak is None else peak - before)


def reset() -> None:
    """Set the peak of this process to what is resident now; only Linux can do this."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def resident(field: str) -> float | None:
    """Return the resident memory of this process in MiB: now (`VmRSS`) or at its peak (`VmHWM`); None if unknown."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


def anonymous(work: Callable[[], Any]) -> tuple[Any, float | None]:
    """Return what `work` returns, and the peak of this process's anonymous memory in MiB; files do not count."""
    highest = 0.0
    done = threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.01):
            highest = max(highest, resident("RssAnon") or 0.0)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return work(), max(highest, resident("RssAnon") or 0.0) or None
    finally:
        done.set()
        watcher.join()
