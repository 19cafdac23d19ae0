"""Broyden's method with limited memory."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lignn.equilibrium.norms import Space
from lignn.equilibrium.solve import Rule, SolverWithMemory


@dataclass(frozen=True)
class Broyden(SolverWithMemory):
    """Broyden's (good) method: `z ← z - B r`, where B estimates the inverse Jacobian of `r = f(z) - z`.

    B starts as `-I` (a plain step) and gains one rank a step. It starts again from `-I` if it has `memory` ranks or if
    the change more than doubles.
    """

    memory: int = 10

    def rule(self, space: Space) -> Rule:
        """Return a rule with an empty history."""
        return _BroydenRule(self.memory, space)


class _BroydenRule:
    """`B = -I + Σ u_i v_iᵀ`, updated by Sherman-Morrison: `u = (Δz - B Δr) / (Δzᵀ B Δr)`, `v = Bᵀ Δz`."""

    def __init__(self, memory: int, space: Space) -> None:
        self.memory = memory
        self.space = space
        self.u: list[Tensor] = []
        self.v: list[Tensor] = []
        self.last: tuple[Tensor, Tensor, float] | None = None

    def __call__(self, z: Tensor, fz: Tensor, change: Tensor) -> Tensor:
        state, r = z.flatten(), change.flatten()
        length = self.space.norm(r)
        if self.last is not None:
            last_state, last_change, last_length = self.last
            if length > 2 * last_length or len(self.u) == self.memory:
                self.u, self.v = [], []
            else:
                self._update(state - last_state, r - last_change)
        self.last = (state, r, length)
        return (state - self._apply(r, self.u, self.v)).view_as(fz)

    def _update(self, dz: Tensor, dr: Tensor) -> None:
        """Add the rank that makes `B Δr = Δz`."""
        b_dr = self._apply(dr, self.u, self.v)
        curvature = self.space.inner(dz, b_dr).item()
        # Along a direction in which the change did not vary, the correction would be infinite.
        if abs(curvature) > 1e-12 * self.space.norm(dz) * self.space.norm(b_dr):
            v = self._apply(dz, self.v, self.u)
            self.u.append((dz - b_dr) / curvature)
            self.v.append(v)

    def _apply(self, x: Tensor, u: list[Tensor], v: list[Tensor]) -> Tensor:
        """Return `(-I + Σ u vᵀ) x`."""
        result = -x
        for left, right in zip(u, v, strict=True):
            result = result + left * self.space.inner(right, x)
        return result
