"""The runner of many tasks: worker processes with one thread each, or the tasks of a Ray cluster.

A worker that dies loses its task; the other tasks are not affected.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from lignn.errors import DataWarning, InputError, LignnError

Task = TypeVar("Task")

_GROUP_SIGNALS = tuple(-getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Exit codes of workers that were ended by a signal that is often sent to a whole group of processes."""

_PR_SET_PDEATHSIG = 1


class Failure(str):
    """Why a task has no result, in one line.

    Attributes:
        error: the exception, if it tells of bad input; None for any other failure.
    """

    error: InputError | None = None

    def exception(self, task: str) -> LignnError:
        """Return the error to raise: bad input as it was reported, any other failure with the name of the task."""
        return self.error or LignnError(f"{task}: {self}")


class _Worker(Generic[Task]):
    def __init__(self, function: Callable[[Task], Any]) -> None:
        # A forked process would inherit torch's threads in an unknown state.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        in_main_thread = threading.current_thread() is threading.main_thread()
        self.process = context.Process(target=_serve, args=(theirs, in_main_thread), daemon=True)
        self.process.start()
        theirs.close()
        with suppress(OSError):  # The worker has just died; `collect` reports it.
            self.connection.send(function)
        self.task: Task | None = None

    def give(self, task: Task) -> None:
        self.task = task
        with suppress(OSError):  # The worker has just died; `collect` reports it.
            self.connection.send(task)

    def collect(self) -> tuple[Task, Any]:
        """Return the task and its result, or a failure if the worker has died."""
        assert self.task is not None
        task, self.task = self.task, None
        try:
            return task, self.connection.recv()
        except (EOFError, OSError):  # The worker died between two messages, or within one.
            self.process.join()
            if self.process.exitcode in _GROUP_SIGNALS:
                time.sleep(1)  # The signal may be for all processes: let this one be interrupted, nothing has failed.
            return task, Failure(f"the worker process ended with exit code {self.process.exitcode}")

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()
        self.connection.close()


_CLUSTER: ContextVar[str | None] = ContextVar("cluster", default=None)
"""Address of the Ray cluster that runs tasks; None: this machine."""


@contextmanager
def on_ray(address: str | None) -> Iterator[None]:
    """Have tasks run on a Ray cluster within the context unless they name one; None: in processes of this machine."""
    before = _CLUSTER.set(address)
    try:
        yield
    finally:
        _CLUSTER.reset(before)


def each(
    function: Callable[[Task], Any], tasks: Iterable[Task], jobs: int, until: float | None = None
) -> Generator[tuple[Task, Any], None, None]:
    """Call `function` with every task in `jobs` processes, and yield each task with its result or its `Failure`.

    The results come in the order in which they are ready. The processes end when the iteration does, also when it is
    left early by an exception or Ctrl-C. Within `on_ray`, a cluster runs as many tasks at once as it has CPUs.

    Args:
        function: what to call.
        tasks: its arguments.
        jobs: number of processes.
        until: a time of `time.monotonic` at which the iteration ends, whatever is still under way.
    """
    return in_rounds(function, [tasks], jobs, until)


def in_rounds(
    function: Callable[[Task], Any],
    rounds: Iterable[Iterable[Task]],
    jobs: int,
    until: float | None = None,
    on: str | None = None,
) -> Generator[tuple[Task, Any], None, None]:
    """Do as `each` does for several lists of tasks, in the same processes, or on the Ray cluster at the address `on`.

    A list is asked for after the last result of the list before it, on which it may depend.
    """
    address = on or _CLUSTER.get()
    if address is None:
        yield from _in_processes(function, rounds, jobs, until)
    else:
        yield from _on_cluster(function, rounds, address, until)


def here_or_in_rounds(
    function: Callable[[Task], Any],
    rounds: Iterable[Iterable[Task]],
    jobs: int,
    until: float | None,
    on: str | None = None,
) -> Generator[tuple[Task, Any], None, None]:
    """Do as `in_rounds` does; one job without a limit of time runs in this process, and its errors are raised."""
    if jobs > 1 or until is not None or on or _CLUSTER.get() is not None:
        yield from in_rounds(function, rounds, jobs, until, on)
        return
    for tasks in rounds:
        for task in tasks:
            yield task, function(task)


def _on_cluster(
    function: Callable[[Task], Any], rounds: Iterable[Iterable[Task]], address: str, until: float | None
) -> Generator[tuple[Task, Any], None, None]:
    from lignn import clusters

    with clusters.connected(address) as ray:
        remote = ray.remote(num_cpus=1, max_retries=0)(_outcome)
        running: dict[Any, Task] = {}
        try:
            for tasks in rounds:
                running |= {remote.remote(function, task): task for task in tasks}
                while running:
                    found, _ = ray.wait(list(running), timeout=_left(until))
                    if not found:
                        return
                    task = running.pop(ready := found[0])
                    try:
                        yield task, ray.get(ready)
                    except ray.exceptions.RayError as error:
                        yield task, Failure(f"the Ray task ended: {str(error).strip().splitlines()[0]}")
        finally:
            for left in running:
                ray.cancel(left, force=True)


def _in_processes(
    function: Callable[[Task], Any], rounds: Iterable[Iterable[Task]], jobs: int, until: float | None
) -> Generator[tuple[Task, Any], None, None]:
    workers: list[_Worker[Task]] = []
    try:
        for tasks in rounds:
            waiting = list(reversed(list(tasks)))
            workers += [_Worker(function) for _ in range(min(jobs, len(waiting)) - len(workers))]
            while True:
                for place, worker in enumerate(workers):
                    if waiting and worker.task is None:
                        if not worker.process.is_alive():
                            workers[place] = worker = _Worker(function)
                        worker.give(waiting.pop())
                busy = {worker.connection: worker for worker in workers if worker.task is not None}
                if not busy:
                    break
                done = wait(list(busy), _left(until))
                if not done:
                    return
                for ready in done:
                    yield busy[ready].collect()  # type: ignore[index]
    finally:
        for worker in workers:
            worker.stop()


def _left(until: float | None) -> float | None:
    """Return the seconds until a time of `time.monotonic`; None for no limit."""
    return None if until is None else max(until - time.monotonic(), 0)


def _serve(connection: Connection, parent_in_main_thread: bool) -> None:
    """Receive the function and then tasks, and send their results, until the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is sent to all processes; the parent ends its workers.
    if parent_in_main_thread:  # Linux sends the signal when the thread that started this process ends.
        _be_killed_with_parent()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        function = connection.recv()  # Only now: unpickling it imports packages that take seconds.
    except EOFError:
        return
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        connection.send(_outcome(function, task))


def _outcome(function: Callable[[Task], Any], task: Task) -> Any:
    """Return the result of a task, or its `Failure`: an error in one task must not end the others."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore", DataWarning)  # the parent has read the same graph, and shown its notes
    try:
        return function(task)
    except LignnError as error:
        failure = Failure(str(error))
        failure.error = error if isinstance(error, InputError) else None
        return failure
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        return Failure(f"{type(error).__name__}: {error} ({at.filename.rpartition('/')[2]}, line {at.lineno})")


def _be_killed_with_parent() -> None:
    """Have Linux kill this worker when its parent dies, even inside compiled code that does not let threads run."""
    parent = multiprocessing.parent_process()
    if sys.platform == "linux" and parent is not None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent.pid:  # It died before the call.
            os._exit(1)


def _end_with_parent() -> None:
    """End this worker when its parent is killed and cannot end it; on any system, if threads run."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
