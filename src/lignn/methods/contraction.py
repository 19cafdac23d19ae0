"""What is promised about the equilibrium of a label-inputted method, and how training keeps the promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from lignn.errors import ConfigError
from lignn.methods.problem import BoundMethod, Prediction, Problem
from lignn.methods.starts import measure

if TYPE_CHECKING:
    from lignn.methods.steps import Step

ContractionKind = Literal["free", "proved", "measured"]

CAPPED = "which gcn, sage, sgc, mlp, jknet, gcnii and rgcn have"

_KAPPA: dict[str, float | None] = {"free": None, "proved": 0.95, "measured": 3.0}
"""Bound κ of the map's Lipschitz constant after every update."""

_SETTLING, _MOST_SETTLING = 0.8, 40
"""Factor of the weights of the state while a measured contraction is not there, and how often it is applied."""


@dataclass(frozen=True)
class Contraction:
    """The promise about the equilibrium of predictions.

    * free: none.
    * proved: there is one equilibrium, whatever labels are known. After every update, the weights of the state are
        scaled so that a bound of the map's Lipschitz constant is at most κ < 1.
    * measured: nothing was found that speaks against one equilibrium: K̂ < 1 over at least 100 steps, and solves from
        several starts agree. κ may be above 1.

    Attributes:
        kind: the promise.
        kappa: κ; None does not scale the weights.
    """

    kind: ContractionKind
    kappa: float | None

    @classmethod
    def of(cls, kind: ContractionKind, kappa: float | None = None) -> Contraction:
        """Check a promise; None for κ is the value that goes with it."""
        if kind not in get_args(ContractionKind):
            raise ConfigError(f"contraction {kind!r} is unknown; choose from {', '.join(get_args(ContractionKind))}")
        kappa = _KAPPA[kind] if kappa is None else kappa
        if kappa is not None and not kappa > 0:
            raise ConfigError(f"kappa: a positive number is needed, got {kappa}")
        if kind == "proved" and kappa is not None and kappa >= 1:
            raise ConfigError(f"kappa: contraction 'proved' needs a number below 1, got {kappa}")
        return cls(kind, kappa)

    def project(self, step: Step, problem: Problem) -> None:
        """Scale the weights of the state down if the bound of the map's Lipschitz constant is above κ."""
        if self.kappa is None:
            return
        bound = step.lipschitz(problem)
        if bound is None:
            raise ConfigError(f"contraction {self.kind!r} needs a network with a bound, {CAPPED}; give 'free'")
        if bound > self.kappa:
            step.scale_labels(self.kappa / bound)

    def admits(self, prediction: Prediction) -> bool:
        """Return whether nothing speaks against the promise; only a measured contraction has to be asked for."""
        starts = measure(prediction) if self.kind == "measured" else None
        return starts is None or starts.agree

    def settle(self, step: Step, bind: Callable[[], BoundMethod]) -> None:
        """Scale the weights of the state down until a measured contraction is there; in the end it is a proved one.

        Args:
            step: has the weights.
            bind: returns the method as it is then, bound to its problem.
        """
        if self.kind != "measured":
            return
        for _ in range(_MOST_SETTLING):
            bound = bind()
            if (bound.lipschitz or 1.0) < 1 or self.admits(bound.solve()):
                return
            step.scale_labels(_SETTLING)


FREE = Contraction("free", None)
