"""Correct and Smooth: label propagation behind any trained method."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, islice
from typing import Any

from torch import Generator, Tensor

from lignn.equilibrium import Map
from lignn.errors import ConfigError
from lignn.labels import KnownLabels
from lignn.methods.method import Method, Score
from lignn.methods.problem import Prediction, Problem
from lignn.methods.steps import as_probabilities
from lignn.propagation import Adjacency


def correct(lazy: Adjacency, labels: KnownLabels, base: Tensor) -> Map:
    """A step of Correct as an equilibrium of pseudo-labels: `Ŷ ↦ A_λ clamp(Ŷ) + (I - A_λ) Ŷ_0`, from `Ŷ = Ŷ_0`.

    The same as propagating the residuals, `E ↦ A_λ ((I - M_t) E + M_t (Y - Ŷ_0))` from 0, and `Ŷ = Ŷ_0 + E`.
    """
    offset = base - lazy @ base
    return lambda state: (lazy @ labels.clamp(state)).add_(offset)


def smooth(lazy: Adjacency, labels: KnownLabels) -> Map:
    """A step of Smooth: `Ŷ ↦ A_λ clamp(Ŷ)`."""
    return lambda state: lazy @ labels.clamp(state)


def iterate(step: Map, start: Tensor, steps: int) -> Iterator[Tensor]:
    """The start and the results of all steps."""
    return accumulate(range(steps), lambda state, _: step(state), initial=start)


class CorrectAndSmooth(Method):
    """A base prediction whose errors on known nodes are propagated (Correct), and which is itself propagated (Smooth).

    Huang et al., "Combining label propagation and simple models out-performs graph neural networks", ICLR 2021. Known
    rows are reset to their true residual (label) before every step. Of all intermediate results of a phase, the start
    included, the one with the best validation score goes on.

    Args:
        base: any method; it is trained as if alone.
        lambda_c: λ of Correct.
        lambda_s: λ of Smooth.
        steps: propagations in each phase.
        accumulating: add up the errors estimated at all steps, not the last estimate alone: a quirk of the runs behind
            the paper's figures.
    """

    def __init__(
        self, base: Method, lambda_c: float = 0.5, lambda_s: float = 0.5, steps: int = 50, accumulating: bool = False
    ) -> None:
        super().__init__()
        if not (0 < lambda_c <= 1 and 0 < lambda_s <= 1 and steps >= 0):
            raise ConfigError(f"λ lies above 0 and is at most 1, steps ≥ 0: got {lambda_c}, {lambda_s} and {steps}")
        self.base = base
        self.lambda_c = lambda_c
        self.lambda_s = lambda_s
        self.steps = steps
        self.accumulating = accumulating
        self.chosen: tuple[int, int] | None = None

    def loss(self, problem: Problem, generator: Generator) -> Tensor:
        """The base method's."""
        return self.base.loss(problem, generator)

    def after_update(self) -> None:
        """The base method's."""
        self.base.after_update()

    def account(self) -> dict[str, Any]:
        """The base method's."""
        return self.base.account()

    def extra_state(self) -> dict[str, Any]:
        """The base method's, and the chosen steps."""
        return {"base": self.base.extra_state(), "chosen": self.chosen}

    def load_extra_state(self, state: dict[str, Any]) -> None:
        """Take up what `extra_state` gave."""
        self.base.load_extra_state(state.get("base", {}))
        self.chosen = None if state["chosen"] is None else (state["chosen"][0], state["chosen"][1])

    def second_stage(self, problem: Problem, score: Score | None) -> None:
        """Choose how many steps of each phase to take, by validation score; without one the choice stays."""
        self.base.second_stage(problem, score)
        if score is None:
            return
        start = self.base.predict(problem)
        multilabel = problem.labels.multilabel

        def best(states: Iterator[Tensor]) -> tuple[int, Tensor]:
            top, found = -math.inf, (0, start.probabilities)
            for count, state in enumerate(states):
                value = score(replace(start, probabilities=as_probabilities(state, multilabel)))
                if value > top:
                    top, found = value, (count, state)
            return found

        corrections, corrected = best(self._corrections(problem, start.probabilities))
        smoothings, _ = best(self._smoothings(problem, corrected))
        self.chosen = (corrections, smoothings)

    def predict(self, problem: Problem) -> Prediction:
        """The base prediction, corrected and smoothed by as many steps as the second stage chose."""
        base = self.base.predict(problem)
        if self.chosen is None:
            return base
        corrections, smoothings = self.chosen
        corrected = next(islice(self._corrections(problem, base.probabilities), corrections, None))
        smoothed = next(islice(self._smoothings(problem, corrected), smoothings, None))
        return replace(base, probabilities=as_probabilities(smoothed, problem.labels.multilabel))

    def _corrections(self, problem: Problem, base: Tensor) -> Iterator[Tensor]:
        states = iterate(correct(problem.lazy(self.lambda_c), problem.labels, base), base, self.steps)
        return accumulate(states, lambda total, state: total + state - base) if self.accumulating else states

    def _smoothings(self, problem: Problem, start: Tensor) -> Iterator[Tensor]:
        return iterate(smooth(problem.lazy(self.lambda_s), problem.labels), start, self.steps)
