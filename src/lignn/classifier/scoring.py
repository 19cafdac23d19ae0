"""Which labels a prediction is given, and scores that are not helped by the scored labels.

One rule decides which labels of a graph are inputs, by the content of the graph and not by its identity:

* the graph that the model was fitted on, or one with the same content: the labels that the model knows by now;
* another graph without a split: all its labels;
* another graph with one split: all its labels except those of validation and test nodes;
* another graph with several splits: those of the nodes in `known`, which must be given.

Nodes with their ids, edges with their weights, features and labels are content. The name of the graph, its splits, the
order of edges and of named feature columns, and how features are stored are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.classifier import columns
from lignn.classifier.calibration import at_temperature
from lignn.classifier.fitting import Fitted
from lignn.errors import InputError, did_you_mean
from lignn.graph import Graph, Split
from lignn.graph.split import PARTS
from lignn.labels import KnownLabels
from lignn.methods import BoundMethod, Prediction, Problem
from lignn.training import Metric


def predict_on(fitted: Fitted, graph: Graph | None, known: Any = None) -> Prediction:
    """Predict on a graph (None: the fitted one); `known` is a mask of the nodes whose labels are inputs, or None."""
    other = elsewhere(fitted, graph)
    if other is None and known is None:
        return fitted.prediction
    truth = labels_by_now(fitted) if other is None else other
    return _predicted(fitted, truth, _inputs(fitted, other, known), other is None)


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


def metric_named(fitted: Fitted, name: str | None) -> Metric:
    """Return a metric by name; None for the one that chose the epoch."""
    return fitted.metric if name is None else fitted.metric.named(name, fitted.classes.multilabel)


def score(fitted: Fitted, nodes: Any, graph: Graph | None, known: Any = None, metric: str | None = None) -> float:
    """Return a score on the labelled ones of `nodes`; larger is better."""
    measure = metric_named(fitted, metric)
    found = scored(fitted, nodes, graph, known)
    measure.check(found.truth, "scored")
    return measure(found.probabilities, found.predicted, found.truth)


def scored(fitted: Fitted, nodes: Any, graph: Graph | None, known: Any = None) -> Scored:
    """Predict the labelled ones of `nodes`, which are a mask or a part of the split.

    Labels of scored nodes are no inputs, except those of training nodes of the fitted graph, which the weights know.
    """
    other = elsewhere(fitted, graph)
    own = other is None
    truth = labels_by_now(fitted) if other is None else other
    split = fitted.split if own else _only_split(truth)
    mask = _part(fitted, split, nodes, truth) if isinstance(nodes, str) else _mask("nodes", nodes, truth)
    mask = mask & truth.labelled
    if truth.y is None or not mask.any():
        raise InputError(f"{truth.name}: none of the nodes to score has a label")
    inputs = _inputs(fitted, other, known) & ~(mask & ~fitted.split.train if own else mask)
    if own and torch.equal(inputs, fitted.prediction.problem.labels.mask):
        prediction = fitted.prediction
    else:
        prediction = _predicted(fitted, truth, inputs, own)
    several = fitted.classes.multilabel
    temperature = 1.0 if fitted.calibration is None else fitted.calibration.temperature
    probabilities = at_temperature(prediction.probabilities.cpu()[mask], temperature, several)
    return Scored(probabilities, prediction.labels.cpu()[mask], truth.y[mask])


def elsewhere(fitted: Fitted, graph: Graph | None) -> Graph | None:
    """Return `graph` with the features and classes of the model; None if its content is that of the fitted graph."""
    if graph is None or graph is fitted.graph:
        return None
    aligned = _aligned(fitted, graph)
    return None if _same_content(aligned, _aligned(fitted, fitted.graph)) else aligned


def _same_content(one: Graph, other: Graph) -> bool:
    """Return whether two aligned graphs have the same nodes, edges, features and labels."""
    if (one.num_nodes, one.num_edges, one.num_features) != (other.num_nodes, other.num_edges, other.num_features):
        return False
    parts = ("y", "node_ids")
    return (
        all(_equal(getattr(one, part), getattr(other, part)) for part in parts)
        and _equal(_sorted_edges(one), _sorted_edges(other))
        and _same_features(one.x, other.x)
    )


def _same_features(one: Any, other: Any) -> bool:
    if not (sp.issparse(one) or sp.issparse(other)):
        return _equal(one, other)
    return (sp.csr_array(one) != sp.csr_array(other)).nnz == 0


def _sorted_edges(graph: Graph) -> np.ndarray:
    """Return sources, targets and weights of the edges, in an order that does not depend on how they are stored."""
    source, target = graph.edge_index.numpy()
    weight = np.ones(len(source)) if graph.edge_weight is None else graph.edge_weight.numpy()
    order = np.lexsort((weight, target, source))
    return np.stack([source[order], target[order], weight[order]])


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


def bind(fitted: Fitted, graph: Graph, labels: KnownLabels) -> BoundMethod:
    """Bind the trained method to a graph with known labels."""
    return fitted.prediction.bound.method.on(Problem.with_labels(graph, labels).to(fitted.settings.device))


def _predicted(fitted: Fitted, truth: Graph, inputs: Tensor, own: bool) -> Prediction:
    """Predict with some labels of an aligned graph; on the fitted one features are not looked at again."""
    labels = fitted.classes.known(truth, inputs, fitted.settings.dtype).to(fitted.settings.device)
    bound = fitted.prediction.bound.with_labels(labels) if own else bind(fitted, truth, labels)
    return bound.solve()


def _inputs(fitted: Fitted, other: Graph | None, known: Any) -> Tensor:
    """Return the nodes whose labels are inputs, by the rule of this module; `other` is None for the fitted graph."""
    if known is not None:
        truth = labels_by_now(fitted) if other is None else other
        return _mask("known", known, truth) & truth.labelled
    if other is None:
        return fitted.prediction.problem.labels.mask
    if len(other.splits) > 1 and other.labelled.any():
        raise InputError(
            f"{other.name} has {len(other.splits)} splits, which hold back different labels; say which labels are "
            "inputs by known=, a mask over the nodes, e.g. known=graph.splits[0].train (--split on the command line)"
        )
    return other.labelled & ~other.splits[0].held_out if len(other.splits) == 1 else other.labelled


def _only_split(graph: Graph) -> Split | None:
    return graph.splits[0] if len(graph.splits) == 1 else None


def _part(fitted: Fitted, split: Split | None, name: str, graph: Graph) -> Tensor:
    """Return the nodes of a part of the split."""
    if name not in PARTS:
        raise InputError(f"nodes: {name!r} is no part of a split; {did_you_mean(name, PARTS)}")
    if split is None:
        raise InputError(f"nodes: {graph.name} has no split or several; give a mask of the nodes to score")
    mask = getattr(split, name)
    if (
        name == "val"
        and split is fitted.split
        and fitted.settings.values["refit"]
        and not (mask & graph.labelled).any()
    ):
        raise InputError(
            "nodes: 'val' was trained on by refit=True, so that its score would say nothing of other nodes; "
            "history_.final['val'] is the score before that"
        )
    return mask


def _mask(name: str, nodes: Any, graph: Graph) -> Tensor:
    mask = torch.as_tensor(nodes)
    if mask.dtype != torch.bool or mask.shape != (graph.num_nodes,):
        raise InputError(f"{name}: a boolean mask over the {graph.num_nodes} nodes of {graph.name} is needed")
    return mask


def _aligned(fitted: Fitted, graph: Graph) -> Graph:
    return fitted.classes.align(columns.align(graph, fitted.graph))
