"""Work in several processes that have joined, started from one."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

import torch
import torch.multiprocessing as mp

from lignn.processes import joined


def in_processes(count: int, work: Callable[..., Any], *arguments: Any, threads: int = 1) -> list[Any]:
    """Return what `work(*arguments)` returns in each of several processes; None for one that was killed.

    Args:
        count: number of processes.
        work: a function of a module; what it returns is sent, so it must not hold tensors.
        arguments: its arguments.
        threads: threads of each process.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = _context()
    pipes = [context.Pipe(duplex=False) for _ in range(count)]
    processes = []
    for rank, (_, sending) in enumerate(pipes):
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(count)}
        process = context.Process(target=_run, args=(place, threads, sending, work, arguments))
        process.start()
        sending.close()
        processes.append(process)
    results = []
    for process, (receiving, _) in zip(processes, pipes, strict=True):
        try:
            results.append(receiving.recv())
        except EOFError:
            results.append(None)
        process.join()
    return results


def _context() -> Any:
    """Return a way to start processes: from a server that has imported PyTorch once, where there is one."""
    if "forkserver" not in mp.get_all_start_methods():
        return mp.get_context("spawn")
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["lignn.classifier", "lignn.bench.sides"])
    return context


def _run(place: dict[str, str], threads: int, pipe: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(threads)
    os.environ.update(place)
    with joined():
        pipe.send(work(*arguments))
