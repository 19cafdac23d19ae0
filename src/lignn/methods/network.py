"""The backbone alone, trained end to end: the baseline of all label-inputted methods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Generator, Tensor

from lignn.backbones import Backbone, frozen_dropout
from lignn.equilibrium.solvers import Solver
from lignn.labels import LossOf
from lignn.methods.method import Carry, Epoch, Method
from lignn.methods.problem import BoundMethod, Prediction, Problem
from lignn.methods.steps import check_loss


class Network(Method):
    """`Ŷ = σ(f_θ(A, X))`; labels supervise and are never an input.

    Args:
        backbone: network without label inputs.
        loss: what the cross-entropy is computed from.
    """

    def __init__(self, backbone: Backbone, loss: LossOf = "probabilities") -> None:
        super().__init__()
        check_loss(loss)
        self.backbone = backbone
        self.loss_of: LossOf = loss

    def on(self, problem: Problem) -> BoundNetwork:
        """Bind the network to a problem."""
        return BoundNetwork(self, problem)

    def epoch(self, problem: Problem, generator: Generator, carry: Carry | None = None) -> Epoch:
        """Compute the mean cross-entropy over all known nodes, and over taught ones."""
        labels = problem.labels
        with frozen_dropout(self.backbone, generator):
            if self.loss_of == "logits":
                loss = labels.loss_of_logits(self.logits(problem), labels.supervising)
            else:
                loss = labels.loss(self.probabilities(problem), labels.supervising)
        return Epoch(loss, problem, carry or Carry())

    def teacher(self, problem: Problem) -> BoundNetwork:
        """Return the network on the problem."""
        return self.on(problem)

    def logits(self, problem: Problem) -> Tensor:
        """Return `f_θ(A, X)`."""
        return self.backbone(problem.x, problem.operator(self.backbone))

    def probabilities(self, problem: Problem) -> Tensor:
        """Return `σ(f_θ(A, X))`."""
        return problem.labels.activation(self.logits(problem))


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
