"""The map `Ŷ ↦ step((I - M_t) Ŷ + M_t Y)` of a label-inputted method on a problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import torch
from torch import Tensor

from lignn.equilibrium import Map, solve
from lignn.equilibrium.solvers import Solver
from lignn.labels import KnownLabels
from lignn.methods.bound import BoundMethod, LabelWeight, Prediction

if TYPE_CHECKING:
    from lignn.methods.label_inputted import LabelInputted


@dataclass(frozen=True, eq=False)
class BoundLabelInputted(BoundMethod):
    """A step that is fed the known labels and its own predictions."""

    method: LabelInputted

    takes_labels: ClassVar[bool] = True
    label_free: ClassVar[tuple[str, ...]] = ("step",)

    @cached_property
    def step(self) -> Map:
        """The step, with everything that does not depend on the state computed once."""
        with torch.no_grad():
            return self.method.step.bind(self.problem)

    @property
    def map(self) -> Map:
        """`Ŷ ↦ step((I - M_t) Ŷ + M_t Y)`."""
        return lambda state: self.step(self.problem.labels.clamp(state))

    @property
    def iterates(self) -> bool:
        """Whether the solver has a tolerance to reach."""
        return self.method.inference.tol > 0

    @property
    def linear(self) -> bool:  # type: ignore[override]
        """Whether the step is affine."""
        return self.method.step.linear

    @property
    def keeps_start(self) -> bool:
        """Whether the step leaves part of the start unchanged on this problem."""
        return self.method.step.keeps_start(self.problem)

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
        with torch.no_grad():
            return self.map(torch.zeros_like(self.problem.labels.onehot))

    def solve(self, start: Tensor | None = None, solver: Solver | None = None) -> Prediction:
        """Solve with all known labels clamped."""
        labels = self.problem.labels
        start = torch.zeros_like(labels.onehot) if start is None else start
        with torch.no_grad():
            solution = solve(self.map, start, solver or self.method.inference, throw=False)
            return Prediction(self, self.method.step.probabilities(solution.value, labels.multilabel), solution)
