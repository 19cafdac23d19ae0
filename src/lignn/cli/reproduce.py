"""`lignn reproduce`: run the studies behind the paper's figures and tables."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lignn.cli.workers import Ray

if TYPE_CHECKING:
    from lignn.runs.records import Record
    from lignn.studies.runner import Agenda
    from lignn.studies.study import Study


def reproduce(
    name: Annotated[str, typer.Argument(help="Name of a study, .toml file with a study, `all`, or `list`.")] = "list",
    runs: Annotated[int | None, typer.Option(min=1, help="Runs of each case; default: as the study says.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes, with one thread each.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder of the records.")] = Path("results"),
    only: Annotated[
        list[str] | None, typer.Option(help="Run only ROW/DATASET, ROW or DATASET, with wildcards; may be repeated.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, and run nothing.")] = False,
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
    for one in chosen:
        agenda = runner.agenda(one, out, runs, only or (), retry)
        results.append(_plan(one, agenda) if dry_run else _run(one, agenda, jobs, ray, as_json))
        if compare is not None:
            results[-1]["compared"] = _compared(one, agenda, compare)
        if not as_json:
            _say(results[-1])
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


def _plan(study: Study, agenda: Agenda) -> dict[str, Any]:
    """Return what would be run."""
    from lignn.studies import runner

    here = {graph: runner.is_here(graph) for graph in {run.graph for run in agenda.todo}}
    todo = [run for run in agenda.todo if here[run.graph]]
    return {
        "study": study.name,
        "file": str(agenda.file),
        "there": len(agenda.done),
        "failed_before": _failures(agenda.done),
        "to_do": len(todo),
        "not_here": Counter(run.dataset for run in agenda.todo if not here[run.graph]),
        "cells": Counter(" / ".join(run.cell) for run in todo),
    }


def _run(study: Study, agenda: Agenda, jobs: int, ray: str | None, as_json: bool) -> dict[str, Any]:
    """Run the agenda, with progress on a terminal, and return a summary."""
    from lignn.cli import progress
    from lignn.studies import runner

    quiet = as_json or not sys.stderr.isatty()
    left = "finished runs are recorded, and the same command continues with the others"
    with progress.of_runs(len(agenda.todo), quiet, left) as tell:
        new = runner.execute(agenda, jobs, lambda record: tell(_in_words(record)), ray)
    return {
        "study": study.name,
        "file": str(agenda.file),
        "there": len(agenda.done),
        "failed_before": _failures(agenda.done),
        "new": sum(record["status"] == "ok" for record in new),
        "failed": _failures(new),
        "unavailable": [record["dataset"] for record in new if record["status"] == "unavailable"],
    }


def _in_words(record: Record) -> str:
    test = record.get("scores", {}).get("test")
    score = record["status"] if test is None else f"test {test:.4f}"
    return f"{record.get('row', 'all rows')}, {record['dataset']}: {score}"


def _compared(study: Study, agenda: Agenda, folder: Path) -> list[dict[str, Any]]:
    """Return the scores of the planned runs beside those in another folder."""
    from lignn.runs import records
    from lignn.studies import results

    planned = {run.id for run in agenda.todo} | {record["id"] for record in agenda.done}
    new = [record for record in records.read(agenda.file) if record["id"] in planned]
    return results.compared(new, records.read(records.file_of(folder, study.name)))


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
        typer.echo(f"{result['study']}: {result['to_do']} runs to do, {recorded}")
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
