"""Commands that run in several processes: `--workers N` starts them, `torchrun` may do so too."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from lignn.errors import InputError, ProcessError

Workers = Annotated[
    int, typer.Option(min=1, metavar="N", help="Processes that share a store; each holds some of its parts.")
]

command: list[str] = []
"""The arguments of the present command, which its processes get too."""


def is_first() -> bool:
    """Return whether this process speaks to the user: it is alone, or the first of several."""
    return os.environ.get("RANK", "0") == "0"


def started() -> bool:
    """Return whether this process was started as one of several."""
    return "RANK" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1"


def launch(count: int) -> None:
    """Run the present command in so many processes, and exit as they do; return if this is one of them, or alone."""
    if count == 1 or started():
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
        raise _failed(error, count) from None
    except Exception as error:
        if type(error).__name__ != "SignalException":
            raise
        raise typer.Exit(130) from None
    raise typer.Exit


def _failed(error: Any, count: int) -> Exception:
    """Return how the command ends after a process has failed: with its exit code, or with a sentence on its death."""
    rank, failure = error.get_first_failure()
    if failure.exitcode >= 0:
        return typer.Exit(failure.exitcode)  # the process has told why
    name = signal.Signals(-failure.exitcode).name
    why = " (perhaps there was not enough memory)" if name == "SIGKILL" else ""
    again = shlex.join(["lignn", *command, *([] if "--resume" in command else ["--resume"])])
    return ProcessError(
        f"process {rank + 1} of {count} was ended by {name}{why}, so that the run has stopped; "
        f"if it has left a checkpoint, go on with: {again}"
    )


def refuse_several(workers: int, graph: str) -> None:
    """Raise if several processes are wanted for a graph that is not in a store."""
    if workers > 1 or started():
        raise InputError(f"--workers: {graph} is not a store; make one by: lignn store build {graph} DIR --parts 8")


def remember(arguments: Sequence[str] | None) -> None:
    """Remember the arguments of the present command."""
    command[:] = sys.argv[1:] if arguments is None else arguments
