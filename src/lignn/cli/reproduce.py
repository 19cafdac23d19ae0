"""`lignn reproduce`: run the paper's figures and tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lignn.experiments.records import Record
    from lignn.experiments.runner import Agenda
    from lignn.experiments.study import Study

_SHOWN = 12
"""Cells whose means are shown while a study runs: those that changed last."""


def reproduce(
    name: Annotated[str, typer.Argument(help="A study, a .toml file with one, `all`, or `list`.")] = "list",
    runs: Annotated[int | None, typer.Option(min=1, help="Runs of each case; default: as the paper.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes, one thread each.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder of the records.")] = Path("results"),
    only: Annotated[
        list[str] | None, typer.Option(help="ROW/DATASET, ROW or DATASET, with wildcards; may be repeated.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan with a time estimate, run nothing.")
    ] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat the runs that failed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Run a study of the paper and record every run; what is recorded already is not repeated."""
    from lignn.errors import InputError
    from lignn.experiments import runner, study

    if name == "list":
        _list([study.load(each) for each in study.names()], as_json)
        return
    chosen = [study.load(each) for each in (study.names() if name == "all" else [name])]
    work = [(one, runner.agenda(one, out, runs, only or (), retry)) for one in chosen]
    if only and not any(agenda.todo or agenda.done for _, agenda in work):
        rows, datasets = chosen[0].rows(), chosen[0].datasets
        raise InputError(
            f"no run matches {' or '.join(only)}; rows of {chosen[0].name} are {', '.join(rows)}; "
            f"its datasets are {', '.join(datasets)}"
        )
    results = [_plan(one, agenda, jobs, out) if dry_run else _run(one, agenda, jobs) for one, agenda in work]
    if as_json:
        typer.echo(json.dumps(results, indent=2))
    else:
        for result in results:
            _say(result)
    if any(result.get("failed") for result in results):
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
    """What a run would do."""
    from lignn.experiments import estimate, records

    known = [record for file in sorted(out.glob("*.jsonl")) for record in records.read(file)]
    seconds = estimate.seconds_left(agenda.todo, known, jobs)
    cells: dict[str, int] = {}
    for run in agenda.todo:
        cell = " / ".join(run.cell)
        cells[cell] = cells.get(cell, 0) + 1
    return {
        "study": study.name,
        "file": str(agenda.file),
        "there": len(agenda.done),
        "to_do": len(agenda.todo),
        "seconds": seconds,
        "time": estimate.spoken(seconds),
        "cells": cells,
    }


def _run(study: Study, agenda: Agenda, jobs: int) -> dict[str, Any]:
    """Do it, with a display on a terminal."""
    from rich.console import Console

    from lignn.experiments import runner

    console = Console(stderr=True)
    if console.is_terminal:
        from rich.live import Live

        shown = _Display(study, agenda, jobs)
        with Live(shown.render(), console=console, refresh_per_second=2, get_renderable=shown.render):
            new = runner.execute(agenda, jobs, shown.add)
    else:
        new = runner.execute(agenda, jobs)
    by_status: dict[str, list[Record]] = {}
    for record in new:
        by_status.setdefault(record["status"], []).append(record)
    return {
        "study": study.name,
        "file": str(agenda.file),
        "there": len(agenda.done),
        "new": len(by_status.get("ok", [])),
        "failed": [_failure(record) for record in by_status.get("failed", [])],
        "unavailable": [record["dataset"] for record in by_status.get("unavailable", [])],
    }


def _failure(record: Record) -> str:
    return f"{record['row']}, {record['dataset']}, run {record['seed']}: {record['reason']}"


def _say(result: dict[str, Any]) -> None:
    """A plan or a summary in lines."""
    if "cells" in result:
        typer.echo(f"{result['study']}: {result['to_do']} runs to do, {result['there']} there; time: {result['time']}")
        for cell, count in result["cells"].items():
            typer.echo(f"  {count:>3} × {cell}")
        return
    typer.echo(f"{result['study']}: {result['new']} new runs, {result['there']} were there; records: {result['file']}")
    for dataset in result["unavailable"]:
        typer.echo(
            f"  not run: {dataset}: data not available here; `lignn datasets info {dataset}` says where it may be"
        )
    for failure in result["failed"]:
        typer.echo(f"  failed: {failure}")


class _Display:
    """Runs done, the last means, time left."""

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
        from lignn.experiments import estimate

        return estimate.spoken(estimate.seconds_left(list(self.todo.values()), self.records, self.jobs))

    def add(self, record: Record) -> None:
        """Take a new record into account."""
        self.todo.pop(record["id"], None)
        if record["status"] == "unavailable":
            gone = [key for key, run in self.todo.items() if run.config.dataset == record["dataset"]]
            for key in gone:
                del self.todo[key]
            self.bar.advance(self.task, len(gone))
            return
        self.records.append(record)
        cell = (record["row"], record["dataset"])
        self.last = [*(other for other in self.last if other != cell), cell][-_SHOWN:]
        self.bar.update(self.task, advance=1, left=self._left())

    def render(self) -> RenderableType:
        """The display as it is now."""
        from rich.console import Group
        from rich.table import Table

        from lignn.experiments import summary

        cells = summary.scores(self.records)
        table = Table("row", "dataset", "runs", "test F1-micro (%)", box=None, header_style="bold")
        for row, dataset in self.last:
            if values := cells.get((row, dataset)):
                table.add_row(row, dataset, str(len(values)), summary.mean_and_deviation(values.values()))
        return Group(table, self.bar)
