"""Large blocks that are freed go back to the system."""

import ctypes
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    os.name != "posix" or not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="another C library than glibc"
)

PROGRAM = """
import sys
import torch
from pathlib import Path
from lignn.store.memory import LARGE, give_back_large

def anonymous():
    rows = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("Anonymous")) << 10

if sys.argv[1] == "told":
    give_back_large()
blocks = [torch.ones(LARGE // 2) for _ in range(2)]  # of float32: twice as many bytes as LARGE
blocks.clear()  # from here on, glibc takes such blocks from its heap if it was not told
blocks = [torch.ones(LARGE // 2) for _ in range(20)]
held = anonymous()
del blocks[::2]
print((held - anonymous()) / (20 * LARGE))
"""


@pytest.mark.parametrize(("told", "share"), [("told", 1.0), ("not told", 0.0)])
def test_freed_blocks_between_others_are_given_back(told, share):
    ran = subprocess.run([sys.executable, "-c", PROGRAM, told], capture_output=True, text=True, check=True)
    assert float(ran.stdout) == pytest.approx(share, abs=0.2)
