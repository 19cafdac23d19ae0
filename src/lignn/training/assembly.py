"""From a graph to everything that `train` takes: one place for the classifier, the studies and the benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from lignn.graph import Graph
from lignn.labels import KnownLabels
from lignn.methods import Method, Problem
from lignn.training.loop import History, Settings, train
from lignn.training.scores import Scorer


@dataclass(frozen=True, eq=False)
class Assembly:
    """A method with fresh weights and the problems that it is trained and evaluated on.

    Attributes:
        method: its weights were drawn by `generator`.
        training: what the loss sees.
        inference: what predictions see; the same object as `training` in the transductive setting.
        generator: draws the masks and dropout of training.
    """

    method: Method
    training: Problem
    inference: Problem
    generator: Generator

    def train(self, score: Scorer | None, settings: Settings, **options: Any) -> History:
        """Train the method; options are those of `training.train`."""
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
    """Put together a training run.

    Args:
        build: returns the method, with weights drawn from the generator.
        graph: with all its edges.
        labels: the known labels; their precision is that of all numbers.
        seed: seed of weights, masks and dropout.
        unseen: inductive setting: nodes whose edges training does not see (a mask).
        device: where to compute. Drawing stays on the CPU, so that a seed gives the same masks on every device.
    """
    generator = torch.Generator().manual_seed(seed)
    inference = Problem.with_labels(graph, labels).to(device)
    training = inference if unseen is None else inference.without_edges_at(unseen)
    method = build(generator).to(device, inference.dtype)
    return Assembly(method, training, inference, generator)
