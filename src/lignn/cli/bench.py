"""`lignn bench`: speed, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bench(
    suite: Annotated[
        str | None,
        typer.Argument(
            help="propagation, epoch, fit, baselines, scale, memory, latency, attention or limits; default all."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small synthetic problems and few repetitions, for a first look.")
    ] = False,
    json: Annotated[
        Path | None,
        typer.Option("--json", help="Write the records to this file (.jsonl: a line a record), pictures beside it."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="Measure nothing: fill the tables of this document from --records."),
    ] = None,
    records: Annotated[Path, typer.Option("--records", help="Folder of .jsonl records for --report.")] = Path(
        "results/bench"
    ),
) -> None:
    """Measure lignn against what one would use instead, interleaved in one run, and print the ratios."""
    if report is not None:
        from lignn.bench.report import fill

        typer.echo(f"{report}: filled in {', '.join(fill(report, records)) or 'nothing'}")
        return
    from lignn import bench as suites

    suites.run(suite, quick=quick, file=json)
