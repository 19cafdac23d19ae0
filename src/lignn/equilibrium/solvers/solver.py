"""What every solver has: its settings, and a rule that proposes the next state.

The whole state is one vector. One graph is one problem, so norms and mixing weights are computed over the whole state,
never row by row.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from lignn.equilibrium import norms
from lignn.equilibrium.norms import Norm
from lignn.equilibrium.space import Space
from lignn.errors import ConfigError

Rule = Callable[[Tensor, Tensor, Tensor], Tensor]
"""A function `(z, f(z), f(z) - z) ↦ next z`."""


@dataclass(frozen=True)
class Solver(ABC):
    """Settings of a solve.

    Attributes:
        tol: the solve has converged if the norm of the change `f(z) - z` is at most this.
        max_steps: maximum number of evaluations of f.
        norm: norm of the change: `rms` (root mean square), `max` (largest absolute entry), `relative` (Frobenius norm
            divided by that of f(z)), or a function of a `Change`.
        growth: stop as diverging if a step expands the last one by more than this factor; None: stop only if the change
            becomes very large.
    """

    tol: float = 1e-6
    max_steps: int = 300
    norm: str | Norm = "rms"
    growth: float | None = None

    follows_map: ClassVar[bool] = False
    """Whether the states are z, f(z), f(f(z)), …; if the budget is used up, the result is then the last state, not the
    one with the smallest change."""
    rounding: ClassVar[float] = 1e1
    """A change below this many units of rounding that no longer decreases is treated as rounding noise."""

    def __post_init__(self) -> None:
        norms.resolve(self.norm)
        if not 0 <= self.tol < math.inf or self.max_steps < 0:
            got = f"got {self.tol} and {self.max_steps}"
            raise ConfigError(f"tol and max_steps must not be negative or infinite, {got}")
        if self.growth is not None and not self.growth > 0:
            raise ConfigError(f"growth must be positive, got {self.growth}")

    @abstractmethod
    def rule(self, space: Space) -> Rule:
        """Return a new rule without history that reduces over the state through `space`."""


@dataclass(frozen=True)
class SolverWithMemory(Solver):
    """A solver that learns from its last steps.

    Attributes:
        memory: number of steps that it remembers.
    """

    memory: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.memory <= 10:
            raise ConfigError(f"memory must be 1 … 10, got {self.memory}")
