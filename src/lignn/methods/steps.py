"""The steps of the family: what one propagation of the state computes, and the map that it makes on a problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self, cast, get_args

import torch
from torch import Tensor, nn

from lignn.backbones import GCN, Backbone
from lignn.equilibrium import Map, Space, solve
from lignn.equilibrium.solvers import Picard, Solver
from lignn.equilibrium.wellposed import LIPSCHITZ
from lignn.errors import ConfigError
from lignn.labels import KnownLabels, LossOf, SoftmaxJacobian
from lignn.methods.fused import InputMap, step_of, weights_of
from lignn.methods.problem import BoundMethod, LabelWeight, Prediction, Problem
from lignn.propagation import Adjacency
from lignn.propagation.operator_norms import least_norms
from lignn.propagation.rows import Rows, dense

if TYPE_CHECKING:
    from lignn.methods.label_inputted import LabelInputted
    from lignn.propagation.fused import FusedStep


class Step(nn.Module, ABC):
    """A map from the (clamped, masked) state to the next one, for a given problem."""

    linear: ClassVar[bool] = False
    """Whether the map is affine in the state."""
    teachable: ClassVar[bool] = False
    """Whether `loss` takes taught nodes too."""

    @abstractmethod
    def bind(self, problem: Problem) -> Map:
        """Return the map; everything that does not depend on the state is computed here, once."""

    def bind_adjoint(self, problem: Problem) -> Map | None:  # noqa: ARG002
        """Return the same map with the approximate Jacobian that the adjoint uses; None if it uses the exact one."""
        return None

    def supervised(self, bound: Map) -> Map:
        """Return the map whose output `loss` takes, for a map that `bind` has returned."""
        return bound

    def lipschitz(self, problem: Problem) -> float | None:  # noqa: ARG002
        """Return a bound of the map's Lipschitz constant that holds for all known labels; None for no bound."""
        return None

    def scale_labels(self, factor: float) -> None:
        """Multiply the weights of the state, to which `lipschitz` is proportional."""

    @property
    def reads_labels(self) -> bool:
        """Whether the map depends on the known labels other than through its input."""
        return False

    def keeps_start(self, problem: Problem) -> bool:  # noqa: ARG002
        """Return whether part of the start is known to stay in the solution."""
        return False

    def label_weight(self, problem: Problem) -> LabelWeight | None:  # noqa: ARG002
        """Return the weight that Theorem 1 bounds; None for maps that the theorem does not cover."""
        return None

    @abstractmethod
    def loss(self, labels: KnownLabels, state: Tensor, nodes: Tensor) -> Tensor:
        """Return how far `state` is from the known labels at `nodes`."""

    @abstractmethod
    def probabilities(self, state: Tensor, multilabel: bool) -> Tensor:
        """Return the state as class probabilities."""


@dataclass(frozen=True, eq=False)
class BoundStep:
    """The map of a network on a problem: `Ŷ ↦ σ(step(features, Ŷ))`.

    Attributes:
        backbone: the network.
        features: what it computes without the state.
        adj: the operator of the graph.
        problem: has the known labels, which say what σ is, and the rows that this process holds.
        jacobian: softmax Jacobian of its backward pass.
        activated: whether σ is applied; if not, the map returns logits, and cannot be iterated.
    """

    backbone: Backbone
    features: Tensor
    adj: Adjacency
    problem: Problem
    jacobian: SoftmaxJacobian = "exact"
    activated: bool = True

    def __call__(self, state: Tensor) -> Tensor:
        """Return `σ(step(features, Ŷ))`."""
        return self.output(self.backbone.step(self.features, self.problem.rows(state), self.adj))

    def output(self, logits: Tensor | Rows) -> Tensor:
        """Return `σ(logits)`, or the logits themselves."""
        return self.problem.labels.activation(logits, self.jacobian) if self.activated else dense(logits)

    @cached_property
    def fused(self) -> FusedStep | None:
        """The same map for the kernels of compiled solves; None if the network has no such form."""
        if self.problem.streamed:
            return None
        return step_of(self)

    @cached_property
    def weights(self) -> tuple[Tensor, Tensor, Tensor]:
        """The weights of a GCN of two layers, on the tape even if a solve without gradients asks first."""
        with torch.enable_grad():
            return weights_of(cast(GCN, self.backbone))

    def without_activation(self) -> BoundStep:
        """Return the map to the logits, which shares what the kernels of compiled solves need."""
        logits = replace(self, activated=False)
        if self.fused is not None:
            vars(logits).update(fused=self.fused, weights=self.weights)
        return logits


class BackboneStep(Step):
    """`Ŷ ↦ σ(f_θ(A, [Ŷ | X]))`; the state holds probabilities.

    Args:
        backbone: network with c label inputs.
        jacobian: softmax Jacobian in the adjoint: "exact", or only its "diagonal".
        loss: what the cross-entropy is computed from.
    """

    teachable: ClassVar[bool] = True

    def __init__(self, backbone: Backbone, jacobian: SoftmaxJacobian = "exact", loss: LossOf = "probabilities") -> None:
        super().__init__()
        check_loss(loss)
        if jacobian not in get_args(SoftmaxJacobian):
            raise ConfigError(f"jacobian {jacobian!r} is unknown; choose from {', '.join(get_args(SoftmaxJacobian))}")
        if backbone.label_inputs != backbone.num_classes:
            raise ConfigError(
                f"a label-inputted method needs as many label inputs as classes ({backbone.num_classes}), "
                f"this backbone has {backbone.label_inputs}"
            )
        self.backbone = backbone
        self.jacobian: SoftmaxJacobian = jacobian
        self.loss_of: LossOf = loss

    def bind(self, problem: Problem) -> Map:
        """Return the map; features are propagated once."""
        return self._bound(problem, "exact")

    def bind_adjoint(self, problem: Problem) -> Map | None:
        """Return the map with the diagonal softmax Jacobian, or None for the exact one."""
        return None if self.jacobian == "exact" else self._bound(problem, self.jacobian)

    def _bound(self, problem: Problem, jacobian: SoftmaxJacobian) -> BoundStep:
        adj = problem.operator(self.backbone)
        return BoundStep(self.backbone, self.backbone.features(problem.x, adj), adj, problem, jacobian)

    def label_weight(self, problem: Problem) -> LabelWeight | None:
        """Return `W_z` and `Ã` of a backbone of one hop that is linear in the label state."""
        weight = self.backbone.label_weight
        if weight is None:
            return None
        return LabelWeight(weight, problem.operator(self.backbone))

    def supervised(self, bound: Map) -> Map:
        """Return the map itself, or the one to the logits if the loss is computed from them."""
        return bound.without_activation() if self.loss_of == "logits" and isinstance(bound, BoundStep) else bound

    def lipschitz(self, problem: Problem) -> float | None:
        """Return `L g` for the gain g of the network, where L is ½ for the softmax and ¼ for the sigmoid.

        The smaller one of two bounds counts: of the state's Frobenius norm, and of its longest row.
        """
        if not vars(type(self.backbone)).get("bounded"):
            return None  # a subclass may have changed what the bound rests on
        adj, multilabel = problem.operator(self.backbone), problem.labels.multilabel
        several = problem.once(("norms", self.backbone.operator), lambda: least_norms(adj))
        gains = [self.backbone.gain(norms, centred=not multilabel) for norms in several]
        constant = LIPSCHITZ["sigmoid" if multilabel else "softmax"]
        return None if None in gains else constant * min(float(gain) for gain in gains if gain is not None)

    def scale_labels(self, factor: float) -> None:
        """Multiply the weights of the label state."""
        for weight in self.backbone.label_weights():
            weight.mul_(factor)

    def loss(self, labels: KnownLabels, state: Tensor, nodes: Tensor) -> Tensor:
        """Return the cross-entropy of what `supervised` gives."""
        return labels.loss_of_logits(state, nodes) if self.loss_of == "logits" else labels.loss(state, nodes)

    def probabilities(self, state: Tensor, multilabel: bool) -> Tensor:  # noqa: ARG002
        """Return the state itself."""
        return state


def check_loss(loss: str) -> None:
    """Raise `ConfigError` if a loss is unknown."""
    if loss not in get_args(LossOf):
        raise ConfigError(f"loss {loss!r} is unknown; choose from {', '.join(get_args(LossOf))}")


class PropagationStep(Step):
    """`Ŷ ↦ A_λ Ŷ`, `A_λ = (1-λ) I + λ Ã`, or with a residual estimator `Ŷ ↦ A_λ Ŷ + λ g_θ(A, X)`.

    The state holds scores. Their rows need not sum to one, because Ã is not stochastic.

    Args:
        lam: λ.
        residual: g_θ, without label inputs; None for plain label propagation.
        type_weights: factors of the weights of edges by their type.
    """

    linear: ClassVar[bool] = True

    def __init__(
        self, lam: float, residual: Backbone | None = None, type_weights: Mapping[str, float] | None = None
    ) -> None:
        super().__init__()
        if not 0 < lam <= 1:
            raise ConfigError(f"λ must be above 0 and at most 1, got {lam}")
        self.lam = lam
        self.residual = residual
        self.type_weights = type_weights

    def operator(self, problem: Problem) -> Adjacency:
        """Return A_λ."""
        return problem.lazy(self.lam, self.type_weights)

    @property
    def reads_labels(self) -> bool:
        """True with residuals, which are added only to nodes that a known label reaches."""
        return self.residual is not None

    def keeps_start(self, problem: Problem) -> bool:
        """Return whether some node is reached by no label: A_λ has the eigenvalue 1 there, so its start stays.

        Rounding may compute that eigenvalue as less than 1. With residuals, these nodes are kept at zero instead.
        """
        return self.residual is None and not bool(problem.evidence.all())

    def bind(self, problem: Problem) -> Map:
        """Return the map; A_λ is formed, and the residuals are estimated, once.

        With residuals, the state of nodes that no known label reaches is kept at zero: A_λ does not contract there, and
        the residuals would add up without bound.
        """
        lazy = self.operator(problem)
        if self.residual is None:
            return lambda state: lazy @ state
        reached = lazy.restricted(rows=problem.evidence)
        adj = problem.operator(self.residual)
        estimated = self.residual(problem.x, adj)
        offset = self.lam * estimated * problem.evidence.to(estimated.device)[:, None]
        return lambda state: reached @ state + offset

    def loss(self, labels: KnownLabels, state: Tensor, nodes: Tensor) -> Tensor:
        """Return the mean squared error, because a propagated state estimates the label vectors themselves."""
        index = nodes.nonzero().flatten().to(state.device)
        target = labels.onehot[index]
        return labels.mean((state[index] - target).square().sum(1), target)

    def probabilities(self, state: Tensor, multilabel: bool) -> Tensor:
        """Return rows divided by their sums; rows of nodes that no label has reached are uniform."""
        return as_probabilities(state, multilabel)


def as_probabilities(scores: Tensor, multilabel: bool) -> Tensor:
    """Return propagated scores as probabilities.

    With one label per node, negative scores become zero, each row is divided by its sum, and rows of zeros become
    uniform. With several labels, each score is clamped to 0 … 1.
    """
    if multilabel:
        return scores.clamp(0, 1)
    positive = scores.clamp(min=0)
    total = positive.sum(1, keepdim=True)
    return torch.where(total > 0, positive / total.clamp(min=torch.finfo(scores.dtype).tiny), 1 / scores.shape[1])


def first_step(fn: Map, start: Tensor, space: Space) -> Tensor:
    """Return the first state of a solve, computed as the solve computes it: compiled if it is."""
    return solve(fn, start, Picard(tol=0.0, max_steps=1), throw=False, space=space).value


_ROUNDINGS, _MOST_STEPS = 4, 1000
"""Tolerance of a proved equilibrium in units of rounding, and steps in which a contraction reaches it."""


@dataclass(frozen=True, eq=False)
class BoundLabelInputted(BoundMethod):
    """A bound `LabelInputted` method; its map is `Ŷ ↦ step((I - M_t) Ŷ + M_t Y)`."""

    method: LabelInputted

    takes_labels: ClassVar[bool] = True
    label_free: ClassVar[tuple[str, ...]] = ("step", "lipschitz")

    @cached_property
    def step(self) -> Map:
        """The step as a map; everything that does not depend on the state is computed once."""
        with torch.no_grad():
            return self.method.step.bind(self.problem)

    @property
    def map(self) -> Map:
        """`Ŷ ↦ step((I - M_t) Ŷ + M_t Y)`."""
        labels = self.problem.labels
        return InputMap(self.step, labels.clamp, None if self.problem.streamed else labels.clamped)

    @property
    def solver(self) -> Solver:
        """The solver of predictions; if one equilibrium is promised, it goes to rounding, so that no start shows."""
        solver = self.method.inference
        if self.method.contraction.kind != "proved" or solver.tol == 0:
            return solver
        tol = min(solver.tol, _ROUNDINGS * torch.finfo(self.problem.dtype).eps)
        return replace(solver, tol=tol, max_steps=max(solver.max_steps, _MOST_STEPS))

    @property
    def iterates(self) -> bool:
        """Whether the solver has a tolerance to reach."""
        return self.solver.tol > 0

    @property
    def linear(self) -> bool:  # type: ignore[override]
        """Whether the step is affine."""
        return self.method.step.linear

    @property
    def keeps_start(self) -> bool:
        """Whether the step leaves part of the start unchanged on this problem."""
        return self.method.step.keeps_start(self.problem)

    @cached_property
    def lipschitz(self) -> float | None:
        """The step's bound, in eval mode: clamping known rows cannot expand a difference."""
        return self.method.step.lipschitz(self.problem)

    @property
    def label_weight(self) -> LabelWeight | None:
        """The step's `W_z` and `Ã`."""
        return self.method.step.label_weight(self.problem)

    def with_labels(self, labels: KnownLabels) -> Self:
        """Bind the method to other known labels; the step is kept unless it reads the labels itself."""
        if self.method.step.reads_labels:
            return type(self)(self.method, self.problem.knowing(labels))
        return super().with_labels(labels)

    def first_step(self) -> Tensor:
        """Return the first state of a solve that starts at zero."""
        return first_step(self.map, torch.zeros_like(self.problem.labels.onehot), self.problem.space)

    def solve(self, start: Tensor | None = None, solver: Solver | None = None) -> Prediction:
        """Solve with all known labels clamped."""
        labels = self.problem.labels
        start = torch.zeros_like(labels.onehot) if start is None else start
        with torch.no_grad():
            solution = solve(self.map, start, solver or self.solver, throw=False, space=self.problem.space)
            return Prediction(self, self.method.step.probabilities(solution.value, labels.multilabel), solution)
