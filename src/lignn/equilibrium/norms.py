"""How large a step's change is: a norm is a function of a `Change`, and the usual ones also have names."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from lignn.equilibrium.space import WHOLE, Space
from lignn.options import named


class Change:
    """The change of the state in one step.

    Attributes:
        delta: `f(z) - z`.
        value: `f(z)`.
        space: the reductions over the state.
        length: Frobenius norm of `f(z) - z`.
    """

    def __init__(self, delta: Tensor, value: Tensor, space: Space = WHOLE) -> None:
        self.delta = delta
        self.value = value
        self.space = space
        self.length = space.norm(delta)
        self._value_length: float | None = None

    @property
    def value_length(self) -> float:
        """Frobenius norm of `f(z)`, computed when it is first needed."""
        # Not a `cached_property`: in Python 3.11 its lock would block threads whose reductions wait for each other.
        if self._value_length is None:
            self._value_length = self.space.norm(self.value)
        return self._value_length


Norm = Callable[[Change], float]
"""A function that returns the size of a change, which a solver compares with its tolerance."""


def rms(change: Change) -> float:
    """Return the root mean square of the entries of the change."""
    return change.length / math.sqrt(max(change.space.entries(change.delta), 1))


def largest(change: Change) -> float:
    """Return the largest absolute entry of the change."""
    return change.space.largest(change.delta)


def relative(change: Change) -> float:
    """Return the Frobenius norm of the change divided by that of `f(z)`."""
    return change.length / max(change.value_length, torch.finfo(change.value.dtype).tiny)


NORMS: dict[str, Norm] = {"rms": rms, "max": largest, "relative": relative}
"""Norms that a solver accepts by name; add your own."""


def resolve(norm: str | Norm) -> Norm:
    """Return the norm itself, given the norm or its name.

    Raises:
        ConfigError: if the name is unknown.
    """
    return norm if callable(norm) else named("norm", norm, NORMS)
