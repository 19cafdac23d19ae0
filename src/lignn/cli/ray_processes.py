"""The processes of a command on a Ray cluster: actors that start them, gather their output and watch over them."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from lignn import clusters
from lignn.errors import InputError

_PATIENCE = 60.0
"""Seconds to wait for the CPUs of a cluster."""
_LAST_WORDS = 30.0
"""Seconds that other processes get after one has failed: the first of them writes a checkpoint."""


class _Starter:
    """Starts one process of the command, on the machine where Ray has put it."""

    def place(self) -> tuple[str, int]:
        """Return the address of this machine, and a port that is free on it."""
        import socket

        import ray

        with socket.socket() as free:
            free.bind(("", 0))
            return ray.util.get_node_ip_address(), free.getsockname()[1]

    def run(self, command: Sequence[str], folder: str, place: dict[str, str]) -> Iterator[tuple[str, Any]]:
        """Run the command; yield the lines of its standard error as they come, its standard output, its exit code."""
        arguments = [sys.executable, "-m", "lignn", *command]
        with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
            with subprocess.Popen(
                arguments, cwd=folder, env=os.environ | place, stdout=out, stderr=subprocess.PIPE, text=True
            ) as process:
                assert process.stderr is not None
                for line in process.stderr:
                    yield "err", line
            out.seek(0)
            yield "out", out.read()
        yield "end", process.returncode


def run(address: str, count: int, command: Sequence[str]) -> tuple[int, int] | None:
    """Run the command in so many processes of one group, and print what they say.

    Args:
        address: of the cluster, or `local`.
        count: number of processes; each takes a CPU of the cluster.
        command: arguments of lignn.

    Returns:
        Rank and exit code of the first process that failed, upon which the others are ended; None if none did.
    """
    with clusters.connected(address, cpus=count) as ray:
        from ray.util.placement_group import placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        there = int(ray.cluster_resources().get("CPU", 0))
        if there < count:
            raise InputError(f"--workers {count}: the Ray cluster has {there} CPUs, and each process needs one")
        group = placement_group([{"CPU": 1}] * count)
        if not group.wait(_PATIENCE):
            raise InputError(f"--workers {count}: so many CPUs of the Ray cluster are not free; use fewer, or wait")
        actor = ray.remote(num_cpus=1, max_restarts=0)(_Starter)
        starters = [
            actor.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, rank)).remote()
            for rank in range(count)
        ]
        host, port = ray.get(starters[0].place.remote())
        common = {"MASTER_ADDR": host, "MASTER_PORT": str(port), "WORLD_SIZE": str(count), "OMP_NUM_THREADS": "1"}
        outputs = {
            starter.run.options(num_returns="streaming").remote(
                list(command), os.getcwd(), common | {"RANK": str(rank), "LOCAL_RANK": "0"}
            ): rank
            for rank, starter in enumerate(starters)
        }
        try:
            return _watched(ray, outputs)
        finally:
            for starter in starters:
                ray.kill(starter)


def _watched(ray: Any, outputs: dict[Any, int]) -> tuple[int, int] | None:
    """Print what the processes say until all have ended; after a failure the others get some time to end as well."""
    running, failure, deadline = dict(outputs), None, math.inf
    while running and (left := deadline - time.monotonic()) > 0:
        found, _ = ray.wait(list(running), num_returns=1, timeout=None if math.isinf(left) else left)
        for output in found:
            try:
                kind, value = ray.get(next(output))
            except (StopIteration, ray.exceptions.RayError):
                kind, value = "end", -signal.SIGKILL  # its machine or its actor has died
            if kind != "end":
                typer.echo(value, nl=False, err=kind == "err")
                continue
            rank = running.pop(output)
            if value and failure is None:
                failure, deadline = (rank, int(value)), time.monotonic() + _LAST_WORDS
    return failure
