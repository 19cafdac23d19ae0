"""Commands that run in several processes: `--workers N` starts them, here or on a Ray cluster; `torchrun` may too."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, NoReturn

import typer

from lignn.errors import InputError, ProcessError

Workers = Annotated[
    int, typer.Option(min=1, metavar="N", help="Processes that share a store; each holds some of its parts.")
]

Ray = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Ray cluster to run on, local for one of this machine only; needs lignn\\[ray].",
        show_default=False,
    ),
]

command: list[str] = []
"""The arguments of the present command, which its processes get too."""


def is_first() -> bool:
    """Return whether this process speaks to the user: it is alone, or the first of several."""
    return os.environ.get("RANK", "0") == "0"


def started() -> bool:
    """Return whether this process was started as one of several."""
    return "RANK" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1"


def launch(count: int, ray: str | None = None) -> None:
    """Run the present command in so many processes, and exit as they do; return if this is one of them, or alone.

    Args:
        count: number of processes.
        ray: address of the Ray cluster to run them on; None: this machine.
    """
    if started():
        return
    if ray is not None:
        from lignn.cli import ray_processes

        _end(ray_processes.run(ray, count, command), count)
    if count == 1:
        return
    import logging

    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    os.environ.setdefault("OMP_NUM_THREADS", str(max((os.cpu_count() or 1) // count, 1)))
    config = LaunchConfig(
        min_nodes=1, max_nodes=1, nproc_per_node=count, run_id="lignn", max_restarts=0, monitor_interval=0.1,
        rdzv_backend="c10d", rdzv_endpoint="localhost:0",
    )  # fmt: skip
    try:
        elastic_launch(config, sys.executable)("-m", "lignn", *command)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        _end((rank, failure.exitcode), count)
    except Exception as error:
        if type(error).__name__ != "SignalException":
            raise
        raise typer.Exit(130) from None
    raise typer.Exit


def _end(failure: tuple[int, int] | None, count: int) -> NoReturn:
    """End the command after its processes: with the exit code of a failed one, or with a sentence on its death.

    Args:
        failure: rank and exit code of the first process that failed; None if none did.
        count: number of processes.
    """
    rank, code = failure or (0, 0)
    if code >= 0:
        raise typer.Exit(code)  # the process has told why
    name = signal.Signals(-code).name
    why = " (perhaps there was not enough memory)" if name == "SIGKILL" else ""
    again = shlex.join(["lignn", *command, *([] if "--resume" in command else ["--resume"])])
    raise ProcessError(
        f"process {rank + 1} of {count} was ended by {name}{why}, so that the run has stopped; "
        f"if it has left a checkpoint, go on with: {again}"
    )


@contextmanager
def on_ray(address: str | None) -> Iterator[None]:
    """Run the tasks of many runs on a Ray cluster within the context; None: on this machine."""
    from lignn.runs import workers  # which is slow to import

    with workers.on_ray(address):
        yield


def refuse_several(workers: int, graph: str) -> None:
    """Raise if several processes are wanted for a graph that is not in a store."""
    if workers > 1 or started():
        raise InputError(f"--workers: {graph} is not a store; make one by: lignn store build {graph} DIR --parts 8")


def remember(arguments: Sequence[str] | None) -> None:
    """Remember the arguments of the present command."""
    command[:] = sys.argv[1:] if arguments is None else arguments
