"""The backbone alone, trained end to end: the baseline of all label-inputted methods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Generator, Tensor

from lignn.backbones import Backbone, frozen_dropout
from lignn.equilibrium.solvers import Solver
from lignn.methods.method import Carry, Epoch, Method
from lignn.methods.problem import BoundMethod, Prediction, Problem


class Network(Method):
    """`Ŷ = σ(f_θ(A, X))`; labels supervise and are never an input.

    Args:
        backbone: network without label inputs.
    """

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone

    def on(self, problem: Problem) -> BoundNetwork:
        """Bind the network to a problem."""
        return BoundNetwork(self, problem)

    def epoch(self, problem: Problem, generator: Generator, carry: Carry | None = None) -> Epoch:
        """Compute the mean cross-entropy over all known nodes."""
        with frozen_dropout(self.backbone, generator):
            loss = problem.labels.loss(self.probabilities(problem), problem.labels.mask)
        return Epoch(loss, problem, carry or Carry())

    def probabilities(self, problem: Problem) -> Tensor:
        """Return `σ(f_θ(A, X))`."""
        adj = problem.operator(self.backbone)
        return problem.labels.activation(self.backbone(problem.x, adj))


@dataclass(frozen=True, eq=False)
class BoundNetwork(BoundMethod):
    """A bound network. Its prediction is one forward pass and does not depend on labels."""

    method: Network

    label_free: ClassVar[tuple[str, ...]] = ("probabilities",)

    @cached_property
    def probabilities(self) -> Tensor:
        """The output of the network."""
        with torch.no_grad():
            return self.method.probabilities(self.problem)

    def solve(self, start: Tensor | None = None, solver: Solver | None = None) -> Prediction:  # noqa: ARG002
        """Return the output of the network; there is nothing to solve."""
        return Prediction(self, self.probabilities)
