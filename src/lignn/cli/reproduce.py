"""`lignn reproduce`: run the studies behind the paper's figures and tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lignn.cli.workers import Ray

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lignn.runs.records import Record
    from lignn.studies.runner import Agenda
    from lignn.studies.study import Study

_SHOWN = 12
"""Number of rows in the live display; those that changed last are shown."""


def reproduce(
    name: Annotated[str, typer.Argument(help="Name of a study, .toml file with a study, `all`, or `list`.")] = "list",
    runs: Annotated[int | None, typer.Option(min=1, help="Runs of each case; default: as the study says.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes, with one thread each.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder of the records.")] = Path("results"),
    only: Annotated[
        list[str] | None, typer.Option(help="Run only ROW/DATASET, ROW or DATASET, with wildcards; may be repeated.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan with an estimate of the time, and run nothing.")
    ] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat failed runs.")] = False,
    compare: Annotated[
        Path | None, typer.Option(help="Folder of older records; compare the scores of the same runs with them.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    ray: Ray = None,
) -> None:
    """Run a study of the paper and record every run; runs that have a record are not repeated."""
    from lignn.errors import InputError
    from lignn.studies import runner, study

    if name == "list":
        _list([study.load(each) for each in study.names()], as_json)
        return
    chosen = [study.load(each) for each in (study.names() if name == "all" else [name])]
    if only and not any(one.plan(1, only) for one in chosen):
        rows, datasets = chosen[0].rows(), chosen[0].datasets
        raise InputError(
            f"no run matches {' or '.join(only)}; rows of {chosen[0].name} are {', '.join(rows)}; "
            f"its datasets are {', '.join(datasets)}"
        )
    for one in chosen:
        if compare is not None and not (compare / f"{one.name}.jsonl").is_file():
            raise InputError(f"{compare}: there are no records of {one.name} to compare with")
    results = []
    try:
        for one in chosen:
            agenda = runner.agenda(one, out, runs, only or (), retry)
            results.append(_plan(one, agenda, jobs, out) if dry_run else _run(one, agenda, jobs, ray))
            if compare is not None:
                results[-1]["compared"] = _compared(one, agenda, compare)
            if not as_json:
                _say(results[-1])
    except KeyboardInterrupt:
        typer.echo("interrupted; finished runs are recorded, and the same command continues with the others", err=True)
        raise typer.Exit(130) from None
    if as_json:
        typer.echo(json.dumps(results, indent=2))
    if not dry_run and any(result["failed"] or result["failed_before"] for result in results):
        raise typer.Exit(1)


def _list(studies: Sequence[Study], as_json: bool) -> None:
    rows = [
        {"name": one.name, "title": one.title, "runs": one.runs, "cases": len(one.plan(1)), "datasets": one.datasets}
        for one in studies
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        typer.echo(f"{row['name']:<9} {row['title']} ({row['cases']} cases × {row['runs']})")


def _plan(study: Study, agenda: Agenda, jobs: int, out: Path) -> dict[str, Any]:
    """Return what would be run, and how long it would take."""
    from lignn.runs import records
    from lignn.studies import estimate, runner

    here = {graph: runner.is_here(graph) for graph in {run.config.graph for run in agenda.todo}}
    todo = [run for run in agenda.todo if here[run.config.graph]]
    known = [record for file in sorted(out.glob("*.jsonl")) for record in records.read(file)]
    left = estimate.time_left(todo, known, jobs)
    return {
        "study": study.name,
        "file": str(agenda.file),
        "there": len(agenda.done),
        "failed_before": _failures(agenda.done),
        "to_do": len(todo),
        "not_here": Counter(run.config.dataset for run in agenda.todo if not here[run.config.graph]),
        "seconds": left.seconds,
        "without_estimate": left.unknown,
        "time": str(left),
        "cells": Counter(" / ".join(run.cell) for run in todo),
    }


def _run(study: Study, agenda: Agenda, jobs: int, ray: str | None) -> dict[str, Any]:
    """Run the agenda, with a live display on a terminal, and return a summary."""
    from rich.console import Console

    from lignn.studies import runner

    console = Console(stderr=True)
    if console.is_terminal:
        from rich.live import Live

        shown = _Display(study, agenda, jobs)
        with Live(shown.render(), console=console, refresh_per_second=2, get_renderable=shown.render):
            new = runner.execute(agenda, jobs, shown.add, ray)
    else:
        new = runner.execute(agenda, jobs, on=ray)
    return {
        "study": study.name,
        "file": str(agenda.file),
        "there": len(agenda.done),
        "failed_before": _failures(agenda.done),
        "new": sum(record["status"] == "ok" for record in new),
        "failed": _failures(new),
        "unavailable": [record["dataset"] for record in new if record["status"] == "unavailable"],
    }


def _compared(study: Study, agenda: Agenda, folder: Path) -> list[dict[str, Any]]:
    """Return the scores of the planned runs beside those in another folder."""
    from lignn.runs import records
    from lignn.studies import again

    planned = {run.config.identity for run in agenda.todo} | {record["id"] for record in agenda.done}
    new = [record for record in records.read(agenda.file) if record["id"] in planned]
    return again.compared(new, records.read(records.file_of(folder, study.name)))


def _failures(records: Sequence[Record]) -> list[str]:
    return [
        f"{record['row']}, {record['dataset']}, run {record['seed']}: {record['reason']}"
        for record in records
        if record["status"] == "failed"
    ]


def _say(result: dict[str, Any]) -> None:
    """Print a plan or a summary."""
    _say_run(result)
    for row in result.get("compared", []):
        shared = f"{row['runs']} runs in both, {row['equal']} with the same score"
        if row["runs"]:
            interval = "" if row["low"] is None else f" [{row['low']:+.2f}, {row['high']:+.2f}]"
            shared += f"; mean {row['new']:.2f}, before {row['old']:.2f}, difference {row['difference']:+.2f}{interval}"
        typer.echo(f"  {row['cell']}: {shared}")


def _say_run(result: dict[str, Any]) -> None:
    before = result["failed_before"]
    among = f" ({len(before)} of them failed)" if before else ""
    if "cells" in result:
        recorded = f"{result['there']} recorded{among}"
        typer.echo(f"{result['study']}: {result['to_do']} runs to do, {recorded}; time: {result['time']}")
        for cell, count in result["cells"].items():
            typer.echo(f"  {count:>3} × {cell}")
        for dataset, count in result["not_here"].items():
            typer.echo(f"  left out: {count} runs on {dataset}, which has to be downloaded first")
        return
    recorded = f"{result['there']} recorded before{among}"
    typer.echo(f"{result['study']}: {result['new']} new runs, {recorded}; records: {result['file']}")
    for dataset in result["unavailable"]:
        reason = "it is not stored here and could not be downloaded"
        typer.echo(f"  not run: {dataset}: {reason}; see `lignn datasets info {dataset}`")
    for failure in result["failed"]:
        typer.echo(f"  failed: {failure}")
    for failure in before:
        typer.echo(f"  failed before: {failure}")
    if before or result["failed"]:
        typer.echo("  add --retry to repeat failed runs")


class _Display:
    """Live display of the runs done, the means of the last cells, and the time left."""

    def __init__(self, study: Study, agenda: Agenda, jobs: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self.todo = {run.config.identity: run for run in agenda.todo}
        self.records = list(agenda.done)
        self.jobs = jobs
        self.last: list[tuple[str, str]] = []
        text = TextColumn("time left: {task.fields[left]}")
        self.bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), text)
        total = len(agenda.todo) + len(agenda.done)
        self.task = self.bar.add_task(study.name, total=total, completed=len(agenda.done), left=self._left())

    def _left(self) -> str:
        from lignn.studies import estimate

        return estimate.time_left(list(self.todo.values()), self.records, self.jobs).time

    def add(self, record: Record) -> None:
        """Add a new record."""
        self.todo.pop(record["id"], None)
        if record["status"] == "unavailable":
            gone = [key for key, run in self.todo.items() if run.config.dataset == record["dataset"]]
            for key in gone:
                del self.todo[key]
            total = len(self.todo) + len(self.records)
            self.bar.update(self.task, total=total, left=self._left())
            return
        self.records.append(record)
        cell = (record["row"], record["dataset"])
        self.last = [*(other for other in self.last if other != cell), cell][-_SHOWN:]
        self.bar.update(self.task, advance=1, left=self._left())

    def render(self) -> RenderableType:
        """Return the display in its present state."""
        from rich.console import Group
        from rich.table import Table

        from lignn.evaluation.summary import mean_and_deviation
        from lignn.runs.records import scores

        cells = scores(self.records)
        table = Table("row", "dataset", "runs", "test F1-micro (%)", box=None, header_style="bold")
        for row, dataset in self.last:
            if values := cells.get((row, dataset)):
                table.add_row(row, dataset, str(len(values)), mean_and_deviation(values.values()))
        return Group(table, self.bar)
