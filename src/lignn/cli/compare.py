"""`lignn compare`: compare methods on a graph, to see whether label inputs help."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lignn.cli.options import NamedGraph, with_parameters
from lignn.cli.output import Json, print_json, print_table
from lignn.declarations import BASELINE, DEFAULT_BACKBONE, title
from lignn.declarations import METHODS as DECLARED

if TYPE_CHECKING:
    from lignn.evaluation.compare import Comparison, Result

METHODS = tuple(name for name, method in DECLARED.items() if method.compared and name != BASELINE)


def _complete_method(incomplete: str) -> list[str]:
    return [method for method in METHODS if method.startswith(incomplete)]


Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="METHOD",
        help=f"Compare the network with this method only; may be repeated: {', '.join(METHODS)}",
        autocompletion=_complete_method,
    ),
]


@with_parameters(without=["method", "calibrate", "refit", "method_options"])
def compare(
    graph: NamedGraph,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="HTML file of the report.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Number of splits, each with its own seed.")] = 5,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes, with one thread each.")] = os.cpu_count() or 1,
    only: Methods = None,
    as_json: Json = False,
    *,
    parameters: dict[str, Any],
) -> None:
    """Compare the network alone, LPA, C&S, Label Input, Label Reuse and LI-GNN on the same splits."""
    from lignn.cli import progress, reading
    from lignn.evaluation import compare as comparing
    from lignn.evaluation import compare_report

    source = graph.source(parameters.get("features"))
    methods = only or comparing.METHODS
    file = out or Path(f"compare-{graph.stem}.html")
    compare_report.check(file)
    reading.tell(reading.read(source, quiet=as_json), quiet=as_json)
    total = len(comparing.plan(source, parameters, runs, methods))
    backbone = parameters.get("backbone", DEFAULT_BACKBONE)
    with progress.of_runs(total, quiet=as_json) as tell:

        def report(result: Result) -> None:
            tell(f"{title(result.method, backbone)}, {result.test:.4f} in {result.seconds:.0f} s")

        found = comparing.compare(source, parameters, runs, jobs, methods, report)
    compare_report.write(found, file)
    if as_json:
        print_json(found.plain() | {"report": str(file)})
    else:
        _print(found, file)


def _print(found: Comparison, file: Path) -> None:
    from lignn.evaluation import class_scores

    base = found.rows[0].title
    header = ("", f"test {found.shown.in_tables}", f"against {base}", "seconds")
    rows = [(row.title, row.score, row.gain, f"{row.seconds:.1f}") for row in found.rows]
    print_table(header, rows)
    if found.guess is not None:
        typer.echo(f" always the most frequent label: {found.guess:.2f}")
    print_table(*class_scores.table_of_methods(found.reports))
    typer.echo(" precision / recall of every class (%), mean over runs")
    if found.note is not None:
        typer.echo(f" {found.note}")
    for reservation in found.reservations:
        typer.echo(f" {reservation}")
    typer.echo(f"\nDo labels help here? {found.verdict}")
    typer.echo(f"Report: {file}")
