"""Stores of power-law graphs with communities: their building, and streamed epochs beside epochs in memory."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from lignn.bench.graphs import write_tables
from lignn.bench.timing import Record, Timing, record
from lignn.classifier import NodeClassifier, planning
from lignn.classifier.spec import Spec
from lignn.errors import ConvergenceWarning
from lignn.evaluation import peak
from lignn.store import StoredGraph
from lignn.store.build import Options, build

EDGES = (10**7, 10**8)
"""Directed edges, before repeated ones are merged; a tenth as many nodes."""
IN_MEMORY_UP_TO = 10**7
MEMORY = "3GB"
EPOCHS = 3
"""The first of them compiles the kernels, and is not counted."""
SETTINGS: dict[str, Any] = {
    "preset": "paper",  # LI-GCN, hidden width 64, Picard
    "max_steps": 10,
    "tol": 1e-30,
    "max_epochs": EPOCHS,
    "calibrate": False,
}
CONFIG = SETTINGS | {"features": 32, "classes": 5, "partition": "blocks", "memory": MEMORY}
PRACTICAL, LITTLE = {"max_epochs": 2}, "1GB"


def run(quick: bool) -> Iterator[Record]:
    """Build each store and run epochs on it, each in a process of its own."""
    for edges in (10**5,) if quick else EDGES:
        with tempfile.TemporaryDirectory(dir=".") as name:
            folder = Path(name)
            write_tables(folder / "tables", edges // 10, edges // 2)
            yield from _built(folder, edges)
            yield from _epochs(folder / "store", edges)


def _built(folder: Path, edges: int) -> Iterator[Record]:
    measured = peak.in_fresh_process(_nothing, _build, str(folder), max(edges // 10**6, 4)).value
    figures = {"median": measured["seconds"], "spread": 0.0, "ratio": 1.0, "peak_mib": measured["mib"]}
    yield record(f"build, {edges:.0e} edges", "lignn", CONFIG, **figures)


def _epochs(store: Path, edges: int) -> Iterator[Record]:
    reference: Timing | None = None
    for side in ("in memory", "streamed"):
        if side == "in memory" and edges > IN_MEMORY_UP_TO:
            continue
        measured = peak.in_fresh_process(_nothing, _train, str(store), side, SETTINGS, MEMORY).value
        timing = Timing(measured["seconds"])
        reference = reference or timing
        figures = timing.figures(reference) | {"peak_mib": measured["mib"], "planned_mib": measured["planned"]}
        yield record(f"epoch, {edges:.0e} edges", side, CONFIG, **figures)
    if edges <= IN_MEMORY_UP_TO:
        measured = peak.in_fresh_process(_nothing, _train, str(store), "streamed", PRACTICAL, LITTLE).value
        figures = {"peak_mib": measured["mib"], "planned_mib": measured["planned"]}
        case, config = "fit of two epochs with the default preset", PRACTICAL | {"memory": LITTLE}
        yield record(f"{case}, {edges:.0e} edges", "streamed", config, **figures)


def _nothing(*arguments: Any) -> tuple[Any, ...]:
    return arguments


def _build(arguments: tuple[str, int]) -> dict[str, Any]:
    folder, parts = Path(arguments[0]), arguments[1]
    start = perf_counter()
    options = Options(parts, "blocks", undirected=True)
    _, mib = peak.anonymous(lambda: build(folder / "tables", folder / "store", options))
    return {"seconds": perf_counter() - start, "mib": mib}


def _train(arguments: tuple[str, str, dict[str, Any], str]) -> dict[str, Any]:
    """Fit as `lignn fit DIR --memory` does; return the seconds of epochs and the peak of anonymous memory."""
    path, side, parameters, memory = arguments
    stored, planned = StoredGraph(path), None
    if side == "streamed":
        settings = Spec.resolve(parameters)
        plan = planning.plan(settings, stored, planning.parse_bytes(memory))
        plan.within(planning.parse_bytes(memory))
        stored, planned = stored.replace(keeps_features=plan.keeps_features), plan.total / 2**20
    graph = stored if side == "streamed" else stored.to_graph()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # ten steps need not be enough
        fitted, mib = peak.anonymous(lambda: NodeClassifier(**parameters).fit(graph, graph.splits[0]))
    epochs = fitted.history_.epochs
    seconds, losses = (tuple(epoch[name] for epoch in epochs) for name in ("seconds", "loss"))
    return {"seconds": seconds[1:], "losses": losses, "mib": mib, "planned": planned}
