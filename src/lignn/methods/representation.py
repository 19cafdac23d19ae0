"""Methods whose equilibrium is a representation of the nodes, not their labels."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Generator, Tensor
from torch.nn import functional

from lignn.backbones import Dropout, frozen_dropout
from lignn.backbones.layers import Linear
from lignn.equilibrium import Solution
from lignn.equilibrium.solvers import Picard, Solver
from lignn.errors import InputError
from lignn.methods.method import Carry, Epoch, Evaluation, Method
from lignn.methods.problem import BoundMethod, Prediction, Problem


class Representation(Method):
    """A method that predicts with a linear map, without bias, of the equilibrium of a representation.

    Between a prediction and the training solve of the next epoch the weights do not change, and the map contains
    neither labels nor dropout. On the same problem the two solves are therefore the same, and the second is not run.

    Args:
        width: width of the representation.
        num_classes: c.
        solver: solver of the equilibrium, forward and backward.
        normalize: divide each row by its length before the linear map.
        dropout: dropout probability, before the linear map.
        generator: draws the weights.
    """

    proof: ClassVar[str]
    """Why the equilibrium is unique."""

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

    @abstractmethod
    def represent(self, problem: Problem, known: Solution | None = None) -> Solution:
        """Return the differentiable equilibrium; `known` is the solution if it has been found already."""

    def prepare(self, problem: Problem) -> None:
        """Change the weights so that the map contracts on this problem; called before every solve."""

    def on(self, problem: Problem) -> BoundRepresentation:
        """Bind the method to a problem."""
        return BoundRepresentation(self, problem)

    def epoch(self, problem: Problem, generator: Generator, carry: Carry | None = None) -> Epoch:
        """Compute the mean cross-entropy over all known nodes; labels are never an input."""
        carry = carry or Carry()
        self.prepare(problem)
        labels = problem.labels
        nodes = labels.mask.nonzero().flatten().to(labels.onehot.device)
        with frozen_dropout(self, generator):
            rows, solution = self.probabilities(problem, self._known(carry, problem), nodes)
        loss = labels.loss(rows.new_zeros(labels.onehot.shape).index_copy(0, nodes, rows), labels.mask)
        return Epoch(loss, problem, carry, replace(solution, value=solution.value.detach()))

    def evaluate(self, problem: Problem, epoch: Epoch) -> tuple[Prediction, Carry]:
        """Solve; the carry has the solution if the next epoch is on the same problem."""
        prediction = self.on(problem).solve()
        if problem is not epoch.problem or prediction.solution is None:
            return prediction, Carry()
        weights = tuple(weight.detach().clone() for weight in self.parameters())
        return prediction, Carry(evaluation=Evaluation(problem, prediction.solution, weights))

    def _known(self, carry: Carry, problem: Problem) -> Solution | None:
        """Return the solution of the last evaluation if it was of this problem and with these weights."""
        last = carry.evaluation
        if last is None or last.problem is not problem or len(last.mark) == 0:
            return None
        return replace(last.solution, adjoints=[]) if all(map(torch.equal, self.parameters(), last.mark)) else None

    def probabilities(
        self, problem: Problem, known: Solution | None = None, nodes: Tensor | None = None
    ) -> tuple[Tensor, Solution]:
        """Return the output, of all nodes or of `nodes` only, and the solve behind it."""
        if problem.x is None:
            raise InputError(f"{type(self).__name__} needs node features, this graph has none")
        solution = self.represent(problem, known)
        z, kept = solution.value, self.dropout.mask(solution.value.shape, solution.value)
        if nodes is not None:
            z, kept = z[nodes], None if kept is None else kept[nodes]
        z = functional.normalize(z, dim=1) if self.normalize else z
        return problem.labels.activation(self.output(z if kept is None else z * kept)), solution


@dataclass(frozen=True, eq=False)
class BoundRepresentation(BoundMethod):
    """A bound representation. Its prediction is one forward solve and does not depend on labels."""

    method: Representation

    label_free: ClassVar[tuple[str, ...]] = ("solved",)

    @property
    def proof(self) -> str:  # type: ignore[override]
        """Why the equilibrium is unique."""
        return self.method.proof

    @property
    def iterates(self) -> bool:
        """True: every prediction is an equilibrium."""
        return True

    @cached_property
    def solved(self) -> tuple[Tensor, Solution]:
        """Probabilities and the solve behind them."""
        with torch.no_grad():
            self.method.prepare(self.problem)
            return self.method.probabilities(self.problem)

    def solve(self, start: Tensor | None = None, solver: Solver | None = None) -> Prediction:  # noqa: ARG002
        """Solve for the representation with the method's own solver, and map it to probabilities."""
        return Prediction(self, *self.solved)
