"""`lignn fit` on a small graph as a user runs it: processor seconds beyond those of importing `NodeClassifier`.

On a small graph the time is not arithmetic: it is modules that are imported, kernels that are loaded or compiled, and
threads that spin while they have nothing to do. So the processor time of all threads is measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from lignn.bench.graphs import power_law
from lignn.bench.timing import Record, Timing, record

EXAMPLE = Path("examples") / "payments"
"""A graph of 400 nodes in a checkout of lignn."""
IMPORTS = ("-c", "from lignn import NodeClassifier")


def run(quick: bool) -> Iterator[Record]:
    """Fit the example, or a graph of the same size where there is no checkout, with one and two threads."""
    rounds = 2 if quick else 3
    with tempfile.TemporaryDirectory() as folder:
        source = EXAMPLE
        if quick or not EXAMPLE.is_dir():
            source = Path(folder) / "graph"
            power_law(1400, 3).write(source)
        model = Path(folder) / "model"
        fit = ["-m", "lignn", "fit", str(source), "--method", "lignn", "-o", str(model)]
        fit += ["--max-epochs", "2"] if quick else []
        first: Timing | None = None
        for threads in (1, 2):
            timing = Timing(tuple(beyond_imports(fit, threads) for _ in range(rounds)))
            first = first or timing
            config = {"threads": threads, "rounds": rounds}
            yield record(f"lignn fit {source.name}", _threads(threads), config, **timing.figures(first))
        cold = beyond_imports(fit, 1, Path(folder) / "kernels")
        figures = {"median": cold, "spread": 0.0, "ratio": cold / first.median if first else 1.0}
        yield record(f"lignn fit {source.name}", "1 thread, no kernel on disk", {"threads": 1, "rounds": 1}, **figures)


def beyond_imports(command: Sequence[str], threads: int, kernels: Path | None = None) -> float:
    """Return the processor seconds of a command of Python beyond those of importing `NodeClassifier`.

    Args:
        command: what follows the name of the interpreter.
        threads: threads of PyTorch.
        kernels: folder of compiled kernels; None for the usual one.
    """
    return _processor_seconds(command, threads, kernels) - _processor_seconds(IMPORTS, threads, kernels)


def _processor_seconds(command: Sequence[str], threads: int, kernels: Path | None) -> float:
    """Return the processor time of a process and its children, which may use so many threads."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "PYTHONWARNINGS": "ignore"}
    if kernels is not None:
        environment["NUMBA_CACHE_DIR"] = str(kernels)
    before = os.times()
    subprocess.run([sys.executable, *command], env=environment, capture_output=True, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"
