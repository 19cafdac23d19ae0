"""IGNN*: the implicit graph neural network of Gu et al., whose state is a representation, not labels."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn import functional

from lignn.backbones import Dropout, frozen_dropout
from lignn.backbones.layers import Linear, check_sizes, uniform
from lignn.equilibrium import Implicit, Solution, differentiable, solve
from lignn.equilibrium.solvers import Picard, Solver
from lignn.errors import ConfigError, InputError
from lignn.methods.method import Method, Score
from lignn.methods.problem import Prediction, Problem
from lignn.propagation import PerOperator


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """A prediction's solve: of which problem, and with which weights."""

    problem: Problem
    weights: list[Tensor]
    solution: Solution


class Representation(Method):
    """A method that predicts by a linear map, without bias, of the equilibrium of a representation.

    The weights of an epoch's prediction are those that the next epoch starts with, and neither labels nor dropout act
    within the map: on the same problem the training solve is the prediction's, and is not run again.

    Args:
        width: of the representation.
        num_classes: c.
        solver: of the equilibrium, forward and backward.
        normalize: divide each row by its length before the map.
        dropout: probability, before the map.
        generator: draws the weights.
    """

    def __init__(
        self,
        width: int,
        num_classes: int,
        solver: Solver | None,
        normalize: bool,
        dropout: float,
        generator: Generator | None,
    ) -> None:
        super().__init__()
        self.solver = solver or Picard(tol=3e-6, max_steps=300, norm="max")
        self.normalize = normalize
        self.dropout = Dropout(dropout)
        self.output = Linear(width, num_classes, bias=False, generator=generator)
        self.solution: Solution | None = None
        self._trained: Problem | None = None
        self._evaluation: _Evaluation | None = None

    @abstractmethod
    def represent(self, problem: Problem) -> Solution:
        """The equilibrium, differentiable; `solved` may know it already."""

    def solved(self, problem: Problem) -> Solution | None:
        """The last prediction's solve, if it was of this problem and with these weights."""
        evaluation = self._evaluation
        if evaluation is None or evaluation.problem is not problem:
            return None
        same = all(map(torch.equal, self.parameters(), evaluation.weights))
        return replace(evaluation.solution, adjoints=[]) if same else None

    def _probabilities(self, problem: Problem) -> tuple[Tensor, Solution]:
        if problem.x is None:
            raise InputError(f"{type(self).__name__} needs node features, this graph has none")
        solution = self.represent(problem)
        z = functional.normalize(solution.value, dim=1) if self.normalize else solution.value
        return problem.labels.activation(self.output(self.dropout(z))), solution

    def loss(self, problem: Problem, generator: Generator) -> Tensor:
        """Mean cross-entropy over all known nodes; labels are never an input."""
        with frozen_dropout(self, generator):
            probabilities, solution = self._probabilities(problem)
        self.solution = replace(solution, value=solution.value.detach())
        self._trained = problem
        return problem.labels.loss(probabilities, problem.labels.mask)

    def predict(self, problem: Problem) -> Prediction:
        """One forward solve."""
        with torch.no_grad():
            probabilities, solution = self._probabilities(problem)
            if problem is self._trained:
                self._evaluation = _Evaluation(problem, [weight.clone() for weight in self.parameters()], solution)
        return Prediction(probabilities, problem.evidence, problem.labels.multilabel, solution)

    def second_stage(self, problem: Problem, score: Score | None) -> None:  # noqa: ARG002
        """Training is over: nothing will be solved again."""
        self._trained, self._evaluation = None, None

    def account(self) -> dict[str, Any]:
        """Forward and backward solve of the last epoch."""
        if self.solution is None:
            return {}
        backward = self.solution.adjoints[-1].record() if self.solution.adjoints else None
        return {"forward": self.solution.record(), "backward": backward}


class IGNN(Representation):
    """`Z = ReLU(Ã Z W + Ã X Ω)`, output a linear map of the L2-normalised rows of Z.

    Gu et al., "Implicit graph neural networks", NeurIPS 2020; the paper's IGNN*. W is projected before every forward
    pass so that `‖W‖₁ ρ(Ã) ≤ κ < 1`, which makes the equilibrium unique (W on the right here, hence the 1-norm: the
    largest column sum).

    Args:
        num_features: width of X.
        num_classes: c.
        hidden: width of Z.
        kappa: κ.
        dropout: probability, before the output map.
        solver: of the equilibrium, forward and backward.
        generator: draws the weights.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        hidden: int = 64,
        kappa: float = 0.9,
        dropout: float = 0.0,
        solver: Solver | None = None,
        generator: Generator | None = None,
    ) -> None:
        check_sizes(hidden)
        super().__init__(hidden, num_classes, solver, True, dropout, generator)
        if not 0 < kappa < 1:
            raise ConfigError(f"κ lies between 0 and 1, got {kappa}")
        self.kappa = kappa
        self.weight = uniform((hidden, hidden), hidden**-0.5, generator)
        self.omega = uniform((num_features, hidden), hidden**-0.5, generator)
        self._radius: PerOperator[float] = PerOperator()

    def represent(self, problem: Problem) -> Solution:
        """The equilibrium of `Z ↦ ReLU(Ã Z W + Ã X Ω)`, W projected first."""
        adj = problem.adjacency()
        if adj not in self._radius:
            self._radius[adj] = adj.spectral_radius()
        with torch.no_grad():
            self.weight.copy_(project_columns(self.weight, self.kappa / max(self._radius[adj], 1e-12)))
        assert problem.x is not None
        offset = adj @ (problem.x @ self.omega)

        def step(z: Tensor) -> Tensor:
            return torch.addmm(offset, adj @ z, self.weight).relu_()

        known = self.solved(problem)
        solution = known or solve(step, torch.zeros_like(offset), self.solver, throw=False)
        return differentiable(step, solution, self.solver, Implicit(solver=self.solver))


def project_columns(weight: Tensor, radius: float) -> Tensor:
    """The nearest matrix whose columns have absolute sums of at most `radius`.

    Each column is projected onto the l1 ball: all its entries shrink by one threshold (Duchi et al., ICML 2008). A
    column that is outside by rounding alone stays as it is.
    """
    size = weight.abs()
    outside = size.sum(0) > radius * (1 + len(weight) * torch.finfo(weight.dtype).eps)
    if not outside.any():
        return weight
    ordered = size[:, outside].sort(0, descending=True).values
    excess = ordered.cumsum(0) - radius
    count = torch.arange(1, len(weight) + 1, dtype=weight.dtype)[:, None]
    last = ((ordered * count > excess).sum(0) - 1).clamp(min=0)  # of huge entries rounding leaves none
    threshold = (excess / count).gather(0, last[None])
    projected = weight.clone()
    projected[:, outside] = weight[:, outside].sign() * (size[:, outside] - threshold).clamp(min=0)
    return projected
