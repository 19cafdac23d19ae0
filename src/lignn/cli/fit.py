"""`lignn fit`: from a graph to a saved model."""

from __future__ import annotations

import shlex
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lignn.cli.options import GraphName, Missing, Undirected, with_parameters
from lignn.cli.output import Json, print_json
from lignn.cli.workers import Workers, launch, refuse_several

if TYPE_CHECKING:
    from lignn.classifier import NodeClassifier
    from lignn.cli.running import Running
    from lignn.graph import Graph
    from lignn.store import StoredGraph

LARGE = 100
"""Features beyond this are worth a word."""


@with_parameters()
def fit(
    graph: GraphName,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="Folder of the model.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")] = False,
    workers: Workers = 1,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory of each process for a store, e.g. 2GB; default: any.")
    ] = None,
    undirected: Undirected = False,
    missing: Missing = None,
    as_json: Json = False,
    *,
    parameters: dict[str, Any],
) -> None:
    """Train a classifier on the known labels of a graph; the model and its settings are saved."""
    launch(workers)
    from lignn.classifier import NodeClassifier
    from lignn.cli import progress
    from lignn.cli.running import Running
    from lignn.processes import joined
    from lignn.store import StoredGraph

    running = Running(out)
    with joined() as processes, running.alone(processes.is_first):
        parameters = running.resumed(parameters) if resume else running.fresh(parameters)
        data = _read(graph, undirected, missing, workers, memory)
        classifier = NodeClassifier(**parameters)
        resolved = _resolved(classifier)
        if isinstance(data, StoredGraph):
            data = _planned(classifier, data, memory, quiet=as_json or not processes.is_first)
        complete = (split for split in data.splits if (split.val & data.labelled).any())
        own = next(chain(complete, data.splits), None)
        with running.kept(resolved, data, processes.is_first):
            try:
                with progress.of_training(resolved["max_epochs"], quiet=as_json or not processes.is_first) as tell:
                    classifier.fit(data, own, progress=tell, checkpoint=running.checkpoint)
            except KeyboardInterrupt:
                more = [*["--undirected"] * undirected, *(f"--missing={marks}" for marks in missing or ())]
                if processes.is_first:
                    _save_best(classifier, running, resolved, ["lignn", "fit", graph, *more, "-o", str(out)])
                raise typer.Exit(130) from None
            running.save(classifier.gathered(), resolved)
    if processes.is_first:
        _say(classifier, out, as_json)


def _read(graph: str, undirected: bool, missing: list[str] | None, workers: int, memory: str | None) -> Graph:
    """Return a stored graph, which is not read, or a graph in memory."""
    from lignn.cli import options
    from lignn.errors import InputError
    from lignn.store import StoredGraph, is_store

    if is_store(graph):
        if undirected or missing is not None:
            raise InputError(f"--undirected, --missing: {graph} is a store, built with its edges and labels")
        return StoredGraph(graph)
    refuse_several(workers, graph)
    if memory is not None:
        raise InputError(f"--memory: {graph} is read into memory; for less, make a store by lignn store build")
    data = options.source(graph, undirected, missing).read()
    _warn_of_scale(data)
    return data


def _planned(classifier: NodeClassifier, graph: StoredGraph, memory: str | None, quiet: bool) -> Graph:
    """Choose what to keep in memory, time a step, and print the plan."""
    from lignn.classifier import planning
    from lignn.classifier.settings import Settings

    settings = Settings.of(classifier.get_params(deep=False))
    chosen = planning.plan(settings, graph, None if memory is None else planning.parse_bytes(memory))
    graph = graph.replace(keeps_features=chosen.keeps_features)
    chosen = planning.timed(chosen, settings, graph)
    if not quiet:
        typer.echo(str(chosen), err=True)
    return graph


def _resolved(classifier: NodeClassifier) -> dict[str, Any]:
    """Every setting, the preset's among them; without those that the network does not have."""
    from lignn.classifier.settings import Settings
    from lignn.declarations import OF_NETWORK, PARAMETERS

    settings = Settings.of(classifier.get_params(deep=False))
    network = settings.network()
    offered = [name for name in PARAMETERS if name not in OF_NETWORK or name in network]
    values = {name: value for name, value in settings.values.items() if name in offered}
    options = {"method_options": dict(settings.method_options), "backbone_options": dict(settings.backbone_options)}
    return {"method": settings.method, "backbone": settings.backbone, **values, **options}


def _warn_of_scale(graph: Graph) -> None:
    """Features are taken as they are; large ones make a network so sure of itself at first that it hardly learns."""
    largest = float(abs(graph.x).max()) if graph.x is not None and graph.num_features else 0.0
    if largest > LARGE:
        words = "bring every column to about -1 … 1, or a network may not learn from them"
        typer.echo(f"warning: {graph.name}: features reach {largest:.3g}; {words}", err=True)


def _save_best(classifier: NodeClassifier, running: Running, settings: dict[str, Any], command: list[str]) -> None:
    """Save the best model of an interrupted training, if there is one, and say how to go on."""
    history = getattr(classifier, "history_", None)
    again = f"go on with: {shlex.join([*command, '--resume'])}"
    if history is None:
        early = "interrupted before the first epoch was done; no model was written"
        typer.echo(f"interrupted once more; {again}" if running.checkpoint.exists() else early, err=True)
        return
    running.save(classifier, settings)
    best = f"epoch {history.best + 1}"
    if "val" in history.best_record:
        best += f", validation {history.best_record['val']:.4f}"
    typer.echo(
        f"interrupted after {len(history.epochs)} epochs; the best model so far ({best}) is {running.model}; {again}",
        err=True,
    )


def _say(classifier: NodeClassifier, out: Path, as_json: bool) -> None:
    from lignn.classifier import saving

    settings = saving.settings_file(out)
    beside = out.with_name(f"{out.name}.toml")  # where lignn 0.1 wrote them
    text = beside.read_bytes() if beside.is_file() else b""
    if text.startswith(b"# settings of ") and text != settings.read_bytes():
        typer.echo(f"note: {beside} has the settings of an earlier model; those of this one: {settings}", err=True)
    history, split, graph = classifier.history_, classifier.split_, classifier.graph_
    test = split.test & graph.labelled
    scores = dict(history.final)
    if test.any():
        scores["test"] = classifier.score(test)
    if as_json:
        print_json(
            {"model": str(out), "settings": str(settings), "epochs": classifier.n_iter_, "end": str(history.end)}
            | {"best_epoch": history.best + 1 or None, "scores": scores, "parameters": classifier.get_params()}
        )
        return
    count = {part: f"{int((getattr(split, part) & graph.labelled).sum())} nodes" for part in scores}
    if classifier.refit and not (split.val & graph.labelled).any():  # it has trained on the validation nodes too
        count |= dict.fromkeys(history.final, "before the refit")
    words = ", ".join(f"{part} {score:.4f} ({count[part]})" for part, score in scores.items())
    trained = f"{classifier.n_iter_} epochs ({history.end}), best epoch {history.best + 1}"
    if history.best < 0:
        trained = str(history.end)
    elif not history.final:
        trained = f"{classifier.n_iter_} epochs, the last one is kept: too few labels to hold some back"
    typer.echo(trained + (f": F1-micro {words}" if words else ""))
    command = shlex.join(["lignn", "predict", str(out), "-o", "predictions.csv"])
    typer.echo(f"Model: {out} (settings: {settings}); predict by: {command}")
