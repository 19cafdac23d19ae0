"""The backbone alone, trained end to end: what all label-inputted methods are compared with."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from lignn.backbones import Backbone, frozen_dropout
from lignn.methods.method import Method
from lignn.methods.problem import Prediction, Problem


class Network(Method):
    """`Ŷ = σ(f_θ(A, X))`; labels supervise and are never an input.

    Args:
        backbone: without label inputs.
    """

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone

    def loss(self, problem: Problem, generator: Generator) -> Tensor:
        """Mean cross-entropy over all known nodes."""
        with frozen_dropout(self.backbone, generator):
            return problem.labels.loss(self._probabilities(problem), problem.labels.mask)

    def predict(self, problem: Problem) -> Prediction:
        """One forward pass."""
        with torch.no_grad():
            return Prediction(self._probabilities(problem), problem.evidence, problem.labels.multilabel)

    def _probabilities(self, problem: Problem) -> Tensor:
        adj = problem.adjacency(self.backbone.normalization, self.backbone.self_loops)
        return problem.labels.activation(self.backbone(problem.x, adj))
