"""Preparation of everything that `train` needs, for the classifier, the studies and the benchmarks.

Held-out labels are turned into scores here. They affect training in no other way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from lignn.equilibrium import WHOLE, Space
from lignn.errors import InputError
from lignn.graph import Graph, Split
from lignn.labels import KnownLabels
from lignn.methods import Method, Prediction, Problem
from lignn.training.loop import History, Scorer, Scores, Settings, train


@dataclass(frozen=True, eq=False)
class Assembly:
    """A method with fresh weights and the problems that it is trained and evaluated on.

    Attributes:
        method: the method; its weights were drawn by `generator`.
        training: the problem that the loss is computed on.
        inference: the problem that predictions are made on; the same object as `training` in the transductive setting.
        generator: draws the masks and dropout of training.
    """

    method: Method
    training: Problem
    inference: Problem
    generator: Generator

    def train(self, score: Scorer | None, settings: Settings, **options: Any) -> History:
        """Train the method; `options` are further arguments of `training.train`."""
        return train(self.method, self.training, self.inference, score, self.generator, settings, **options)


def assemble(
    build: Callable[[Generator], Method],
    graph: Graph,
    labels: KnownLabels,
    *,
    seed: int,
    unseen: Tensor | None = None,
    device: str = "cpu",
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
    """
    generator = torch.Generator().manual_seed(seed)
    inference = Problem.with_labels(graph, labels).to(device)
    training = inference if unseen is None else inference.without_edges_at(unseen)
    method = build(generator).to(device, inference.dtype)
    return Assembly(method, training, inference, generator)


def f1_micro(predicted: Tensor, truth: Tensor, space: Space = WHOLE) -> float:
    """Return the micro-averaged F1 score of the rows of `space`; with one label per node this is the accuracy."""
    if truth.ndim == 1:
        return space.count(predicted == truth) / space.entries(truth)
    hits = space.count(predicted & truth)
    marked = space.count(predicted) + space.count(truth)
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
        labels, space = prediction.labels, prediction.problem.space
        return {name: f1_micro(labels[index], truth[name], space) for name, index in nodes.items()}

    return score
