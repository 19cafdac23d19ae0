"""The process that a command runs in: its standard streams."""

from __future__ import annotations

import codecs
import io
import os
import sys

from lignn.errors import LignnError


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
