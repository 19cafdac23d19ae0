"""`lignn bench`: measure the speed of lignn side by side with alternatives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bench(
    suite: Annotated[
        str | None,
        typer.Argument(
            help="propagation, epoch, command, fit, baselines, scale, store, cluster, batches, latency, attention, "
            "deep, limits or serve."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure small synthetic problems with few repetitions.")
    ] = False,
    json: Annotated[
        Path | None,
        typer.Option("--json", help="File for the records (.jsonl: one per line)."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="Measure nothing; update the tables in this document from --records."),
    ] = None,
    records: Annotated[Path, typer.Option("--records", help="Folder of the .jsonl records for --report.")] = Path(
        "results/bench"
    ),
) -> None:
    """Measure lignn against what one would use instead, in turns in one process, and print the ratios."""
    if report is not None:
        from lignn.documents import Records, fill

        places = fill(report, Records(records.parent, records))
        typer.echo(f"{report}: filled in {', '.join(places) or 'nothing'}")
        return
    from lignn import bench as suites

    suites.run(suite, quick=quick, file=json)
