"""What is promised about the equilibrium of a label-inputted method, and how training keeps the promise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import Tensor

from lignn.backbones.registry import names_with
from lignn.errors import ConfigError
from lignn.methods.method import Method
from lignn.methods.problem import Prediction, Problem
from lignn.methods.starts import measure

if TYPE_CHECKING:
    from lignn.methods.steps import Step

ContractionKind = Literal["free", "proved", "measured"]

_KAPPA: dict[str, float | None] = {"free": None, "proved": 0.95, "measured": 3.0}
"""Bound κ of the map's Lipschitz constant after every update."""

_TIGHTER = (1.5, 0.95)
"""Values of κ that a measured contraction falls back to; the last one is a proof, so that the fallback ends."""


@dataclass(frozen=True)
class Contraction:
    """The promise about the equilibrium of predictions.

    * free: none.
    * proved: there is one equilibrium, whatever labels are known. After every update, the weights of the state are
        scaled so that a bound of the map's Lipschitz constant is at most κ < 1.
    * measured: nothing was found that speaks against one equilibrium: K̂ < 1 over at least 100 steps, and solves from
        several starts agree, or there is a proof. κ may be above 1; where no trained epoch has what is promised,
        training starts again with a smaller κ.

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
            bounded = ", ".join(names_with("bounded"))
            raise ConfigError(
                f"contraction {self.kind!r} needs a network with a bound, which {bounded} have unless norm='layer'; "
                "give 'free'"
            )
        if bound > self.kappa:
            step.scale_labels(self.kappa / bound)

    def admits(self, prediction: Prediction) -> bool:
        """Return whether nothing speaks against the promise; only a measured contraction has to be asked for."""
        if self.kind != "measured" or (prediction.bound.lipschitz or 1.0) < 1:
            return True
        starts = measure(prediction)
        return starts is None or starts.agree

    @property
    def smaller_kappa(self) -> float | None:
        """The next smaller κ that a measured contraction falls back to; None if there is none."""
        if self.kind != "measured" or self.kappa is None:
            return None
        return next((kappa for kappa in _TIGHTER if kappa < self.kappa), None)


FREE = Contraction("free", None)


class Promising(Method):
    """A method that promises something about the equilibrium of its predictions.

    Args:
        step: what one propagation computes.
        contraction: the promise.
    """

    kappa: Tensor
    """κ of a measured contraction, saved with the weights since training may choose it; others have no such tensor."""

    def __init__(self, step: Step, contraction: Contraction) -> None:
        super().__init__()
        self.step = step
        self._promised = contraction
        if contraction.kind == "measured":
            self.register_buffer("kappa", torch.tensor(contraction.kappa))

    @property
    def contraction(self) -> Contraction:
        """The promise, with the present κ."""
        measured = self._promised.kind == "measured"
        return replace(self._promised, kappa=self.kappa.item()) if measured else self._promised

    def project(self, problem: Problem) -> None:
        """Keep the promise after an update."""
        self.contraction.project(self.step, problem)

    def admits(self, prediction: Prediction) -> bool:
        """Return whether a prediction has what was promised."""
        return self.contraction.admits(prediction)

    def tighten(self) -> bool:
        """Take the next smaller κ of a measured contraction."""
        kappa = self.contraction.smaller_kappa
        if kappa is not None:
            self.kappa.fill_(kappa)
        return kappa is not None

    def adopt_choices(self, other: Method) -> None:
        """Take over the κ of a measured contraction."""
        if isinstance(other, Promising) and other.contraction.kind == self.contraction.kind == "measured":
            self.kappa.copy_(other.kappa)
