"""What `lignn fit` says at its end: scores beside that of a guess, and every class."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lignn.classifier.scoring import HELD_OUT
from lignn.cli.output import print_json
from lignn.declarations import METRICS

if TYPE_CHECKING:
    from lignn.classifier import NodeClassifier, Report
    from lignn.graph.measures import OneWay


def check(file: Path) -> None:
    """Raise an error if the page cannot be written to `file`."""
    from lignn.evaluation import compare_report

    compare_report.check(file)


def say(
    classifier: NodeClassifier, out: Path, page: Path | None, as_json: bool, no_graph: bool, training: bool
) -> None:
    """Print the scores of a model that was saved to `out`, and write the page about it.

    What tells how good the model is on other nodes comes last; scores of training nodes only if `training`.
    """
    from lignn.classifier import saving

    settings = saving.settings_file(out)
    beside = out.with_name(f"{out.name}.toml")  # where lignn 0.1 wrote them
    text = beside.read_bytes() if beside.is_file() else b""
    if text.startswith(b"# settings of ") and text != settings.read_bytes():
        typer.echo(f"note: {beside} has the settings of an earlier model; those of this one: {settings}", err=True)
    history, sign = classifier.history_, METRICS[classifier.metric_].sign
    reports = reports_of(classifier, training)
    scores = {part: sign * value for part, value in history.final.items() if training or part != "train"}
    if "test" in reports:
        scores["test"] = reports["test"].score
    if page is not None:
        _write_page(classifier, out, page, reports)
    reach = _reach(classifier)
    if as_json:
        reading = classifier.graph_.reading
        told = {"reading": None if reading is None else asdict(reading), "one_way": reach and asdict(reach)}
        print_json(
            told
            | {"model": str(out), "settings": str(settings), "epochs": classifier.n_iter_, "end": str(history.end)}
            | {"well_posed": classifier.well_posed_}
            | {"columns": {column.name: column.treatment for column in classifier.features_}}
            | {"best_epoch": history.best + 1 or None, "metric": classifier.metric_, "scores": scores}
            | plain(reports, page)
            | {"parameters": classifier.get_params()}
        )
        return
    typer.echo(_trained(classifier))
    if taught := _taught(classifier):
        typer.echo(taught)
    if classifier.well_posed_:
        typer.echo(classifier.well_posed_)
    if reach is not None and reach.matters:
        typer.echo(str(reach))
    command = shlex.join(["lignn", "predict", str(out), *["--graph", "GRAPH"] * no_graph, "-o", "predictions.csv"])
    typer.echo(f"Model: {out} (settings: {settings}); predict by: {command}")
    if page is not None:
        typer.echo(f"Report: {page}")
    say_scores(reports)


def say_scores(reports: dict[str, Report]) -> None:
    """Print the reports, the one that counts last."""
    if not set(reports) - {"train"}:
        typer.echo("No label could be held back, so that nothing tells how good the model is: label more nodes.")
    for report in reversed(reports.values()):
        typer.echo(f"\n{report}")


def plain(reports: dict[str, Report], page: Path | None) -> dict[str, Any]:
    """Return the reports as plain values: the one that counts, and all of them by the nodes that they are about."""
    told = {part: report.plain() for part, report in reports.items()}
    return {"report": next(iter(told.values()), None), "reports": told, "page": None if page is None else str(page)}


def _reach(classifier: NodeClassifier) -> OneWay | None:
    """Return what following the edges one way costs; None for an undirected graph and for a store."""
    from lignn.graph import measures
    from lignn.store import StoredGraph

    if classifier.graph_.is_undirected or isinstance(classifier.graph_, StoredGraph):
        return None
    return measures.one_way(classifier.graph_, classifier._fitted.prediction.problem.labels.mask)


def reports_of(classifier: NodeClassifier, training: bool) -> dict[str, Report]:
    """Return reports on test nodes, on labels that `fit` held back, and if `training` on training nodes.

    The first one is the one that counts. There is none on nodes without labels.
    """
    fitted = classifier._fitted
    there = {
        "test": bool((fitted.split.test & fitted.graph.labelled).any()),
        HELD_OUT: fitted.held_out is not None,
        "train": training,
    }
    return {part: classifier.report(part) for part, known in there.items() if known}


def _trained(classifier: NodeClassifier) -> str:
    history = classifier.history_
    if history.best < 0:
        return str(history.end)
    if not history.final:
        return f"{classifier.n_iter_} epochs, the last one is kept: too few labels to hold some back"
    return f"{classifier.n_iter_} epochs ({history.end}), best epoch {history.best + 1}"


def _taught(classifier: NodeClassifier) -> str:
    """Return in words what the model has taught itself, nothing if it has not."""
    taught = [record for record in classifier.history_.epochs if "taught" in record]
    if not taught:
        return ""
    first, last = taught[0]["epoch"] + 1, taught[-1]["taught"]
    return f"From epoch {first} on it also learned from predictions that it is sure of, {last:,} at the end (teaching)."


def _write_page(classifier: NodeClassifier, out: Path, page: Path, reports: dict[str, Report]) -> None:
    from lignn.evaluation import class_scores

    graph = classifier.graph_
    facts = [
        f"{graph.name}: {graph.num_nodes:,} nodes, {int(graph.labelled.sum()):,} of them labelled, "
        f"{len(classifier.class_names_)} classes.",
        f"{classifier.method} over {classifier.backbone}; {_trained(classifier)}.",
        f"Confidence: {classifier.calibration_ or 'not calibrated'}.",
    ]
    facts += [taught] if (taught := _taught(classifier)) else []
    class_scores.write(page, f"How good is {out.name}?", facts, {one.title: one for one in reports.values()})
