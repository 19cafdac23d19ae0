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


def start(folder: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "lignn", "reproduce", str(folder / "tiny.toml"), "--out", str(folder)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*command, *more], **streams, text=True, start_new_session=True)


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


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /proc")
def test_a_signal_to_the_whole_group_fails_no_run(tmp_path):
    """Schedulers send SIGTERM to workers too; their runs are not recorded as failed."""
    (tmp_path / "tiny.toml").write_text(tiny.TEXT.replace("max_epochs = 2", "max_epochs = 9999, patience = 9999"))
    process = start(tmp_path, "--jobs", "2")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while len(children.read_text().split()) < 3:  # two workers, and a process of Python's multiprocessing
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    time.sleep(3)
    os.killpg(process.pid, signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (128 + signal.SIGTERM, "")
    assert err.startswith("interrupted after 0 of 4 runs; finished runs are recorded, and the same command continues")
    assert err.count("\n") == 1
    file = tmp_path / "tiny.jsonl"
    assert not file.exists() or b"failed" not in file.read_bytes()
