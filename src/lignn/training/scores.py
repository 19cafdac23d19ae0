"""Held-out labels turned into scores: the only way in which they affect training."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from lignn.errors import InputError
from lignn.graph import Graph, Split
from lignn.methods import Prediction

Scores = dict[str, float]
Scorer = Callable[[Prediction], Scores]
"""Scores by name; `val` chooses the epoch."""


def f1_micro(predicted: Tensor, truth: Tensor) -> float:
    """Return F1 over all decisions taken together; with one label a node this is the accuracy."""
    if truth.ndim == 1:
        return (predicted == truth).sum().item() / len(truth)
    hits = (predicted & truth).sum().item()
    marked = (predicted.sum() + truth.sum()).item()
    return 2 * hits / marked if marked else 1.0


def scorer(graph: Graph, split: Split) -> Scorer:
    """Return a scorer of F1-micro on the labelled nodes of each non-empty part of `split`."""
    parts = {part: getattr(split, part) & graph.labelled for part in ("train", "val", "test")}
    return score_on(graph, {part: mask for part, mask in parts.items() if mask.any()})


def score_on(graph: Graph, masks: Mapping[str, Tensor]) -> Scorer:
    """Return a scorer of F1-micro on each of the masks."""
    if graph.y is None:
        raise InputError(f"{graph.name} has no labels to score with")
    nodes = {name: mask.nonzero().flatten() for name, mask in masks.items()}
    truth = {name: graph.y[index] for name, index in nodes.items()}

    def score(prediction: Prediction) -> Scores:
        labels = prediction.labels
        return {name: f1_micro(labels[index], truth[name]) for name, index in nodes.items()}

    return score
