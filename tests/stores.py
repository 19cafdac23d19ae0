"""Small stores, and several processes that work on them, for the tests."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as mp

from lignn import Graph
from lignn.processes import joined
from lignn.store import StoredGraph
from lignn.store.build import Options, build


def stored(graph: Graph, path: Path, parts: int = 5, keeps_features: bool = True) -> StoredGraph:
    build(graph, path, Options(parts, "metis"))
    return StoredGraph(path, keeps_features=keeps_features)


def in_processes(count: int, work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What `work(*arguments)` returns in each of several processes that have joined; None for one that was killed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = mp.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in range(count)]
    processes = [
        context.Process(target=_run, args=(rank, count, port, pipes[rank][1], work, arguments)) for rank in range(count)
    ]
    for process, (_, sending) in zip(processes, pipes, strict=True):
        process.start()
        sending.close()
    results = []
    for process, (receiving, _) in zip(processes, pipes, strict=True):
        try:
            results.append(receiving.recv())
        except EOFError:
            results.append(None)
        process.join()
    return results


def _run(rank: int, count: int, port: int, pipe: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(count)}
    with joined():
        pipe.send(work(*arguments))
