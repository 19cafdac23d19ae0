"""Picard iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lignn.equilibrium.solvers.solver import Rule, Solver
from lignn.equilibrium.space import Space


@dataclass(frozen=True)
class Picard(Solver):
    """Plain iteration `z ← f(z)`, the paper's solver; with `tol=0` it takes exactly `max_steps` steps."""

    follows_map: ClassVar[bool] = True
    rounding: ClassVar[float] = 1e3  # Its changes decrease at every step; those of other solvers go up and down.

    def rule(self, space: Space) -> Rule:  # noqa: ARG002
        """Return the rule `z ← f(z)`."""
        return lambda _z, fz, _change: fz
