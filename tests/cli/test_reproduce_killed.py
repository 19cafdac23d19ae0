"""A `lignn reproduce` that is killed outright, and taken up again."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.studies import tiny


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "lignn", "reproduce", str(folder / "tiny.toml"), "--out", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.skipif(os.name != "posix", reason="other systems have no SIGKILL")
def test_after_a_kill_nothing_is_repeated_and_all_lines_are_whole(tmp_path):
    slow = tiny.TEXT.replace("max_epochs = 2", "max_epochs = 150, patience = 150")
    (tmp_path / "tiny.toml").write_text(slow)
    file = tmp_path / "tiny.jsonl"
    first = start(tmp_path)
    while not file.exists() or b"\n" not in file.read_bytes():
        assert first.poll() is None, first.communicate()
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert first.returncode == -signal.SIGKILL
    kept = file.read_bytes()
    whole = kept[: kept.rfind(b"\n") + 1]
    done = whole.count(b"\n")
    assert 1 <= done < 4, "killed too late to be in the middle"

    second = start(tmp_path)
    out, err = second.communicate(timeout=120)
    assert (second.returncode, err) == (0, "")
    assert out == f"tiny: {4 - done} new runs, {done} recorded before; records: {file}\n"
    content = file.read_bytes()
    assert content.startswith(whole)
    assert content.endswith(b"\n")
    identities = [json.loads(line)["id"] for line in content.splitlines()]
    assert len(identities) == len(set(identities)) == 4
