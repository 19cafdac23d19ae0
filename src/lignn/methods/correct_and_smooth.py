"""Correct and Smooth: label propagation after any trained method."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, islice
from typing import ClassVar, Self

import torch
from torch import Generator, Tensor

from lignn.equilibrium import Map
from lignn.equilibrium.solvers import Solver
from lignn.errors import ConfigError
from lignn.labels import KnownLabels
from lignn.methods.method import Carry, Epoch, Method
from lignn.methods.problem import BoundMethod, Prediction, Problem, Score
from lignn.methods.steps import as_probabilities
from lignn.propagation import Adjacency

_NOT_CHOSEN = (-1, -1)


def correct(lazy: Adjacency, labels: KnownLabels, base: Tensor) -> Map:
    """Return a step of Correct on pseudo-labels: `Ŷ ↦ A_λ clamp(Ŷ) + (I - A_λ) Ŷ_0`, from `Ŷ = Ŷ_0`.

    This is the same as propagating the residuals, `E ↦ A_λ ((I - M_t) E + M_t (Y - Ŷ_0))` from 0, and `Ŷ = Ŷ_0 + E`.
    """
    offset = base - lazy @ base
    return lambda state: (lazy @ labels.clamp(state)).add_(offset)


def smooth(lazy: Adjacency, labels: KnownLabels) -> Map:
    """Return a step of Smooth: `Ŷ ↦ A_λ clamp(Ŷ)`."""
    return lambda state: lazy @ labels.clamp(state)


def iterate(step: Map, start: Tensor, steps: int) -> Iterator[Tensor]:
    """Yield the start and the result of every step."""
    return accumulate(range(steps), lambda state, _: step(state), initial=start)


class CorrectAndSmooth(Method):
    """A base prediction whose errors on known nodes are propagated (Correct), and which is itself propagated (Smooth).

    Huang et al., "Combining label propagation and simple models out-performs graph neural networks", ICLR 2021. Known
    rows are reset to their true residual (label) before every step. Of all intermediate results of a phase, including
    its start, the one with the best validation score is used.

    Args:
        base: any method; it is trained as it would be without Correct and Smooth.
        lambda_c: λ of Correct.
        lambda_s: λ of Smooth.
        steps: number of propagations in each phase; `BoundMethod.choose` may choose fewer.
        accumulating: add up the errors estimated at all steps instead of using the last estimate, as in the runs
            behind the paper's figures.
        type_weights: factors of the weights of edges by the name of their type, in both phases; types that are not
            named keep their weights.

    Attributes:
        chosen: how many steps of Correct and of Smooth to take; None before `BoundMethod.choose`.
    """

    def __init__(
        self,
        base: Method,
        lambda_c: float = 0.5,
        lambda_s: float = 0.5,
        steps: int = 50,
        accumulating: bool = False,
        type_weights: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__()
        if not (0 < lambda_c <= 1 and 0 < lambda_s <= 1 and steps >= 0):
            raise ConfigError(f"λ must be above 0 and at most 1, steps ≥ 0: got {lambda_c}, {lambda_s} and {steps}")
        self.base = base
        self.lambda_c = lambda_c
        self.lambda_s = lambda_s
        self.steps = steps
        self.accumulating = accumulating
        self.type_weights = type_weights
        self.chosen: tuple[int, int] | None = None

    def get_extra_state(self) -> Tensor:
        """Return the chosen numbers of steps, as a part of the `state_dict`."""
        return torch.tensor(self.chosen or _NOT_CHOSEN)

    def set_extra_state(self, state: Tensor) -> None:
        """Restore what `get_extra_state` returned."""
        corrections, smoothings = state.tolist()
        self.chosen = None if corrections < 0 else (corrections, smoothings)

    def on(self, problem: Problem) -> BoundCorrectAndSmooth:
        """Bind the method to a problem."""
        return BoundCorrectAndSmooth(self, problem)

    def learn(self, problem: Problem) -> bool:
        """Fit the base method."""
        return self.base.learn(problem)

    def epoch(self, problem: Problem, generator: Generator, carry: Carry | None = None) -> Epoch:
        """Run an epoch of the base method."""
        return self.base.epoch(problem, generator, carry)

    def teacher(self, problem: Problem) -> BoundMethod | None:
        """Return that of the base method, which is trained as it would be without Correct and Smooth."""
        return self.base.teacher(problem)

    def project(self, problem: Problem) -> None:
        """Keep what the base method promises."""
        self.base.project(problem)

    def passed_on(self, epoch: Epoch) -> Carry:
        """Return what the base method passes on."""
        return self.base.passed_on(epoch)

    def evaluate(self, problem: Problem, epoch: Epoch) -> tuple[Prediction, Carry]:
        """Evaluate the base method, then correct and smooth."""
        prediction, carry = self.base.evaluate(problem, epoch)
        return self.after(prediction, self.on(problem)), carry

    def adopt_choices(self, other: Method) -> None:
        """Take over the numbers of steps, and the choices of the base method."""
        if isinstance(other, CorrectAndSmooth):
            self.base.adopt_choices(other.base)
            self.chosen = other.chosen

    def after(self, base: Prediction, bound: BoundCorrectAndSmooth) -> Prediction:
        """Correct and smooth a base prediction by the chosen numbers of steps."""
        if self.chosen is None:
            return replace(base, bound=bound)
        problem, (corrections, smoothings) = bound.problem, self.chosen
        start = next(islice(self.corrections(problem, base.probabilities), corrections, None))
        scores = next(islice(self.smoothings(problem, start), smoothings, None))
        return replace(base, bound=bound, probabilities=as_probabilities(scores, problem.labels.multilabel))

    def corrections(self, problem: Problem, base: Tensor) -> Iterator[Tensor]:
        """Yield the states of Correct, beginning with the base prediction."""
        lazy = problem.lazy(self.lambda_c, self.type_weights)
        states = iterate(correct(lazy, problem.labels, base), base, self.steps)
        return accumulate(states, lambda total, state: total + state - base) if self.accumulating else states

    def smoothings(self, problem: Problem, start: Tensor) -> Iterator[Tensor]:
        """Yield the states of Smooth, beginning with its start."""
        return iterate(smooth(problem.lazy(self.lambda_s, self.type_weights), problem.labels), start, self.steps)


@dataclass(frozen=True, eq=False)
class BoundCorrectAndSmooth(BoundMethod):
    """The bound base method, followed by a fixed number of propagations of the known labels."""

    method: CorrectAndSmooth

    takes_labels: ClassVar[bool] = True

    @cached_property
    def base(self) -> BoundMethod:
        """The base method on the same problem."""
        return self.method.base.on(self.problem)

    @property
    def idle(self) -> bool:
        """Whether no step of either phase is taken."""
        return self.method.chosen in (None, (0, 0))

    def with_labels(self, labels: KnownLabels) -> Self:
        """Bind the method to other known labels; the base method does not process the features again."""
        other = super().with_labels(labels)
        vars(other)["base"] = self.base.with_labels(labels)
        return other

    def choose(self, score: Score) -> None:
        """Choose how many steps of each phase to take, by validation score."""
        self.base.choose(score)
        start, labels = self.base.solve(), self.problem.labels

        def best(states: Iterator[Tensor]) -> tuple[int, Tensor]:
            top, found = -math.inf, (0, start.probabilities)
            for count, state in enumerate(states):
                value = score(replace(start, probabilities=as_probabilities(state, labels.multilabel)))
                if value > top:
                    top, found = value, (count, state)
            return found

        with torch.no_grad():
            corrections, corrected = best(self.method.corrections(self.problem, start.probabilities))
            smoothings, _ = best(self.method.smoothings(self.problem, corrected))
        self.method.chosen = corrections, smoothings

    def solve(self, start: Tensor | None = None, solver: Solver | None = None) -> Prediction:  # noqa: ARG002
        """Return the base prediction, corrected and smoothed."""
        with torch.no_grad():
            return self.method.after(self.base.solve(), self)
