"""`lignn fit`: from a graph to a saved model."""

from __future__ import annotations

import gc
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lignn.cli.fit_auto import fit as fit_auto
from lignn.cli.fit_auto import refuse_store_options
from lignn.cli.options import NamedGraph, with_parameters
from lignn.cli.output import Json
from lignn.cli.running import Running
from lignn.cli.workers import Ray, Workers, launch, on_ray, refuse_several
from lignn.declarations import AUTO, DEFAULT_METHOD, DEFAULT_METRIC, METRICS, OF_RACE, is_race

if TYPE_CHECKING:
    from lignn.classifier import NodeClassifier
    from lignn.classifier.spec import Spec
    from lignn.graph import Graph
    from lignn.store import StoredGraph

LARGE = 100
"""Features beyond this are worth a word."""


@with_parameters()
def fit(
    graph: NamedGraph,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="Folder of the model.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")] = False,
    no_graph: Annotated[
        bool, typer.Option("--no-graph", help="Save the model without the graph: it predicts other graphs only.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="HTML page with the scores of every class, in pictures.")
    ] = None,
    training_scores: Annotated[
        bool, typer.Option("--training-scores", help="Show the scores of training nodes too.")
    ] = False,
    workers: Workers = 1,
    ray: Ray = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory of each process for a store, e.g. 2GB; default: any.")
    ] = None,
    as_json: Json = False,
    *,
    parameters: dict[str, Any],
) -> None:
    """Train a classifier on the known labels of a graph; the model and its settings are saved.

    Networks, label propagation and classifiers of tables race, and the best on this graph is kept; --method names one.
    """
    begun = Running(out).begun if resume else {}
    races = is_race(begun | parameters)
    if races and not _is_store(graph, parameters):
        refuse_store_options(workers, memory, parameters.get("batch_parts"))
        with on_ray(ray):
            fit_auto(graph, out, resume, not no_graph, report, as_json, training_scores, parameters)
        return
    launch(workers, ray)
    _fit(graph, out, resume, no_graph, report, workers, memory, as_json, training_scores, parameters)
    if races and not as_json:
        typer.echo(f"{graph.graph} is a store, in which methods cannot race: this is the default one, see --method.")


def _is_store(graph: NamedGraph, parameters: dict[str, Any]) -> bool:
    """Return whether the graph is a store; raise if a race was asked for."""
    from lignn.cli import reading
    from lignn.errors import ConfigError

    if reading.opened(graph) is None:
        return False
    if parameters.get("method") == AUTO or {*OF_RACE} & {*parameters}:
        raise ConfigError(f"{graph.graph}: is a store, in which methods cannot race; name one by --method")
    return True


def _fit(
    graph: NamedGraph,
    out: Path,
    resume: bool,
    no_graph: bool,
    report: Path | None,
    workers: int,
    memory: str | None,
    as_json: bool,
    training_scores: bool,
    parameters: dict[str, Any],
) -> None:
    """Train one method, save it and tell how good it is."""
    from lignn.classifier import NodeClassifier
    from lignn.classifier.spec import Spec
    from lignn.cli import fit_summary, output, progress, reading
    from lignn.processes import joined

    gc.freeze()  # modules stay: looking through them for garbage takes a fifth of the processor time of a small fit
    if report is not None:
        fit_summary.check(report)
    running = Running(out)
    with joined() as processes, running.alone(processes.is_first):
        parameters = running.resumed(parameters) if resume else running.fresh(parameters)
        classifier = NodeClassifier(**{"method": DEFAULT_METHOD, **parameters})
        spec, quiet = Spec.resolve(classifier.get_params(deep=False)), as_json or not processes.is_first
        data, resolved = _read(graph, spec, workers, memory, quiet), spec.plain()
        with running.kept(resolved, data, processes.is_first):
            try:
                sign = METRICS[resolved.get("metric", DEFAULT_METRIC)].sign
                with progress.of_training(resolved["max_epochs"], quiet, sign) as tell:
                    classifier.fit(data, reading.split_of(data, quiet), progress=tell, checkpoint=running.checkpoint)
            except KeyboardInterrupt:
                if processes.is_first:
                    command = ["lignn", "fit", *graph.arguments(), *["--no-graph"] * no_graph, "-o", str(out)]
                    command += ["--workers", str(workers)] if workers > 1 else []
                    _save_best(classifier, running, resolved, command, not no_graph)
                raise typer.Exit(130) from None
            running.save(classifier.gathered(), resolved, not no_graph)
    if not processes.is_first:
        return
    if not as_json:
        output.say_columns(classifier.features_)
    fit_summary.say(classifier, out, report, as_json, no_graph, training_scores)


def _read(named: NamedGraph, spec: Spec, workers: int, memory: str | None, quiet: bool) -> Graph:
    """Return a graph in memory, or a stored one, of which a plan says what is kept in memory."""
    from lignn.cli import reading
    from lignn.errors import InputError

    if (store := reading.opened(named)) is not None:
        return _planned(spec, store, memory, quiet)
    refuse_several(workers, named.graph)
    if memory is not None:
        raise InputError(f"--memory: {named.graph} is read into memory; for less, make a store by lignn store build")
    features = spec.values["features"]
    data = reading.read(named.source(features), quiet)
    _warn_of_scale(data, features)
    reading.tell(data, quiet)
    return data


def _planned(spec: Spec, graph: StoredGraph, memory: str | None, quiet: bool) -> Graph:
    """Choose what to keep in memory, time a step, and print the plan."""
    from lignn.classifier import planning

    allowed = None if memory is None else planning.parse_bytes(memory)
    chosen = planning.plan(spec, graph, allowed)
    chosen.within(allowed)
    graph = graph.replace(keeps_features=chosen.keeps_features)
    chosen = planning.timed(chosen, spec, graph)
    if not quiet:
        typer.echo(str(chosen), err=True)
    return graph


def _warn_of_scale(graph: Graph, features: str) -> None:
    """Warn of large features that are taken as they are: they make a network too sure of itself to learn."""
    if graph.table is not None and features != "raw":
        return
    largest = float(abs(graph.x).max()) if graph.x is not None and graph.num_features else 0.0
    if largest > LARGE:
        words = "bring every column to about -1 … 1, or a network may not learn from them"
        typer.echo(f"warning: {graph.name}: features reach {largest:.3g}; {words}", err=True)


def _save_best(
    classifier: NodeClassifier, running: Running, settings: dict[str, Any], command: list[str], graph: bool
) -> None:
    """Save the best model of an interrupted training, if there is one, and say how to go on."""
    history = getattr(classifier, "history_", None)
    again = f"go on with: {shlex.join([*command, '--resume'])}"
    if history is None:
        early = "interrupted before the first epoch was done; no model was written"
        typer.echo(f"interrupted once more; {again}" if running.checkpoint.exists() else early, err=True)
        return
    running.save(classifier, settings, graph)
    best = f"epoch {history.best + 1}"
    if "val" in history.best_record:
        best += f", validation {METRICS[classifier.metric_].sign * history.best_record['val']:.4f}"
    typer.echo(
        f"interrupted after {len(history.epochs)} epochs; the best model so far ({best}) is {running.model}; {again}",
        err=True,
    )
