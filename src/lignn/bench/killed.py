"""One of two processes on a store is killed; other numbers of processes go on from its checkpoint."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from lignn.bench.communities import write_tables
from lignn.bench.timing import Record, at_least, at_most, record
from lignn.bench.together import in_processes
from lignn.classifier import NodeClassifier
from lignn.errors import ProcessError
from lignn.processes import current
from lignn.store import StoredGraph
from lignn.store.build import Options, build

NODES = 2 * 10**4
KILLS = 10
TO_REACH = {1: 1e-6, 2: 0.0, 3: 1e-6}
"""Largest difference of a prediction to the uninterrupted run, by the number of processes that go on."""
SETTINGS: dict[str, Any] = {
    "preset": "paper",
    "precision": "float64",
    "max_steps": 10,
    "max_epochs": 20,
    "calibrate": False,
}


def run(quick: bool) -> Iterator[Record]:
    """Kill one of two processes at ten moments of a run, and go on with one, two and three."""
    nodes, kills = (NODES // 10, 1) if quick else (NODES, KILLS)
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        write_tables(folder / "tables", nodes, 5 * nodes)
        build(folder / "tables", folder / "store", Options(6, "metis", undirected=True))
        yield from _killed(folder / "store", folder / "run.checkpoint", kills)


def _killed(store: Path, checkpoint: Path, kills: int) -> Iterator[Record]:
    whole = in_processes(2, fit, str(store), str(checkpoint))
    seconds = max(each["seconds"] for each in whole)
    apart: dict[int, list[float]] = {count: [] for count in TO_REACH}
    done: list[int] = []
    for number in range(kills):
        checkpoint.unlink(missing_ok=True)
        in_processes(2, fit, str(store), str(checkpoint), number % 2, seconds * (number + 0.5) / kills)
        kept = checkpoint.read_bytes() if checkpoint.exists() else None
        for count, differences in apart.items():
            checkpoint.unlink(missing_ok=True)
            if kept is not None:
                checkpoint.write_bytes(kept)
            found = in_processes(count, fit, str(store), str(checkpoint))
            one, two = (np.concatenate([each["probabilities"] for each in run]) for run in (found, whole))
            differences.append(float(np.abs(one - two).max()))
        done.append(SETTINGS["max_epochs"] - found[0]["epochs"])
    for count, differences in apart.items():
        figures = {"epochs_before": done, "differences": differences}
        yield record(f"killed at {kills} moments", f"resumed with {count}", SETTINGS, **figures)
        goal = f"killed at {kills} moments, resumed with {count}: largest difference of a prediction"
        yield at_most(goal, max(differences), TO_REACH[count])
    yield at_least("different epochs that were resumed from", len(set(done)), kills // 2)


def fit(path: str, checkpoint: str, killed: int | None = None, after: float = 0.0) -> dict[str, Any] | None:
    """Fit; return the predictions, and the seconds and epochs of this fit; None if another process has died.

    Args:
        path: the store.
        checkpoint: file to go on from, and to write.
        killed: rank of the process that is killed; None: none.
        after: seconds until it is.
    """
    if killed == current().rank:
        timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGKILL))
        timer.daemon = True
        timer.start()
    classifier, start = NodeClassifier(**SETTINGS), perf_counter()
    epochs: list[Any] = []
    try:
        classifier.fit(StoredGraph(path), checkpoint=Path(checkpoint), progress=epochs.append)
    except ProcessError:
        return None
    probabilities = classifier._fitted.prediction.probabilities.numpy()
    return {"seconds": perf_counter() - start, "epochs": len(epochs), "probabilities": probabilities}
