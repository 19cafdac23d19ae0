"""A trained method at work on one graph: what is known, and the equilibrium that it makes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from lignn.equilibrium import Map, Solution, solve
from lignn.errors import ConvergenceWarning
from lignn.labels import KnownLabels
from lignn.methods import LabelInputted, Method, Problem, PropagationStep, Step


@dataclass(frozen=True, eq=False)
class Live:
    """The prediction of a method on a problem, ready to be made again when labels change.

    Attributes:
        method: trained; its weights do not change any more.
        problem: the graph and what is known of it.
        probabilities: predicted, n×c, not calibrated.
        solution: the account of the solve, for methods that have one.
    """

    method: Method
    problem: Problem
    probabilities: Tensor
    solution: Solution | None

    @classmethod
    def of(cls, method: Method, problem: Problem, start: Tensor | None = None) -> Live:
        """Predict from scratch; a solve starts from `start`, or from zero."""
        method.eval()
        if not isinstance(method, LabelInputted):
            prediction = method.predict(problem)
            return cls(method, problem, prediction.probabilities, prediction.solution)
        with torch.no_grad():
            step = method.step.bind(problem)
        return cls._solved(method, problem, step, start)

    @classmethod
    def _solved(cls, method: LabelInputted, problem: Problem, step: Map, start: Tensor | None) -> Live:
        labels = problem.labels
        start = torch.zeros_like(labels.onehot) if start is None else start
        with torch.no_grad():
            solution = solve(lambda state: step(labels.clamp(state)), start, method.inference, throw=False)
            probabilities = method.step.probabilities(solution.value, labels.multilabel)
        live = cls(method, problem, probabilities, solution)
        live.__dict__["step"] = step
        return live

    @cached_property
    def step(self) -> Map:
        """The method's step with all that depends on features alone computed once; label-inputted methods have one."""
        assert isinstance(self.method, LabelInputted)
        with torch.no_grad():
            return self.method.step.bind(self.problem)

    @property
    def iterates(self) -> bool:
        """Whether the prediction is an equilibrium, not a fixed number of passes: only then any start will do."""
        return isinstance(self.method, LabelInputted) and self.method.inference.tol > 0

    @cached_property
    def labels(self) -> Tensor:
        """Class numbers (n), or 0/1 rows (n×c) for multi-label tasks."""
        if self.problem.labels.multilabel:
            return (self.probabilities > 0.5).to(torch.int8)
        return self.probabilities.argmax(1)

    def with_labels(self, labels: KnownLabels, start: Tensor | None = None) -> Live:
        """The same with other known labels: features are not looked at again."""
        problem = self.problem.knowing(labels)
        if not isinstance(self.method, LabelInputted) or _looks_at_labels(self.method.step):
            return Live.of(self.method, problem, start)
        return self._solved(self.method, problem, self.step, start)

    def warn_if_unsolved(self) -> None:
        """Say so if the solve did not reach what was asked for; to be called by what the user calls."""
        if self.solution is not None and not self.solution.ok:
            warnings.warn(self.solution.message, ConvergenceWarning, stacklevel=3)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "step"}  # a closure; made again


def _looks_at_labels(step: Step) -> bool:
    """Whether more than a step's input depends on the labels: residuals are added only where some label arrives."""
    return isinstance(step, PropagationStep) and step.residual is not None
