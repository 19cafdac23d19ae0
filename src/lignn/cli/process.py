"""The process that a command runs in: its standard streams, and the signals that end it."""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from lignn.errors import LignnError

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What schedulers send before they kill, and what a process gets when its terminal is closed."""

_INTERRUPTED = 130


def prepare_streams() -> None:
    """Make the standard streams fit for any text; raise if the standard output is closed."""
    _fill_closed_descriptors()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        raise LignnError("the standard output is closed, so nothing can be printed; redirect it to a file or /dev/null")
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.TextIOWrapper):
            continue
        if stream.isatty() and codecs.lookup(stream.encoding).name != "ascii":
            stream.reconfigure(errors="backslashreplace")
        else:  # UTF-8 as in all files; bytes of file names that the locale cannot decode are written as they are
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def _fill_closed_descriptors() -> None:
    """Open the null device for closed standard streams; the next file would get their number, and what is printed."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


@contextmanager
def ending_signals() -> Iterator[Callable[[int], int]]:
    """Let SIGTERM and SIGHUP interrupt the body as Ctrl-C does, which saves what there is.

    Yield a function of the exit code of the body: it returns 128 + n for a body that was interrupted by signal n.
    """
    received: list[int] = []
    terminals = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]

    def interrupt(number: int, _: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)  # A second one must not interrupt the saving.
        received.append(number)
        _replace_dead(terminals)
        raise KeyboardInterrupt

    # A command started by nohup ignores SIGHUP, and goes on doing so.
    before = {each: signal.getsignal(each) for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN}
    if threading.current_thread() is not threading.main_thread():  # Python allows no handlers there.
        before = {}
    for each in before:
        signal.signal(each, interrupt)
    try:
        yield lambda code: 128 + received[0] if received and code == _INTERRUPTED else code
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _replace_dead(terminals: list[int]) -> None:
    """Send what is still printed to the null device if its terminal was closed; writing there would fail."""
    for descriptor in terminals:
        if not os.isatty(descriptor):
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, descriptor)
            os.close(null)
