"""What a solve measures: the change of the state in one step, its size, and the reductions that compute it.

A `Space` says who holds the entries of the state. If one process holds them all, use `WHOLE`, the default everywhere.
If the rows are spread over processes, each process runs the same solve on its own rows, with a `Space` whose reductions
run over all processes. Every process then sees the same numbers, takes the same decisions and stops at the same step.

A norm is a function of a `Change`; the usual norms also have names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lignn.errors import unknown
from lignn.processes import Processes


class Space:
    """The reductions that solvers need, for a state that one process holds whole.

    For a state that is spread over processes, see `Spread`, or override all its methods. Each must return the same
    numbers in every process.
    """

    def norm(self, x: Tensor) -> float:
        """Return the Frobenius norm of `x`."""
        return x.norm().item()

    def lengths(self, delta: Tensor, value: Tensor) -> tuple[float, float | None]:  # noqa: ARG002
        """Return the norms of a change and of the state after it; None for the latter: computed when it is needed."""
        return self.norm(delta), None

    def largest(self, x: Tensor) -> float:
        """Return the largest absolute entry of `x`; 0 if it has no entries."""
        low, high = (bound.item() for bound in x.aminmax()) if x.numel() else (0.0, 0.0)
        return max(-low, high)

    def entries(self, x: Tensor) -> int:
        """Return the number of entries of `x`."""
        return x.numel()

    def count(self, x: Tensor) -> int:
        """Return the number of entries of `x` that are not zero."""
        return int(x.count_nonzero())

    def all_rows(self, x: Tensor) -> Tensor:
        """Return the rows of `x` that all processes hold."""
        return x

    def inner(self, rows: Tensor, x: Tensor) -> Tensor:
        """Return `rows @ x`, a sum over the entries of the state.

        Args:
            rows: flattened states, [entries] or [k, entries].
            x: flattened states, [entries] or [entries, k].
        """
        return rows @ x


WHOLE = Space()
"""The space of a state that this process holds whole."""


@dataclass(frozen=True)
class Spread(Space):
    """The reductions over a state whose rows are spread over processes.

    Attributes:
        processes: all processes.
        rows: number of rows that they hold together.
    """

    processes: Processes
    rows: int

    def norm(self, x: Tensor) -> float:
        """Return the Frobenius norm of all rows."""
        return self._norms(x)[0]

    def lengths(self, delta: Tensor, value: Tensor) -> tuple[float, float | None]:
        """Return the norms of a change and of the state after it, by one sum."""
        length, value_length = self._norms(delta, value)
        return length, value_length

    def _norms(self, *several: Tensor) -> list[float]:
        squares = torch.tensor([Space.norm(self, x) for x in several], dtype=torch.float64) ** 2
        return self.processes.sum(squares).sqrt().tolist()

    def largest(self, x: Tensor) -> float:
        """Return the largest absolute entry of all rows."""
        return self.processes.largest(super().largest(x))

    def entries(self, x: Tensor) -> int:
        """Return the number of entries of all rows."""
        return self.rows * x.shape[1:].numel()

    def count(self, x: Tensor) -> int:
        """Return the number of entries of all rows that are not zero."""
        return int(self.processes.sum(x.count_nonzero()))

    def all_rows(self, x: Tensor) -> Tensor:
        """Return the rows of `x` that all processes hold, in the order of the ranks."""
        return self.processes.all_rows(x)

    def inner(self, rows: Tensor, x: Tensor) -> Tensor:
        """Return `rows @ x`, summed over all processes."""
        return self.processes.sum(super().inner(rows, x))


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
        self.length, self._value_length = space.lengths(delta, value)

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
    if callable(norm):
        return norm
    if norm not in NORMS:
        raise unknown("norm", norm, NORMS)
    return NORMS[norm]
