"""Anderson acceleration."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import torch
from torch import Tensor

from lignn.equilibrium.norms import Space
from lignn.equilibrium.solve import Rule, SolverWithMemory


@dataclass(frozen=True)
class Anderson(SolverWithMemory):
    """Anderson acceleration (type II): combine the last values of f so that their changes cancel best.

    Let `ΔF` and `ΔR` be the differences of the last `memory` values `f(z)` and changes `r = f(z) - z`. The next state
    is `f(z) - ΔF γ` with `γ = argmin ‖r - ΔR γ‖`. If the change more than doubles, the history is dropped and the next
    step is a plain one.
    """

    def rule(self, space: Space) -> Rule:
        """Return a rule with an empty history."""
        return _AndersonRule(self.memory, space)


class _AndersonRule:
    def __init__(self, memory: int, space: Space) -> None:
        self.space = space
        self.values: deque[Tensor] = deque(maxlen=memory)
        self.changes: deque[Tensor] = deque(maxlen=memory)
        self.last: tuple[Tensor, Tensor, float] | None = None

    def __call__(self, _z: Tensor, fz: Tensor, change: Tensor) -> Tensor:
        value, r = fz.flatten(), change.flatten()
        length = self.space.norm(r)
        if self.last is not None:
            last_value, last_change, last_length = self.last
            if length > 2 * last_length:
                self.values.clear()
                self.changes.clear()
            else:
                self.values.append(value - last_value)
                self.changes.append(r - last_change)
        self.last = (value, r, length)
        if not self.values:
            return fz
        gamma = self._weights(torch.stack(tuple(self.changes)), r)
        return (value - gamma.to(value.dtype) @ torch.stack(tuple(self.values))).view_as(fz)

    def _weights(self, R: Tensor, r: Tensor) -> Tensor:
        """Return `γ = argmin ‖r - Rᵀ γ‖` from the normal equations, in float64."""
        gram = self.space.inner(R, R.T).double()
        # Each direction is scaled to length one: else old, large differences would drown the new, small ones.
        scale = gram.diagonal().clamp(min=torch.finfo(torch.float64).tiny).rsqrt()
        system = gram * scale[:, None] * scale + 1e-12 * torch.eye(len(gram), dtype=torch.float64, device=gram.device)
        return scale * torch.linalg.solve(system, scale * self.space.inner(R, r).double())
