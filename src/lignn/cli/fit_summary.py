"""What `lignn fit` says at its end: scores beside that of a guess, and every class."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lignn.cli.output import print_json
from lignn.declarations import METRICS

if TYPE_CHECKING:
    from lignn.classifier import NodeClassifier, Report
    from lignn.graph.measures import OneWay

PARTS = {"test": "test nodes", "val": "validation nodes", "train": "training nodes"}


def check(file: Path) -> None:
    """Raise an error if the page cannot be written to `file`."""
    from lignn.evaluation import compare_report

    compare_report.check(file)


def say(classifier: NodeClassifier, out: Path, page: Path | None, as_json: bool, no_graph: bool) -> None:
    """Print the scores of a model that was saved to `out`, and write the page about it."""
    from lignn.classifier import saving

    settings = saving.settings_file(out)
    beside = out.with_name(f"{out.name}.toml")  # where lignn 0.1 wrote them
    text = beside.read_bytes() if beside.is_file() else b""
    if text.startswith(b"# settings of ") and text != settings.read_bytes():
        typer.echo(f"note: {beside} has the settings of an earlier model; those of this one: {settings}", err=True)
    history, sign = classifier.history_, METRICS[classifier.metric_].sign
    reports = reports_of(classifier)
    scores = {part: sign * value for part, value in history.final.items()}
    if "test" in reports:
        scores["test"] = reports["test"].score
    part, report = next(iter(reports.items()))
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
            | {"report": {"part": part, **report.plain()}, "page": None if page is None else str(page)}
            | {"parameters": classifier.get_params()}
        )
        return
    typer.echo(_trained(classifier) + _scores(classifier, scores))
    if taught := _taught(classifier):
        typer.echo(taught)
    typer.echo(f"{PARTS[part]}, {report}")
    if classifier.well_posed_:
        typer.echo(classifier.well_posed_)
    if reach is not None and reach.matters:
        typer.echo(str(reach))
    command = shlex.join(["lignn", "predict", str(out), *["--graph", "GRAPH"] * no_graph, "-o", "predictions.csv"])
    typer.echo(f"Model: {out} (settings: {settings}); predict by: {command}")
    if page is not None:
        typer.echo(f"Report: {page}")


def _reach(classifier: NodeClassifier) -> OneWay | None:
    """Return what following the edges one way costs; None for an undirected graph and for a store."""
    from lignn.graph import measures
    from lignn.store import StoredGraph

    if classifier.graph_.is_undirected or isinstance(classifier.graph_, StoredGraph):
        return None
    return measures.one_way(classifier.graph_, classifier._fitted.prediction.problem.labels.mask)


def reports_of(classifier: NodeClassifier) -> dict[str, Report]:
    """Return reports on test and validation nodes, if they have labels, else on training nodes."""
    split, labelled = classifier.split_, classifier.graph_.labelled
    parts = [part for part in ("test", "val") if (getattr(split, part) & labelled).any()] or ["train"]
    return {part: classifier.report(getattr(split, part) & labelled) for part in parts}


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


def _scores(classifier: NodeClassifier, scores: dict[str, float]) -> str:
    """Return all scores in words."""
    split, graph, history = classifier.split_, classifier.graph_, classifier.history_
    if not scores:
        return ""
    count = {name: f"{int((getattr(split, name) & graph.labelled).sum())} nodes" for name in scores}
    if not (split.val & graph.labelled).any():  # it has trained on the validation nodes too
        count |= dict.fromkeys(history.final, "before the refit")
    words = ", ".join(f"{name} {score:.4f} ({count[name]})" for name, score in scores.items())
    return f": {METRICS[classifier.metric_].title} {words}"


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
    titles = {PARTS[part].capitalize(): report for part, report in reports.items()}
    class_scores.write(page, f"How good is {out.name}?", facts, titles)
