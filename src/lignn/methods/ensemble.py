"""Several methods as one: the weighted mean of their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import torch
from torch import Generator, Tensor, nn

from lignn.equilibrium import Map
from lignn.equilibrium.solvers import Solver
from lignn.errors import ConfigError
from lignn.labels import KnownLabels, at_temperature
from lignn.methods.method import Carry, Epoch, Method
from lignn.methods.problem import BoundMethod, LabelWeight, Prediction, Problem, Score


class Ensemble(Method):
    """`Ŷ = Σ_k w_k Ŷ_k(T_k)`: probabilities of the members at their temperatures, `Σ w_k = 1`.

    Trained together, the loss is the sum of the members' losses: each member gets the gradient that it has alone.

    Args:
        members: the methods.
        weights: one positive number per member, by default all alike; they are divided by their sum.
        temperatures: one per member, by default 1.
    """

    def __init__(
        self,
        members: Sequence[Method],
        weights: Sequence[float] | None = None,
        temperatures: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        given = [1.0] * len(members) if weights is None else [float(weight) for weight in weights]
        heat = [1.0] * len(members) if temperatures is None else [float(each) for each in temperatures]
        if not members or len(given) != len(members) or len(heat) != len(members) or min(given + heat) <= 0:
            raise ConfigError(
                f"ensemble: a positive weight and temperature is needed for each of {len(members)} members, "
                f"got {given} and {heat}"
            )
        self.members = nn.ModuleList(members)
        self.weights = [weight / sum(given) for weight in given]
        self.temperatures = heat

    def on(self, problem: Problem) -> BoundEnsemble:
        """Bind all members to a problem."""
        return BoundEnsemble(self, problem)

    def learn(self, problem: Problem) -> bool:
        """Fit the members that need no epochs."""
        learned = [member.learn(problem) for member in self._methods]
        return any(learned)

    def epoch(self, problem: Problem, generator: Generator, carry: Carry | None = None) -> Epoch:
        """Compute the sum of the losses of all members that are trained."""
        trained = [member for member in self._methods if any(True for _ in member.parameters())]
        losses = [member.epoch(problem, generator).loss for member in trained]
        return Epoch(torch.stack(losses).sum(), problem, carry or Carry())

    def project(self, problem: Problem) -> None:
        """Keep what the members promise."""
        for member in self._methods:
            member.project(problem)

    def adopt_choices(self, other: Method) -> None:
        """Take over the choices of the members."""
        if isinstance(other, Ensemble):
            for mine, theirs in zip(self._methods, other._methods, strict=True):
                mine.adopt_choices(theirs)

    @property
    def _methods(self) -> list[Method]:
        return list(self.members)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class BoundEnsemble(BoundMethod):
    """Bound members. Map, solver and solution are those of the heaviest member that takes labels as an equilibrium.

    This member, if there is one, is what a certificate and an explanation are about.
    """

    method: Ensemble

    @cached_property
    def members(self) -> tuple[BoundMethod, ...]:
        """The members on the same problem."""
        return tuple(member.on(self.problem) for member in self.method._methods)

    @cached_property
    def leader(self) -> int | None:
        """The place of the heaviest member with a map, the first of equal ones; None if no member has one."""
        weights = {place: self.method.weights[place] for place, one in enumerate(self.members) if one.map is not None}
        return max(weights, key=lambda place: weights[place], default=None)

    @property
    def takes_labels(self) -> bool:  # type: ignore[override]
        """Whether known labels are an input of any member."""
        return any(member.takes_labels for member in self.members)

    @property
    def linear(self) -> bool:  # type: ignore[override]
        """Whether the map is affine in the state."""
        return self._led is not None and self._led.linear

    @property
    def proof(self) -> str | None:  # type: ignore[override]
        """Why the equilibrium of the map is unique."""
        return None if self._led is None else self._led.proof

    @property
    def map(self) -> Map | None:
        """The map of the leading member."""
        return None if self._led is None else self._led.map

    @property
    def solver(self) -> Solver | None:
        """The solver of the leading member."""
        return None if self._led is None else self._led.solver

    @property
    def iterates(self) -> bool:
        """Whether the prediction of the leading member is an equilibrium."""
        return self._led is not None and self._led.iterates

    @property
    def keeps_start(self) -> bool:
        """Whether part of the start is known to stay in the solution."""
        return self._led is not None and self._led.keeps_start

    @property
    def label_weight(self) -> LabelWeight | None:
        """The weight of the leading member that Theorem 1 bounds."""
        return None if self._led is None else self._led.label_weight

    @property
    def _led(self) -> BoundMethod | None:
        return None if self.leader is None else self.members[self.leader]

    def with_labels(self, labels: KnownLabels) -> Self:
        """Bind the members to other known labels."""
        other = replace(self, problem=self.problem.knowing(labels))
        vars(other)["members"] = tuple(member.with_labels(labels) for member in self.members)
        return other

    def choose(self, score: Score) -> None:
        """Let every member choose by its own validation score."""
        for member in self.members:
            member.choose(score)

    def solve(self, start: Tensor | None = None, solver: Solver | None = None) -> Prediction:
        """Return the mean of the members' probabilities; `start` and `solver` are for the leading member."""
        mean, solution = torch.zeros_like(self.problem.labels.onehot), None
        for place, member in enumerate(self.members):
            found = member.solve(start, solver) if place == self.leader else member.solve()
            solution = found.solution if place == self.leader else solution
            heat, several = self.method.temperatures[place], self.problem.labels.multilabel
            mean += self.method.weights[place] * at_temperature(found.probabilities, heat, several)
        return Prediction(self, mean, solution)
