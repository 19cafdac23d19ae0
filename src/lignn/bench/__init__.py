"""Benchmarks: lignn side by side with what one would use instead.

A suite is a module with a function `run(quick)` that returns or yields records, see `timing`.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from lignn.atomic import check_place
from lignn.bench.timing import Record
from lignn.errors import ConfigError, did_you_mean

SUITES = {
    "propagation": "products with Ã and with sparse features",
    "epoch": "one epoch of LI-GCN, 10 forward, adjoint and evaluation steps",
    "command": "lignn fit on a small graph, as a command",
    "fit": "LI-GCN to the end of training, at the paper's settings",
    "baselines": "methods that the paper compares with",
    "scale": "epochs of LI-GCN on power-law graphs",
    "store": "building of stores, and streamed epochs of LI-GCN beside those in memory",
    "cluster": "two processes on a store beside two threads",
    "batches": "epochs of batches of a store's parts beside exact epochs, and their bias",
    "latency": "one new label",
    "attention": "one layer of graph attention, forward and backward",
    "deep": "an epoch of a residual GCN of 8 layers, beside its products and dense maps alone",
    "limits": "achieved memory bandwidth, and where an epoch's time goes",
    "serve": "requests to lignn serve over HTTP",
}
"""What each suite measures, by its name."""


def run(suite: str | None = None, quick: bool = False, file: Path | None = None) -> list[Record]:
    """Measure one suite, or all of them, and print the ratios.

    Args:
        suite: name of the suite; None measures all.
        quick: measure small synthetic problems with few repetitions.
        file: where to write the records.
    """
    from rich.console import Console

    from lignn.bench import timing

    if suite is not None and suite not in SUITES:
        raise ConfigError(f"unknown benchmark suite {suite!r}: {did_you_mean(suite, SUITES)}")
    if file is not None:
        check_place(file)
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # Otherwise torch's profiler prints when it starts and stops.
    console = Console()
    records: list[Record] = []
    for name in SUITES if suite is None else [suite]:
        measured = import_module(f"lignn.bench.{name}").run(quick)
        new = [{"suite": name, "quick": quick} | record for record in measured]
        console.print(f"[bold]{name}[/bold]: {SUITES[name]}", timing.table(new), sep="\n")
        records += new
        if file is not None:
            timing.write(records, file)
    return records
