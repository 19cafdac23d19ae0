"""`lignn fit` without a method: the model that is best on a graph, and what else was tried."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lignn.cli.output import print_json, print_table
from lignn.declarations import AUTO
from lignn.errors import ConfigError

if TYPE_CHECKING:
    from lignn.classifier import NodeClassifier
    from lignn.cli.options import NamedGraph

_NOT_KEPT = ("time", "jobs")
"""Parameters that change nothing in a fit, so that an interrupted race may go on with others."""


def refuse_store_options(workers: int, memory: str | None, batch_parts: int | None) -> None:
    """Raise if an option is given that is for graphs in a store."""
    given = {"workers": workers > 1, "memory": memory is not None, "batch-parts": batch_parts is not None}
    if wrong := [option for option, there in given.items() if there]:
        raise ConfigError(f"--{wrong[0]}: is for a store, and this graph is read into memory")


def fit(
    graph: NamedGraph,
    out: Path,
    resume: bool,
    with_graph: bool,
    page: Path | None,
    as_json: bool,
    training_scores: bool,
    parameters: dict[str, Any],
) -> None:
    """Race, save and tell; an interrupted race goes on with `--resume`."""
    from lignn.classifier import NodeClassifier
    from lignn.cli import fit_summary, progress, reading
    from lignn.cli.running import Running

    if page is not None:
        fit_summary.check(page)
    running = Running(out)
    with running.alone():
        given = {name: value for name, value in parameters.items() if name not in _NOT_KEPT} | {"method": AUTO}
        settings = running.resumed(given) if resume else running.fresh(given)
        own = {"jobs": os.cpu_count() or 1} | {name: parameters[name] for name in _NOT_KEPT if name in parameters}
        classifier = NodeClassifier(**settings, **own)
        data = reading.read(graph.source(settings.get("features")), quiet=as_json)
        reading.tell(data, quiet=as_json)
        with running.kept(settings, data):
            try:
                with progress.of_race(quiet=as_json) as tell:
                    classifier.fit(data, reading.split_of(data, as_json), progress=tell, checkpoint=running.checkpoint)
            except KeyboardInterrupt:
                command = ["lignn", "fit", *graph.arguments(), *["--no-graph"] * (not with_graph)]
                again = shlex.join([*command, "-o", str(out), "--resume"])
                best = ""
                if (board := getattr(classifier, "leaderboard_", None)) is not None:
                    running.save(classifier, classifier._fitted.spec.plain(), with_graph)
                    best = f"the best so far is {running.model} ({board.headline.removeprefix('The model is ')}); "
                kept = f"the fits so far are kept in {running.checkpoint}"
                typer.echo(f"interrupted; {best}{kept}; go on with: {again}", err=True)
                raise typer.Exit(130) from None
            running.save(classifier, classifier._fitted.spec.plain(), with_graph)
    _say(classifier, graph.arguments(), out, page, as_json, with_graph, training_scores)


def _say(
    classifier: NodeClassifier,
    arguments: list[str],
    out: Path,
    page: Path | None,
    as_json: bool,
    with_graph: bool,
    training: bool,
) -> None:
    from lignn.classifier import saving
    from lignn.cli import fit_summary

    board = classifier.leaderboard_
    assert board is not None
    reports = fit_summary.reports_of(classifier, training)
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
    direction = [one for one in board.findings if one.startswith("Edges are followed")]
    for sentence in (board.legend, *(f"{note}." for note in board.notes), *direction):
        typer.echo(sentence)
    command = shlex.join(
        ["lignn", "predict", str(out), *["--graph", "GRAPH"] * (not with_graph), "-o", "predictions.csv"]
    )
    typer.echo(f"Model: {out} (settings: {settings}); predict by: {command}")
    if page is not None:
        typer.echo(f"Report: {page}")
    fit_summary.say_scores(reports)
    typer.echo("")
    for sentence in board.lines(shlex.join(["lignn", "fit", *arguments, "-o", str(out)])):
        typer.echo(sentence)
