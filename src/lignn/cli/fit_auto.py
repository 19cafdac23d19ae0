"""`lignn fit --method auto`: the model that is best on a graph, and what else was tried."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lignn.cli.output import print_json, print_table
from lignn.errors import ConfigError

if TYPE_CHECKING:
    from lignn.classifier.race.auto import AutoClassifier
    from lignn.cli.options import NamedGraph

AUTO = "auto"
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


def seconds(text: str, option: str = "--time") -> float:
    """Return a duration such as 90, 90s, 2m or 1.5h in seconds."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([smh]?)\s*", text)
    if found is None or float(found[1]) == 0:
        raise ConfigError(f"{option} {text}: a duration such as 90s, 2m or 1h is needed")
    return float(found[1]) * _UNITS[found[2]]


@dataclass(frozen=True)
class Options:
    """The options of `lignn fit` that are for `--method auto` alone; None if not given."""

    quality: str | None
    time: str | None
    jobs: int | None
    backbones: str | None

    def check(self, method: Any) -> None:
        """Raise if an option is given for another method."""
        given = [name for name, value in vars(self).items() if value is not None]
        if method != AUTO and given:
            raise ConfigError(f"--{given[0]}: is for --method auto; leave it out, or add --method auto")

    def refuse_store(self, workers: int, memory: str | None, batch_parts: int | None) -> None:
        """Raise if an option is given that is for graphs in a store."""
        given = {"workers": workers > 1, "memory": memory is not None, "batch-parts": batch_parts is not None}
        if wrong := [option for option, there in given.items() if there]:
            raise ConfigError(f"--{wrong[0]}: is for a store, which --method auto does not read; name another --method")


def fit(
    graph: NamedGraph,
    out: Path,
    resume: bool,
    with_graph: bool,
    page: Path | None,
    as_json: bool,
    training_scores: bool,
    parameters: dict[str, Any],
    options: Options,
) -> None:
    """Search, fit, save and tell; an interrupted search goes on with `--resume`."""
    from lignn.cli import fit_summary, progress, reading
    from lignn.cli.running import Running

    if page is not None:
        fit_summary.check(page)
    limit = None if options.time is None else seconds(options.time)
    running = Running(out)
    with running.alone():
        named = {"quality": options.quality, "backbones": options.backbones}
        given = parameters | {name: value for name, value in named.items() if value is not None}
        settings = running.resumed(given) if resume else running.fresh(given)
        classifier = _classifier(settings, limit, options.jobs)
        data = reading.read(graph.source(settings.get("features")), quiet=as_json)
        reading.tell(data, quiet=as_json)
        with running.kept(settings, data):
            try:
                with progress.of_search(quiet=as_json) as tell:
                    classifier.fit(data, reading.split_of(data, as_json), progress=tell, checkpoint=running.checkpoint)
            except KeyboardInterrupt:
                command = ["lignn", "fit", *graph.arguments(), *["--no-graph"] * (not with_graph)]
                again = shlex.join([*command, "-o", str(out), "--method", AUTO, "--resume"])
                typer.echo(
                    f"interrupted; the fits so far are kept in {running.checkpoint}; go on with: {again}", err=True
                )
                raise typer.Exit(130) from None
            running.save(classifier, resolved(classifier), with_graph, classifier.more_files())
    _say(classifier, out, page, as_json, with_graph, training_scores)


def _classifier(settings: Mapping[str, Any], limit: float | None, jobs: int | None) -> AutoClassifier:
    import os

    from lignn.classifier.race.auto import AutoClassifier

    rest = {name: value for name, value in settings.items() if name != "method"}
    known = AutoClassifier._get_param_names()
    own = {name: rest.pop(name) for name in list(rest) if name in known}
    if "backbones" in own:
        own["backbones"] = [name.strip() for name in own["backbones"].split(",")]
    return AutoClassifier(**own, time=limit, jobs=jobs or os.cpu_count() or 1, parameters=rest or None)


def resolved(classifier: AutoClassifier) -> dict[str, Any]:
    """Return every setting of the model that was found, for `lignn fit --config`."""
    from lignn.cli.fit import resolved as of_settings

    return of_settings(classifier._fitted.spec)


def _say(
    classifier: AutoClassifier, out: Path, page: Path | None, as_json: bool, with_graph: bool, training: bool
) -> None:
    from lignn.classifier import saving
    from lignn.cli import fit_summary

    board, reports = classifier.leaderboard_, fit_summary.reports_of(classifier, training)
    if page is not None:
        from lignn.evaluation import auto_page

        auto_page.write(board, classifier.graph_.name, page, next(iter(reports.values())))
    settings = saving.settings_file(out)
    if as_json:
        told = {"model": str(out), "settings": str(settings), "leaderboard": board.plain()}
        print_json(told | fit_summary.plain(reports, page))
        return
    print_table(*board.table(), folded=4)
    typer.echo(f" always the most frequent label: {board.guess:.2f}")
    for sentence in (board.legend, *board.remarks, *board.findings):
        typer.echo(sentence)
    typer.echo(f"{board.headline}.")
    command = shlex.join(
        ["lignn", "predict", str(out), *["--graph", "GRAPH"] * (not with_graph), "-o", "predictions.csv"]
    )
    typer.echo(f"Model: {out} (settings: {settings}); predict by: {command}")
    if page is not None:
        typer.echo(f"Report: {page}")
    fit_summary.say_scores(reports)
