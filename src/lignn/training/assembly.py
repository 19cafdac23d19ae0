"""Preparation of everything that `train` needs, for the classifier, the studies and the benchmarks.

Held-out labels are turned into scores here. They affect training in no other way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from lignn.equilibrium import WHOLE, Space
from lignn.errors import InputError
from lignn.graph import Graph, Split
from lignn.labels import KnownLabels
from lignn.methods import Carry, Method, Prediction, Problem
from lignn.training.history import LOG_LOSS, ONE_CLASS, TIE, History, Scorer, Scores
from lignn.training.hooks import Hook
from lignn.training.loop import train
from lignn.training.metrics import Metric, mean_log_loss, predicts_one_class
from lignn.training.settings import Training


@dataclass(frozen=True, eq=False)
class Assembly:
    """A method with fresh weights and the problems that it is trained and evaluated on.

    Attributes:
        method: the method; its weights were drawn by `generator`.
        training: the problem that the loss is computed on.
        inference: the problem that predictions are made on; the same object as `training` in the transductive setting.
        generator: draws the masks and dropout of training.
        teachers: mask of the nodes whose predictions may teach; None for all.
    """

    method: Method
    training: Problem
    inference: Problem
    generator: Generator
    teachers: Tensor | None = None

    def train(
        self, score: Scorer | None, settings: Training, carry: Carry | None = None, hooks: Iterable[Hook] = ()
    ) -> History:
        """Train the method, see `training.train`."""
        given = self.method, self.training, self.inference, score, self.generator, settings
        return train(*given, carry=carry, teachers=self.teachers, hooks=hooks)


def assemble(
    build: Callable[[Generator], Method],
    graph: Graph,
    labels: KnownLabels,
    *,
    seed: int,
    unseen: Tensor | None = None,
    device: str = "cpu",
    teachers: Tensor | None = None,
) -> Assembly:
    """Prepare a training run.

    Args:
        build: returns the method, with weights drawn from the generator.
        graph: the graph with all its edges.
        labels: the known labels; all computations use their precision.
        seed: seed of weights, masks and dropout.
        unseen: mask of the nodes whose edges are left out of training (the inductive setting).
        device: device to compute on. Random numbers are drawn on the CPU, so that a seed gives the same masks on every
            device.
        teachers: mask of the nodes whose predictions may teach; None for all.
    """
    generator = torch.Generator().manual_seed(seed)
    inference = Problem.with_labels(graph, labels).to(device)
    training = inference if unseen is None else inference.without_edges_at(unseen)
    method = build(generator).to(device, inference.dtype)
    return Assembly(method, training, inference, generator, teachers)


def scorer(graph: Graph, split: Split, metric: Metric | None = None) -> Scorer:
    """Return a scorer by a metric, F1-micro for None, on the labelled nodes of each non-empty part of `split`."""
    parts = {part: getattr(split, part) & graph.labelled for part in ("train", "val", "test")}
    return score_on(graph, {part: mask for part, mask in parts.items() if mask.any()}, metric)


def score_on(
    graph: Graph,
    masks: Mapping[str, Tensor],
    metric: Metric | None = None,
    space: Space = WHOLE,
    log_loss_decides: bool = False,
) -> Scorer:
    """Return a scorer by a metric, F1-micro for None, on each of the masks.

    Args:
        graph: has the labels.
        masks: the nodes to score by name; `val` chooses the epoch.
        metric: the metric; its `tie_breaker` adds a score that decides between epochs of the same validation score.
        space: knows nodes of other processes, which are scored too.
        log_loss_decides: choose among epochs of the same score by log loss, and see that an epoch that predicts one
            class is not chosen for its accuracy; without it, the first of them is kept.
    """
    if graph.y is None:
        raise InputError(f"{graph.name} has no labels to score with")
    nodes = {name: mask.nonzero().flatten() for name, mask in masks.items()}
    truth = {name: space.all_rows(graph.y[index]) for name, index in nodes.items()}
    measure = metric or Metric()
    for name, labels in truth.items():
        measure.check(labels, {"val": "validation"}.get(name, name))
    breaker = measure.tie_breaker(truth["val"]) if "val" in truth else None

    def score(prediction: Prediction) -> Scores:
        labels, probabilities = prediction.labels, prediction.probabilities
        parts = {
            name: (space.all_rows(probabilities[index]), space.all_rows(labels[index]), truth[name])
            for name, index in nodes.items()
        }
        scores = {name: measure(*part) for name, part in parts.items()}
        if breaker is not None:
            scores[TIE] = breaker(*parts["val"])
        if log_loss_decides and "val" in parts:
            p, predicted, labelled = parts["val"]
            scores[LOG_LOSS] = mean_log_loss(p, labelled)
            scores[ONE_CLASS] = float(measure.is_of_labels and predicts_one_class(predicted, labelled))
        return scores

    return score
