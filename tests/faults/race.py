"""Processes that do something at the same time: `python -m tests.faults.race '[["save", "one", "both", 9], …]'`.

It imports everything once, forks a process for each role, and lets them go when all are ready.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path


def save(ready: Callable[[], None], model: str, folder: str, times: int) -> None:
    import lignn

    classifier = lignn.load(model)
    ready()
    for _ in range(times):
        classifier.save(folder)


def load(ready: Callable[[], None], folder: str, times: int, *models: str) -> None:
    import lignn

    allowed = {lignn.load(model).predict_proba().tobytes() for model in models}
    ready()
    while not Path(folder).exists():
        time.sleep(0.001)
    for _ in range(times):
        assert lignn.load(folder).predict_proba().tobytes() in allowed


def lignn_command(ready: Callable[[], None], *arguments: str) -> None:
    from lignn.cli import main

    ready()
    main(arguments)


ROLES: dict[str, Callable[..., None]] = {"save": save, "load": load, "lignn": lignn_command}


def main(roles: list[list[str]]) -> None:
    for name in ("lignn.studies.run", "lignn.propagation.product_kernels", "torch._dynamo"):
        importlib.import_module(name)
    (heard, tell), (go, start) = os.pipe(), os.pipe()
    processes = []
    for role, *arguments in roles:
        process = os.fork()
        if not process:
            os.close(start)
            os._exit(perform(role, arguments, tell, go))
        processes.append(process)
    os.close(tell)
    ready = 0
    while ready < len(roles) and (more := os.read(heard, 1)):  # nothing more comes if one has failed
        ready += len(more)
    os.close(start)
    codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
    print(json.dumps(codes))  # noqa: T201


def perform(role: str, arguments: list[str], tell: int, go: int) -> int:
    """Play a role in this process and return its exit code; standard output is left to the first process."""

    def ready() -> None:
        os.write(tell, b".")
        os.read(go, 1)  # ends when the first process closes the other end

    sys.stdout = sys.stderr
    try:
        ROLES[role](ready, *arguments)
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        return 99
    finally:
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
