"""Which labels a prediction is given, and scores that are not helped by the scored labels.

One rule decides which labels of a graph are inputs, by the content of the graph and not by its identity:

* the graph that the model was fitted on, or one with the same content: the labels that the model knows by now;
* another graph without a split: all its labels;
* another graph with one split: all its labels except those of validation and test nodes;
* another graph with several splits: those of the nodes in `known`, which must be given.

Nodes with their ids, edges with their weights, types and columns, features, columns of the table and labels are
content. The name of the graph, its splits, the order of edges and of named columns, and how features are stored are
not.

A model that was saved without its graph has only other graphs to predict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.classifier import columns
from lignn.classifier.calibration import calibrated
from lignn.classifier.model import Fitted, Model, with_graph
from lignn.errors import InputError, did_you_mean
from lignn.graph import Graph, Split
from lignn.graph.reading import BOTH
from lignn.graph.split import PARTS
from lignn.labels import KnownLabels
from lignn.methods import BoundMethod, Prediction, Problem
from lignn.store import StoredGraph
from lignn.training import Metric

if TYPE_CHECKING:
    from lignn.graph.carried import EdgeTable

HELD_OUT = "held_out"
"""Name of the labels that `fit` held back, as they were predicted before anything was trained on them."""


def predict_on(model: Model, graph: Graph | None, known: Any = None) -> Prediction:
    """Predict on a graph (None: the fitted one); `known` is a mask of the nodes whose labels are inputs, or None."""
    other = elsewhere(model, graph)
    if other is not None:
        return _predicted_elsewhere(model, other, _inputs_elsewhere(other, known))
    fitted = with_graph(model)
    return fitted.prediction if known is None else _predicted(fitted, _inputs(fitted, known))


@dataclass(frozen=True, eq=False)
class Scored:
    """Predictions of the nodes that are scored, and their labels.

    Attributes:
        probabilities: calibrated, m×c.
        predicted: predicted labels.
        truth: given labels.
    """

    probabilities: Tensor
    predicted: Tensor
    truth: Tensor


def metric_named(model: Model, name: str | None) -> Metric:
    """Return a metric by name; None for the one that chose the epoch."""
    return model.metric if name is None else model.metric.named(name, model.classes.multilabel)


def score(model: Model, nodes: Any, graph: Graph | None, known: Any = None, metric: str | None = None) -> float:
    """Return a score on the labelled ones of `nodes`; larger is better."""
    measure = metric_named(model, metric)
    found = scored(model, nodes, graph, known)
    measure.check(found.truth, "scored")
    return measure(found.probabilities, found.predicted, found.truth)


def scored(model: Model, nodes: Any, graph: Graph | None, known: Any = None) -> Scored:
    """Predict the labelled ones of `nodes`, which are a mask, a part of the split, or None for what is held out.

    Labels of scored nodes are no inputs, except those of training nodes of the fitted graph, which the weights know.
    """
    other = elsewhere(model, graph)
    if nodes is None:
        nodes = "test" if other is not None else held_out_part(with_graph(model))
    if isinstance(nodes, str) and nodes == HELD_OUT:
        return _held_out(with_graph(model))
    if other is not None:
        truth, mask = other, _scored(model, other, _only_split(other), nodes)
        prediction = _predicted_elsewhere(model, other, _inputs_elsewhere(other, known) & ~mask)
    else:
        fitted = with_graph(model)
        truth = labels_by_now(fitted)
        mask = _scored(fitted, truth, fitted.split, nodes)
        inputs = _inputs(fitted, known) & ~(mask & ~fitted.split.train)
        solved = torch.equal(inputs, fitted.prediction.problem.labels.mask)
        prediction = fitted.prediction if solved else _predicted(fitted, inputs)
    assert truth.y is not None
    probabilities = calibrated(prediction.probabilities.cpu()[mask], model.calibration, model.classes.multilabel)
    return Scored(probabilities, prediction.labels.cpu()[mask], truth.y[mask])


def held_out_part(fitted: Fitted) -> str:
    """Return which labels tell how good a model is: those of test nodes, else those that `fit` held back."""
    if (fitted.split.test & fitted.graph.labelled).any():
        return "test"
    if fitted.held_out is not None:
        return HELD_OUT
    if not fitted.has_seen_held_out:  # a model of lignn 0.2 or before
        return "val"
    raise InputError(
        f"{fitted.graph.name}: no label was held back, so that nothing tells how good the model is on other nodes; "
        "label more nodes, or give the nodes to score"
    )


def _held_out(fitted: Fitted) -> Scored:
    """Return the predictions at the labels that `fit` held back."""
    found = fitted.held_out
    if found is None:
        raise InputError(f"{fitted.graph.name}: no predictions at labels that fit held back are kept; give other nodes")
    p = calibrated(found.probabilities, fitted.calibration, fitted.classes.multilabel)
    return Scored(p, found.predicted, found.truth)


def _scored(model: Model, graph: Graph, split: Split | None, nodes: Any) -> Tensor:
    """Return the labelled ones of the nodes to score, which are a mask or a part of the split."""
    mask = _part(model, split, nodes, graph) if isinstance(nodes, str) else _mask("nodes", nodes, graph)
    mask = mask & graph.labelled
    if not mask.any():
        raise InputError(f"{graph.name}: none of the nodes to score has a label")
    return mask


def elsewhere(model: Model, graph: Graph | None) -> Graph | None:
    """Return `graph` with the features and classes of the model; None if its content is that of the fitted graph."""
    own = model.graph if isinstance(model, Fitted) else None
    if graph is None or graph is own:
        return None
    reading = model.inputs.reading
    if reading is not None and reading.direction == BOTH and not graph.is_undirected:
        graph = graph.to_undirected()
    aligned = columns.from_one_source(graph, model.preparation is not None)
    if model.preparation is None:
        aligned = columns.align(aligned, model.inputs)
    aligned = model.classes.align(aligned)
    if own is not None and _same_content(aligned, model.classes.align(own)):
        return None
    return columns.prepared(aligned, model.preparation, model.spec)


def _same_content(one: Graph, other: Graph) -> bool:
    """Return whether two aligned graphs have the same nodes, edges, features and labels."""
    if isinstance(one, StoredGraph) or isinstance(other, StoredGraph):
        return type(one) is type(other) and one.fingerprint() == other.fingerprint()
    if (one.num_nodes, one.num_edges, one.num_features) != (other.num_nodes, other.num_edges, other.num_features):
        return False
    parts = ("y", "node_ids")
    return (
        all(_equal(getattr(one, part), getattr(other, part)) for part in parts)
        and _types(one)[0] == _types(other)[0]
        and _equal(_sorted_edges(one), _sorted_edges(other))
        and _same_features(one.x, other.x)
        and _same_tables(one, other)
        and _same_edge_rows(one.edge_table, other.edge_table)
    )


def _same_tables(one: Graph, other: Graph) -> bool:
    if one.table is None or other.table is None:
        return one.table is other.table
    from lignn.features import same  # imports pyarrow, which is slow and not needed without tables

    return same(one.table, other.table)


def _same_edge_rows(one: EdgeTable | None, other: EdgeTable | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one.ends, other.ends) and one.rows.equals(other.rows)


def _same_features(one: Any, other: Any) -> bool:
    if not (sp.issparse(one) or sp.issparse(other)):
        return _equal(one, other)
    return (sp.csr_array(one) != sp.csr_array(other)).nnz == 0


def _sorted_edges(graph: Graph) -> np.ndarray:
    """Return sources, targets, types and weights of the edges, in an order that is independent of their storage."""
    source, target = graph.edge_index.numpy()
    weight = np.ones(len(source)) if graph.edge_weight is None else graph.edge_weight.numpy()
    kind = _types(graph)[1]
    order = np.lexsort((weight, kind, target, source))
    return np.stack([source[order], target[order], kind[order], weight[order]])


def _types(graph: Graph) -> tuple[list[str] | None, np.ndarray]:
    """Return the names of the types that occur, sorted, and the place of each edge's type among them."""
    if graph.edge_type is None or graph.edge_types is None:
        return None, np.zeros(graph.num_edges)
    used = sorted(graph.edge_types[number] for number in graph.edge_type.unique().tolist())
    places = np.array([used.index(name) if name in used else -1 for name in graph.edge_types])
    return used, places[graph.edge_type.numpy()]


def _equal(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(np.asarray(one), np.asarray(other))


def labels_by_now(fitted: Fitted) -> Graph:
    """Return the fitted graph with the labels that are known by now."""
    labels, y = fitted.prediction.problem.labels.to("cpu"), fitted.graph.y
    assert y is not None
    known = labels.onehot.to(y.dtype) if labels.multilabel else labels.onehot.argmax(1)
    mask = labels.mask[:, None] if labels.multilabel else labels.mask
    return fitted.graph.replace(y=torch.where(mask, known, y), class_names=fitted.classes.names)


def bind(model: Model, graph: Graph, labels: KnownLabels) -> BoundMethod:
    """Bind the trained method to a graph, whose features are prepared, with known labels."""
    graph = columns.prepared(graph, model.preparation, model.spec)
    return model.method.on(Problem.with_labels(graph, labels).to(model.spec.device))


def _predicted(fitted: Fitted, inputs: Tensor) -> Prediction:
    """Predict with some labels of the fitted graph; its features are not looked at again."""
    labels = fitted.classes.known(labels_by_now(fitted), inputs, fitted.spec.dtype).to(fitted.spec.device)
    return fitted.prediction.bound.with_labels(labels).solve()


def _predicted_elsewhere(model: Model, other: Graph, inputs: Tensor) -> Prediction:
    """Predict with some labels of an aligned graph."""
    labels = model.classes.known(other, inputs, model.spec.dtype).to(model.spec.device)
    return model.method.on(Problem.with_labels(other, labels).to(model.spec.device)).solve()


def _inputs(fitted: Fitted, known: Any) -> Tensor:
    """Return the nodes of the fitted graph whose labels are inputs, by the rule of this module."""
    if known is None:
        return fitted.prediction.problem.labels.mask
    truth = labels_by_now(fitted)
    return _mask("known", known, truth) & truth.labelled


def _inputs_elsewhere(other: Graph, known: Any) -> Tensor:
    """Return the nodes of another graph whose labels are inputs, by the rule of this module."""
    if known is not None:
        return _mask("known", known, other) & other.labelled
    if len(other.splits) > 1 and other.labelled.any():
        raise InputError(
            f"{other.name} has {len(other.splits)} splits, which hold back different labels; say which labels are "
            "inputs by known=, a mask over the nodes, e.g. known=graph.splits[0].train (--split on the command line)"
        )
    return other.labelled & ~other.splits[0].held_out if len(other.splits) == 1 else other.labelled


def _only_split(graph: Graph) -> Split | None:
    return graph.splits[0] if len(graph.splits) == 1 else None


def _part(model: Model, split: Split | None, name: str, graph: Graph) -> Tensor:
    """Return the nodes of a part of the split."""
    if name not in PARTS:
        raise InputError(f"nodes: {name!r} is no part of a split; {did_you_mean(name, PARTS)}")
    if split is None:
        raise InputError(f"nodes: {graph.name} has no split or several; give a mask of the nodes to score")
    mask = getattr(split, name)
    if (
        name == "val"
        and isinstance(model, Fitted)
        and split is model.split
        and model.spec.values["refit"]
        and not (mask & graph.labelled).any()
    ):
        raise InputError(
            "nodes: 'val' was trained on by the refit, so that its score would say nothing of other nodes; "
            "without nodes, the score is the one before that"
        )
    return mask


def _mask(name: str, nodes: Any, graph: Graph) -> Tensor:
    mask = torch.as_tensor(nodes)
    if mask.dtype != torch.bool or mask.shape != (graph.num_nodes,):
        raise InputError(f"{name}: a boolean mask over the {graph.num_nodes} nodes of {graph.name} is needed")
    return mask
