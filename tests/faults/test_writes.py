"""Every write may fail or be the last: the old result or the new one stays whole, and the command can be repeated.

By default, a sample of the writes of each command is tried; all of them with LIGNN_FAULTS=all.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.injection import ALWAYS, COMMANDS, KILL, LIMIT, ONCE

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
ALL = os.environ.get("LIGNN_FAULTS") == "all"
SAMPLE = {"first fit": 1, "save": 3, "reproduce": 1}
"""Writes that are tried of each command in each mode; 2 of other commands."""


class Server:
    """The process that runs commands with faults."""

    def __init__(self, folder: Path) -> None:
        one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        checkout = Path(__file__).parent.parent.parent
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.injection", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | one_thread,
            cwd=checkout,
        )
        self.ask("prepare")

    def ask(self, do: str, **order: Any) -> Any:
        """Return the value of an order that succeeds."""
        result = self.result(do, **order)
        assert result["code"] == 0, f"{order}: {result['said']}"
        return result["value"]

    def result(self, do: str, **order: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": do} | order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def calls(self, folder: str) -> list[str]:
        return (self.folder / f"{folder}.calls").read_text().splitlines()

    def names(self, folder: str) -> set[str]:
        return {path.relative_to(self.folder / folder).as_posix() for path in (self.folder / folder).rglob("*")}

    def stop(self) -> None:
        self.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("faults") / "work")
    yield started
    started.stop()


def numbers(writes: int, sample: int, mode: str) -> list[int]:
    """Return the numbers of the writes to try, spread over all; other ones in each mode."""
    if mode == LIMIT:
        return [0, 1, 100, 300, 1000, 3000] if ALL else [300]
    if ALL or writes <= sample:
        return list(range(1, writes + 1))
    first = {ONCE: 0.5, ALWAYS: 0.2, KILL: 0.8}[mode]
    return [1 + int((first + number) * writes / sample) for number in range(sample)]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_write_fails_or_kills(server: Server, command: str) -> None:
    (old,) = server.ask("state", command=command, folder="start")
    server.ask("run", command=command, number=0, mode=ONCE, folder=command)
    (new,) = server.ask("state", command=command, folder=command)
    assert new != old
    writes = len(server.calls(command))
    assert writes >= 7
    cases = [(mode, n) for mode in (ONCE, ALWAYS, KILL, LIMIT) for n in numbers(writes, SAMPLE.get(command, 2), mode)]
    for mode, number in cases:
        try_one(server, command, mode, number, old, new)
    if ALL:
        print(f"{command}: {len(cases)} faults")  # noqa: T201


def try_one(server: Server, command: str, mode: str, number: int, old: Any, new: Any) -> None:
    folder = f"{command} {mode} {number}"
    result = server.result("run", command=command, number=number, mode=mode, folder=folder)
    last = [] if mode == KILL else server.calls(folder)[number - 1 :][:1]
    case = f"{folder} {last}\n{result['said']}"
    assert "Traceback" not in result["said"], case
    before, after = server.ask("repeat", command=command, folder=folder)
    assert after == new, case
    left = {name for name in server.names(folder) if "/." in f"/{name}" or "checkpoint" in name}
    assert not left, case
    if command == "reproduce":  # each record is a result of its own
        assert all(record in new for record in before or []), case
    else:
        assert before in (old, new), case
    if mode == KILL:
        assert result["code"] == -9, case
    elif result["code"] == 0:
        assert before == new, case
    else:
        assert "error: " in result["said"], case
        assert "nothing was changed" not in result["said"] or before == old, case
    shutil.rmtree(server.folder / folder)
