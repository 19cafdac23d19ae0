"""`lignn predict`: labels for all nodes, with confidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lignn.cli.options import Column, Ignore, Missing, NamedGraph, SkipBad, Strict, Undirected
from lignn.cli.output import Json, print_json
from lignn.cli.workers import Ray, Workers, launch

if TYPE_CHECKING:
    from torch import Tensor

    from lignn.classifier import NodeClassifier, Report
    from lignn.classifier.decision import Decision
    from lignn.graph import Graph

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that `lignn fit` has written.")]


def predict(
    model: Model,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A .csv or .parquet file; without it, the rows are printed.")
    ] = None,
    graph: Annotated[
        str | None, typer.Option(metavar="GRAPH", help="Another graph; default: the one it was trained on.")
    ] = None,
    edges: Annotated[
        str | None, typer.Option(metavar="EDGES", help="Table of the edges, if --graph is that of the nodes.")
    ] = None,
    undirected: Undirected = False,
    missing: Missing = None,
    column: Column = None,
    ignore: Ignore = None,
    skip_bad: SkipBad = False,
    strict: Strict = False,
    split: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="For another graph with several splits: the one that holds labels back, from 0."
        ),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="New or corrected labels (columns id, label): they take effect at once.")
    ] = None,
    workers: Workers = 1,
    ray: Ray = None,
    as_json: Json = False,
) -> None:
    """Predict every node's label: id, label, confidence, evidence, the label given, all class probabilities."""
    launch(workers, ray)
    import torch

    from lignn.classifier import prediction_table
    from lignn.errors import InputError
    from lignn.store import in_source_order

    if out is not None:
        prediction_table.check(out, *(path for path in (model, labels, graph, edges) if path is not None))
    if graph is not None and labels is not None:
        raise InputError("--labels: new labels are for the graph of the model; with --graph, put them into its tables")
    if graph is None:
        given: dict[str, object] = {"undirected": undirected or None, "missing": missing, "edges": edges}
        given |= {"column": column, "ignore": ignore, "split": split}
        _refuse(given | {"skip-bad": skip_bad or None, "strict": strict or None})
    loaded, first = _loaded(model, labels)
    if not first:
        return
    named = (
        None
        if graph is None
        else NamedGraph(graph, edges, undirected, missing, column, ignore, skip_bad=skip_bad, strict=strict)
    )
    other = None if named is None else _read(named, loaded, quiet=as_json)
    decision = loaded.decision(other, known=None if split is None else _known(other, split))
    report = _report(loaded, other, decision)
    if graph is None:
        decision = decision[in_source_order(loaded.graph_, torch.arange(len(decision))).numpy()]
    about = other if other is not None else loaded.graph_
    if about.value_of is not None:
        decision = decision[about.is_row.numpy()]
    table = prediction_table.of(decision)
    if out is not None:
        prediction_table.write(table, out)
    if as_json:
        rows = {"predictions": table.to_pylist()} if out is None else {"file": str(out)}
        print_json(_summary(decision) | {"report": None if report is None else report.plain()} | rows)
    elif out is None:
        typer.echo(prediction_table.as_csv(table), nl=False)
    else:
        _say(decision, out, report)
        if loaded.calibration_ is None:
            typer.echo(f"confidence: {not_calibrated(loaded)}")


def _loaded(model: Path, labels: Path | None) -> tuple[NodeClassifier, bool]:
    """Load a model and let new labels take effect; return also whether this process is the one that writes."""
    from lignn import classifier
    from lignn.graph import label_table
    from lignn.processes import joined
    from lignn.store import whole_of

    with joined() as processes:
        loaded = classifier.load(model)
        if labels is not None:
            loaded.update_labels(label_table.read(labels, whole_of(loaded.graph_), loaded.class_names_))
        return loaded.gathered(), processes.is_first


def _report(classifier: NodeClassifier, other: Graph | None, decision: Decision) -> Report | None:
    """Return scores on the test labels of the model's graph, or on those of another graph that were no inputs.

    A model without its graph does not know the training labels, whose majority a score is compared with.
    """
    import torch

    if "graph_" not in vars(classifier):
        return None
    graph = classifier.graph_ if other is None else other
    held_out = classifier.split_.test if other is None else ~torch.from_numpy(decision.known)
    nodes = held_out & graph.labelled & ~torch.from_numpy(decision.known)
    if not nodes.any():
        return None
    return classifier.report(nodes, other, known=torch.from_numpy(decision.known))


_OF_ANOTHER_GRAPH = {
    "undirected": "the model's own graph stays as it was trained on",
    "missing": "the labels of the model's own graph were read by lignn fit",
    "edges": "the model's own graph was read by lignn fit",
    "column": "the columns of the model's own graph were read by lignn fit",
    "ignore": "the columns of the model's own graph were read by lignn fit",
    "skip-bad": "the tables of the model's own graph were read by lignn fit",
    "strict": "the tables of the model's own graph were read by lignn fit",
    "split": "the model's own graph keeps the labels that the model knows",
}
"""Options that need `--graph`, and why."""


def _refuse(given: dict[str, object]) -> None:
    """Raise if an option is given that needs `--graph`."""
    from lignn.errors import InputError

    for option, value in given.items():
        if value is not None:
            raise InputError(f"--{option}: {_OF_ANOTHER_GRAPH[option]}; this is for --graph")


def _read(named: NamedGraph, loaded: NodeClassifier, quiet: bool) -> Graph:
    """Return another graph, read in the way of the model's own."""
    from lignn.cli import reading

    features = loaded.get_params(deep=False).get("features")
    graph = reading.read(named.source(features, loaded._model.inputs.reading), quiet)
    reading.tell(graph, quiet)
    own = vars(loaded).get("graph_")  # a model that was saved without its graph does not know
    chosen = None if loaded._model.inputs.reading is None else loaded._model.inputs.reading.direction
    if own is not None and own.is_undirected and not (graph.is_undirected or chosen):
        typer.echo(
            f"warning: {named.graph} is directed, the model was trained on an undirected graph; add --undirected?",
            err=True,
        )
    if own is not None and (own.edge_weight is None) != (graph.edge_weight is None):
        had, has = ("no weights", "has") if own.edge_weight is None else ("weights", "has none")
        typer.echo(f"warning: the model was trained on edges with {had}, {named.graph} {has}", err=True)
    return graph


def _known(graph: Graph | None, split: int) -> Tensor:
    """Return the nodes whose labels one of the graph's splits does not hold back."""
    from lignn.errors import InputError

    assert graph is not None
    if split not in range(len(graph.splits)):
        raise InputError(f"--split {split}: {graph.name} has {len(graph.splits)} splits, counted from 0")
    return graph.labelled & ~graph.splits[split].held_out


def not_calibrated(classifier: NodeClassifier) -> str:
    """Why the confidence of a classifier is as its network has it."""
    from lignn.classifier.calibration import FEWEST

    wanted = f"fewer than {FEWEST} labels were held back" if classifier.calibrate else "it was not wanted"
    return f"not calibrated: {wanted}"


def _summary(decision: Decision) -> dict[str, object]:
    names = decision.names.tolist()
    return {
        "nodes": len(decision),
        "labels": {name: names.count(name) for name in sorted(set(names))},
        "mean_confidence": float(decision.confidence.mean()),
        "no_evidence": int((~decision.evidence).sum()),
        "given": int(decision.known.sum()),
        "given_otherwise": int((decision.known & (decision.names != decision.given)).sum()),
    }


def _say(decision: Decision, out: Path, report: Report | None) -> None:
    found = _summary(decision)
    typer.echo(f"{found['nodes']} predictions, mean confidence {found['mean_confidence']:.2f}: {out}")
    if found["no_evidence"]:
        typer.echo(f"without evidence: {found['no_evidence']}; no known label reaches them, features alone speak")
    if found["given_otherwise"]:
        otherwise = f"{found['given_otherwise']} of {found['given']}"
        typer.echo(f"known labels that are predicted otherwise: {otherwise}; the column `given` has them")
    if report is not None:
        typer.echo(f"labels that were held out: {report}")
