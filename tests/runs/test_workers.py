import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe
from pathlib import Path

import pytest
import torch

from lignn.errors import ConfigError, LignnError
from lignn.runs import workers


def task(number: int) -> int:
    if number == 3:
        raise LignnError("three is not allowed")
    if number == 4:
        raise KeyError("four")
    if number == 5:
        os._exit(7)
    if number == 8:
        raise ConfigError("eight is too much")
    return 10 * number + torch.get_num_threads()


def test_every_task_has_one_result_whatever_happens_to_the_others():
    results = dict(workers.each(task, range(9), jobs=2))
    assert [results[number] for number in (0, 1, 2, 6, 7)] == [1, 11, 21, 61, 71]
    assert results[3] == "three is not allowed"
    assert results[4].startswith("KeyError: 'four' (test_workers.py, line ")
    assert results[5] == "the worker process ended with exit code 7"
    assert all(isinstance(results[number], workers.Failure) for number in (3, 4, 5, 8))
    assert str(results[3].exception("task 3")) == "task 3: three is not allowed"
    bad_input = results[8].exception("task 8")
    assert (type(bad_input), str(bad_input)) == (ConfigError, "eight is too much")


def test_no_tasks_need_no_workers():
    assert list(workers.each(task, [], jobs=2)) == []


def process_id(_: int) -> int:
    return os.getpid()


def test_rounds_are_asked_for_in_turn_and_share_the_processes():
    seen = []

    def rounds():
        yield range(2)
        assert len(seen) == 2
        yield []
        yield range(2, 6)

    for number, process in workers.in_rounds(process_id, rounds(), jobs=2):
        seen.append((number, process))
    assert sorted(number for number, _ in seen) == list(range(6))
    assert len({process for _, process in seen}) <= 2


def test_a_time_that_is_over_ends_the_iteration_and_its_processes():
    assert list(workers.each(time.sleep, [600, 600], jobs=2, until=time.monotonic())) == []
    assert multiprocessing.active_children() == []


def test_a_worker_that_is_killed_while_it_waits_costs_nothing():
    results = workers.each(process_id, range(3), jobs=1)
    _, idle = next(results)
    os.kill(idle, signal.SIGKILL)
    os.waitid(os.P_PID, idle, os.WEXITED | os.WNOWAIT)
    others = [result for _, result in results]
    assert len(others) == 2
    assert idle not in others
    assert all(isinstance(result, int) for result in others)


def test_a_worker_that_dies_as_it_is_given_a_task_costs_that_task():
    worker = workers._Worker(process_id)
    worker.process.kill()
    worker.process.join()
    worker.give(1)
    assert worker.collect() == (1, "the worker process ended with exit code -9")
    worker.stop()


def test_a_worker_that_dies_within_a_message_costs_its_task():
    worker = workers._Worker(process_id)
    worker.connection.close()
    worker.connection, theirs = Pipe()
    worker.give(1)
    os.write(theirs.fileno(), (100).to_bytes(4, "big") + b"the first of 100 bytes")
    theirs.close()
    worker.process.kill()
    assert worker.collect() == (1, "the worker process ended with exit code -9")
    worker.stop()


def hold(folder: str) -> None:
    """Stay in compiled code that holds Python's lock, so that no other thread runs."""
    (Path(folder) / str(os.getpid())).touch()
    ctypes.PyDLL(None).sleep(60)


PARENT = """
import sys
from lignn.runs import workers
from tests.runs.test_workers import hold

if __name__ == "__main__":
    list(workers.each(hold, [sys.argv[1]] * 2, jobs=2))
"""


def children(process: int) -> list[int]:
    return [int(number) for number in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills processes with their parent")
@pytest.mark.parametrize("busy", [False, True])
def test_workers_do_not_outlive_a_parent_that_is_killed(tmp_path, busy):
    """Neither while they start, nor inside compiled code."""
    script, pids = tmp_path / "parent.py", tmp_path / "pids"
    script.write_text(PARENT)
    pids.mkdir()
    parent = subprocess.Popen(
        [sys.executable, script, pids], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    )
    end = time.monotonic() + 60
    while len(list(pids.iterdir()) if busy else children(parent.pid)) < 2:
        assert time.monotonic() < end
        time.sleep(0.02)
    started = children(parent.pid)
    parent.kill()
    parent.wait()
    end = time.monotonic() + 20  # a process that starts has to import Python's own modules first
    while alive := [pid for pid in started if Path(f"/proc/{pid}/cmdline").exists()]:
        assert time.monotonic() < end, alive
        time.sleep(0.02)
