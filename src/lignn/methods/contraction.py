"""What is promised about the equilibrium of a label-inputted method, and how training keeps the promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from lignn.backbones.registry import names_with
from lignn.declarations import NO_MEASURED
from lignn.errors import ConfigError, unknown

if TYPE_CHECKING:
    from lignn.methods.problem import Problem
    from lignn.methods.steps import Step

ContractionKind = Literal["free", "proved"]

_KAPPA: dict[str, float | None] = {"free": None, "proved": 0.95}
"""Bound κ of the map's Lipschitz constant after every update."""


@dataclass(frozen=True)
class Contraction:
    """The promise about the equilibrium of predictions.

    * free: none.
    * proved: there is one equilibrium, whatever labels are known. After every update, the weights of the state are
        scaled so that a bound of the map's Lipschitz constant is at most κ < 1.

    Attributes:
        kind: the promise.
        kappa: κ; None does not scale the weights.
    """

    kind: ContractionKind
    kappa: float | None

    @classmethod
    def of(cls, kind: ContractionKind, kappa: float | None = None) -> Contraction:
        """Check a promise; None for κ is the value that goes with it."""
        if kind == "measured":
            raise ConfigError(NO_MEASURED)
        if kind not in get_args(ContractionKind):
            raise unknown("contraction", kind, get_args(ContractionKind))
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
            bounded = ", ".join(names_with("bounded"))
            raise ConfigError(
                f"contraction {self.kind!r} needs a network with a bound, which {bounded} have unless norm='layer'; "
                "give 'free'"
            )
        if bound > self.kappa:
            step.scale_labels(self.kappa / bound)


FREE = Contraction("free", None)
