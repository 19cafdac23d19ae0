"""`lignn tune`: search for better settings by validation score."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lignn.cli.options import NamedGraph, with_parameters
from lignn.cli.output import Json, print_json, print_table
from lignn.declarations import METRICS

if TYPE_CHECKING:
    from lignn.evaluation.compare import Result
    from lignn.evaluation.tune import Trial


@with_parameters(without=["calibrate", "refit"])
def tune(
    graph: NamedGraph,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="TOML file for the best settings, for `lignn fit --config`."),
    ] = None,
    trials: Annotated[int, typer.Option(min=2, help="Number of settings to try, including those of the preset.")] = 12,
    runs: Annotated[int, typer.Option(min=1, help="Number of splits for each of them.")] = 2,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes, with one thread each.")] = os.cpu_count() or 1,
    as_json: Json = False,
    *,
    parameters: dict[str, Any],
) -> None:
    """Try values of the most important options that are not given, and choose the best by validation score."""
    from lignn.atomic import check_file
    from lignn.cli import config, progress, reading
    from lignn.errors import InputError
    from lignn.evaluation import compare as comparing
    from lignn.evaluation import tune as tuning

    if out is not None:
        if out.suffix != ".toml":
            raise InputError(f"{out}: the settings are a .toml file; choose a name that ends in .toml")
        check_file(out, *(path for path in (graph.graph, graph.edges) if path is not None))
    source = graph.source(parameters.get("features"))
    # refuses bad tables before workers start, and shows notes on the data
    data = reading.read(source, quiet=as_json)
    reading.tell(data, quiet=as_json)
    metric, note = comparing.metric_of(data, parameters)
    total = len(tuning.candidates(parameters, trials, parameters.get("seed", 0))) * runs
    with progress.of_runs(total, quiet=as_json) as tell:

        def report(result: Result) -> None:
            tell(f"validation {result.val:.4f} in {result.seconds:.0f} s")

        found = tuning.tune(source, parameters, trials, runs, jobs, report)
    best = {**parameters, **found[0].settings}
    if out is not None:
        config.write(out, best, f"the best of {len(found)} trials by `lignn tune {graph.graph}`")
    preset = next(trial for trial in found if not trial.settings)
    if as_json:
        rows = [{"settings": t.settings, "val": t.val, "seconds": t.seconds} for t in found]
        checked = {"best": found[0].test, "preset": preset.test}
        told = {"metric": metric, "best": best, "trials": rows, "test": checked}
        print_json(told | {"file": None if out is None else str(out)})
        return
    if note is not None:
        typer.echo(note)
    _print(found, preset, METRICS[metric].in_tables, shlex.join(graph.arguments()), out)


def _print(found: list[Trial], preset: Trial, metric: str, graph: str, out: Path | None) -> None:
    rows = [
        (f"{t.val:.2f}", f"{t.seconds:.1f}", ", ".join(f"{k}={v}" for k, v in t.settings.items()) or "the preset")
        for t in found
    ]
    print_table((f"validation {metric}", "seconds a run", "settings"), rows)  # the last column is folded
    typer.echo(
        f"\nThe best of {len(found)} validation scores is too optimistic. On the test nodes, which were not used to "
        f"choose: best {found[0].test:.2f}, preset {preset.test:.2f}."
    )
    if out is not None:
        typer.echo(f"Settings: {out}; use them with: lignn fit {graph} --config {out} -o MODEL")
