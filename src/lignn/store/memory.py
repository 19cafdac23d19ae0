"""Freed memory goes back to the system, so that a fit can keep within a limit."""

from __future__ import annotations

import ctypes
import os

LARGE = 8 << 20
"""Bytes of a block that is worth it: the states of some hundred thousand nodes. Others are few beside the program."""

_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of glibc's malloc.h


def give_back_large() -> None:
    """Let the C library return every large block to the system as soon as it is freed.

    Without being told, glibc keeps freed blocks of up to 32 MiB for later ones, and what lies between blocks in use is
    often too small for these. Other C libraries are left as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, LARGE)
