"""The steps of the family: what one propagation of the state computes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import get_args

import torch
from torch import Tensor, nn

from lignn.backbones import Backbone
from lignn.equilibrium import Map
from lignn.errors import ConfigError
from lignn.labels import KnownLabels, SoftmaxJacobian
from lignn.methods.problem import Problem


class Step(nn.Module, ABC):
    """A map from the (clamped, masked) state to the next one, for a given problem."""

    @abstractmethod
    def bind(self, problem: Problem) -> Map:
        """The map; all that does not depend on the state is computed here, once."""

    def bind_adjoint(self, problem: Problem) -> Map | None:  # noqa: ARG002
        """The same map with the approximate Jacobian that the adjoint is to take; None: its own."""
        return None

    @abstractmethod
    def loss(self, labels: KnownLabels, state: Tensor, nodes: Tensor) -> Tensor:
        """How far `state` is from the known labels at `nodes`."""

    @abstractmethod
    def probabilities(self, state: Tensor, multilabel: bool) -> Tensor:
        """The state as a prediction."""


class BackboneStep(Step):
    """`Ŷ ↦ σ(f_θ(A, [Ŷ | X]))`, the state is probabilities.

    Args:
        backbone: takes c label inputs.
        jacobian: of the softmax in the adjoint: "exact", or its "diagonal" alone.
    """

    def __init__(self, backbone: Backbone, jacobian: SoftmaxJacobian = "exact") -> None:
        super().__init__()
        if jacobian not in get_args(SoftmaxJacobian):
            raise ConfigError(f"jacobian {jacobian!r} is unknown; choose from {', '.join(get_args(SoftmaxJacobian))}")
        if backbone.label_inputs != backbone.num_classes:
            raise ConfigError(
                f"a label-inputted method needs as many label inputs as classes ({backbone.num_classes}), "
                f"this backbone has {backbone.label_inputs}"
            )
        self.backbone = backbone
        self.jacobian: SoftmaxJacobian = jacobian

    def bind(self, problem: Problem) -> Map:
        """Features are propagated once."""
        return self._bound(problem, "exact")

    def bind_adjoint(self, problem: Problem) -> Map | None:
        """With the diagonal of the softmax Jacobian, if that is wanted."""
        return None if self.jacobian == "exact" else self._bound(problem, self.jacobian)

    def _bound(self, problem: Problem, jacobian: SoftmaxJacobian) -> Map:
        adj = problem.adjacency(self.backbone.normalization, self.backbone.self_loops)
        features = self.backbone.features(problem.x, adj)
        return lambda state: problem.labels.activation(self.backbone.step(features, state, adj), jacobian)

    def loss(self, labels: KnownLabels, state: Tensor, nodes: Tensor) -> Tensor:
        """Cross-entropy."""
        return labels.loss(state, nodes)

    def probabilities(self, state: Tensor, multilabel: bool) -> Tensor:  # noqa: ARG002
        """The state itself."""
        return state


class PropagationStep(Step):
    """`Ŷ ↦ A_λ Ŷ`, `A_λ = (1-λ) I + λ Ã`, or with a residual estimator `Ŷ ↦ A_λ Ŷ + λ g_θ(A, X)`.

    The state is scores whose rows need not sum to one, as Ã is not stochastic.

    Args:
        lam: λ.
        residual: g_θ, without label inputs; None for plain label propagation.
    """

    def __init__(self, lam: float, residual: Backbone | None = None) -> None:
        super().__init__()
        if not 0 < lam <= 1:
            raise ConfigError(f"λ lies above 0 and is at most 1, got {lam}")
        self.lam = lam
        self.residual = residual

    def bind(self, problem: Problem) -> Map:
        """A_λ is formed, and the residuals estimated, once.

        With residuals the state is zero where no known label arrives: A_λ does not contract there, and the residuals
        would add up without end.
        """
        lazy = problem.lazy(self.lam)
        if self.residual is None:
            return lambda state: lazy @ state
        reached = lazy.restricted(rows=problem.evidence)
        adj = problem.adjacency(self.residual.normalization, self.residual.self_loops)
        offset = self.lam * self.residual(problem.x, adj) * problem.evidence[:, None]
        return lambda state: reached @ state + offset

    def loss(self, labels: KnownLabels, state: Tensor, nodes: Tensor) -> Tensor:
        """Mean squared distance: a propagated state estimates the label vectors themselves."""
        return (state[nodes] - labels.onehot[nodes]).square().sum(1).mean()

    def probabilities(self, state: Tensor, multilabel: bool) -> Tensor:
        """Rows divided by their sums; uniform where nothing has arrived."""
        return as_probabilities(state, multilabel)


def as_probabilities(scores: Tensor, multilabel: bool) -> Tensor:
    """Propagated scores as probabilities.

    One label a node: negative scores cut off, rows divided by their sums, rows without any score uniform. Several
    labels: each score cut off at 0 and 1.
    """
    if multilabel:
        return scores.clamp(0, 1)
    positive = scores.clamp(min=0)
    total = positive.sum(1, keepdim=True)
    uniform = torch.full_like(scores, 1 / scores.shape[1])
    return torch.where(total > 0, positive / total.clamp(min=torch.finfo(scores.dtype).tiny), uniform)
