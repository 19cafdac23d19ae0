"""`lignn tune`: search for better settings by validation score."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lignn.cli.options import NamedGraph, seconds, with_parameters
from lignn.cli.output import Json, print_json, print_table
from lignn.cli.workers import Ray
from lignn.declarations import METRICS, OF_RACE

if TYPE_CHECKING:
    from lignn.evaluation.compare import Result
    from lignn.evaluation.tune import Tuned


@with_parameters(without=["calibrate", "refit", "batch_parts", *OF_RACE])
def tune(
    graph: NamedGraph,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="TOML file for the best settings, for `lignn fit --config`."),
    ] = None,
    trials: Annotated[int, typer.Option(min=2, help="Number of settings to try, including those of the preset.")] = 20,
    runs: Annotated[int, typer.Option(min=1, help="Number of splits; worse settings are pruned after fewer.")] = 3,
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="End the search after this long, e.g. 10m, with what there is.")
    ] = None,
    storage: Annotated[
        Path | None, typer.Option(help="File of the results so far; default: tune-GRAPH.journal. It is gone on from.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="HTML page with a picture of what mattered.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes, with one thread each.")] = os.cpu_count() or 1,
    as_json: Json = False,
    ray: Ray = None,
    *,
    parameters: dict[str, Any],
) -> None:
    """Search for values of the options that matter most and are not given, by validation score, with Optuna."""
    from lignn.cli import config, fit_summary, progress, reading
    from lignn.evaluation import compare as comparing
    from lignn.evaluation import tune as tuning
    from lignn.evaluation import tune_page

    _check(out, graph)
    if report is not None:
        fit_summary.check(report)
    limit = None if timeout is None else seconds(timeout, "--timeout")
    source = graph.source(parameters.get("features"))
    # refuses bad tables before workers start, and shows notes on the data
    data = reading.read(source, quiet=as_json)
    reading.tell(data, quiet=as_json)
    note = comparing.metric_of(data, parameters)[1]
    file = storage or Path(f"tune-{graph.stem}.journal")
    with progress.of_runs(trials * runs, quiet=as_json, left=f"results so far are in {file}") as tell:

        def done(result: Result) -> None:
            tell(f"validation {result.val:.4f} in {result.seconds:.0f} s")

        found = tuning.tune(source, parameters, trials, runs, jobs, limit, file, done, on=ray)
    best = {**parameters, **found.trials[0].settings}
    if out is not None:
        config.write(out, best, f"the best of {len(found.trials)} trials by `lignn tune {graph.graph}`")
    if report is not None:
        tune_page.write(found, data.name, report)
    if as_json:
        _print_json(found, best, out, report, file)
        return
    if note is not None:
        typer.echo(note)
    _print(found, shlex.join(graph.arguments()), out, report)
    typer.echo(f"Results: {file}; the same command with more --trials goes on from them.")


def _check(out: Path | None, graph: NamedGraph) -> None:
    """Raise if the settings cannot be written to `out`."""
    from lignn.atomic import check_file
    from lignn.errors import InputError

    if out is not None:
        if out.suffix != ".toml":
            raise InputError(f"{out}: the settings are a .toml file; choose a name that ends in .toml")
        check_file(out, *(path for path in (graph.graph, graph.edges) if path is not None))


def _print_json(found: Tuned, best: dict[str, Any], out: Path | None, report: Path | None, storage: Path) -> None:
    rows = [{"settings": t.settings, "val": t.val, "seconds": t.seconds, "runs": t.runs} for t in found.trials]
    checked = {"best": found.trials[0].test, "preset": found.preset.test}
    told = {"metric": found.metric, "best": best, "trials": rows, "test": checked, "importance": found.importance}
    files = {"file": out, "report": report, "storage": storage}
    print_json(told | {name: None if path is None else str(path) for name, path in files.items()})


def _print(found: Tuned, graph: str, out: Path | None, report: Path | None) -> None:
    metric = METRICS[found.metric].in_tables
    rows = [
        (
            f"{t.val:.2f}",
            str(t.runs),
            f"{t.seconds:.1f}",
            ", ".join(f"{k}={v}" for k, v in t.settings.items()) or "the preset",
        )
        for t in found.trials
    ]
    print_table((f"validation {metric}", "splits", "seconds a run", "settings"), rows, folded=1)
    if found.importance:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in found.importance.items())
        typer.echo(f"\nWhat mattered (share of the variance of the scores): {shares}.")
    typer.echo(
        f"\nThe best of {len(found.trials)} validation scores is too optimistic. On the test nodes, which did not "
        f"choose: best {found.trials[0].test:.2f}, preset {found.preset.test:.2f}."
    )
    if out is not None:
        typer.echo(f"Settings: {out}; use them with: lignn fit {graph} --config {out} -o MODEL")
    if report is not None:
        typer.echo(f"Report: {report}")
