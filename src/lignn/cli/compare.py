"""`lignn compare`: compare methods on a graph, to see whether label inputs help."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lignn.cli.options import NamedGraph, with_parameters
from lignn.cli.output import Json, print_json, print_table
from lignn.cli.workers import Ray
from lignn.declarations import OF_RACE

if TYPE_CHECKING:
    from lignn.evaluation.compare import Comparison, Result

METHODS = ("lpa", "logistic", "boosted", "correct_and_smooth", "label_input", "label_reuse", "lignn")


def _complete_method(incomplete: str) -> list[str]:
    return [method for method in METHODS if method.startswith(incomplete)]


Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="METHOD",
        help=f"Compare the network with this method, or one model such as gcn/label_input, only; may be repeated: "
        f"{', '.join(METHODS)}",
        autocompletion=_complete_method,
    ),
]


@with_parameters(without=["method", "calibrate", "refit", "batch_parts", "method_options", *OF_RACE])
def compare(
    graph: NamedGraph,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="HTML file of the report.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Number of splits, each with its own seed.")] = 5,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes, with one thread each.")] = os.cpu_count() or 1,
    only: Methods = None,
    backbones: Annotated[
        str | None,
        typer.Option(help="Networks to compare, e.g. gcn,sage,mlp; the first is the baseline.", metavar="NAME,…"),
    ] = None,
    as_json: Json = False,
    ray: Ray = None,
    *,
    parameters: dict[str, Any],
) -> None:
    """Compare a network alone with LPA, C&S, Label Input, Label Reuse, LI-GNN and classifiers of tables."""
    from lignn.cli import progress, reading
    from lignn.evaluation import compare as comparing
    from lignn.evaluation import compare_report

    source = graph.source(parameters.get("features"))
    others: list[str] = []
    if backbones is not None:
        first, *others = [name.strip() for name in backbones.split(",")]
        parameters = {**parameters, "backbone": first}
    file = out or Path(f"compare-{graph.stem}.html")
    compare_report.check(file)
    data = reading.read(source, quiet=as_json)
    reading.tell(data, quiet=as_json)
    titles = {one.name: one.title for one in comparing.chosen(data, parameters, only, others)}
    with progress.of_runs(len(titles) * runs, quiet=as_json) as tell:

        def report(result: Result) -> None:
            tell(f"{titles[result.method]}, {result.test:.4f} in {result.seconds:.0f} s")

        found = comparing.compare(source, parameters, runs, jobs, only, report, others, on=ray)
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
    typer.echo(found.winner)
    typer.echo(f"Report: {file}")
