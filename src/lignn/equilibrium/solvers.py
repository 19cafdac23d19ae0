"""Solvers of `z = f(z)`: configuration, and a rule that proposes the next state.

The state is one vector: one graph is one problem, so norms and mixing weights act on the whole state, never row by row.

How to choose: `Picard` when the map contracts well (K̂ below about 0.8) or a fixed number of steps is wanted;
`Anderson` when it contracts slowly or a tight tolerance is needed; `Broyden` when Anderson's history is not enough,
e.g. for maps that turn or expand in some directions.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lignn.errors import ConfigError, did_you_mean

NORMS = ("rms", "max", "relative")

Rule = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(z, f(z), f(z) - z) ↦ the next state."""


@dataclass(frozen=True)
class Solver:
    """What every solver has.

    Attributes:
        tol: stop when the change `f(z) - z` is at most this.
        max_steps: the most evaluations of f.
        norm: of the change: `rms` root mean square, `max` largest entry, `relative` Frobenius norm over that of f(z).
        growth: stop as diverging once a step's change exceeds this times the last one's; None: only when it is out of
            bounds.
    """

    tol: float = 1e-6
    max_steps: int = 300
    norm: str = "rms"
    growth: float | None = None

    follows_map: ClassVar[bool] = False
    """Whether the states are z, f(z), f(f(z)), …: a used-up budget then gives the last of them, else the best one."""
    rounding: ClassVar[float] = 1e1
    """A change below this many units of rounding, and no longer falling, is rounding noise."""

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise ConfigError(f"norm {self.norm!r} is unknown; {did_you_mean(self.norm, NORMS)}")
        if not 0 <= self.tol < math.inf or self.max_steps < 0:
            got = f"got {self.tol} and {self.max_steps}"
            raise ConfigError(f"tol and max_steps must not be negative or infinite, {got}")
        if self.growth is not None and not self.growth > 0:
            raise ConfigError(f"growth must be positive, got {self.growth}")

    def rule(self) -> Rule:
        """A fresh rule, with no history."""
        raise AssertionError("a solver is one of its subclasses")

    def size(self, change: Tensor, length: float, value: Tensor) -> float:
        """The solver's norm of `change`, whose Frobenius norm is `length`."""
        if self.norm == "max":
            low, high = (bound.item() for bound in change.aminmax()) if change.numel() else (0.0, 0.0)
            return max(-low, high)
        if self.norm == "relative":
            return length / max(value.norm().item(), torch.finfo(value.dtype).tiny)
        return length / math.sqrt(max(change.numel(), 1))


@dataclass(frozen=True)
class Picard(Solver):
    """Plain iteration `z ← f(z)`, the paper's solver. With `tol=0`: exactly `max_steps` steps."""

    follows_map: ClassVar[bool] = True
    rounding: ClassVar[float] = 1e3  # its changes fall at every step; those of others go up and down on their way

    def rule(self) -> Rule:
        """The rule `z ← f(z)`."""
        return lambda _z, fz, _change: fz


@dataclass(frozen=True)
class Anderson(Solver):
    """Anderson acceleration (type II): the combination of the last states whose changes cancel best.

    With `ΔF`, `ΔR` the differences of the last `memory` values and changes, `z ← f(z) - ΔF γ`, `γ = argmin ‖r - ΔR γ‖`.
    The history is dropped when the change grows, which makes the next step a plain one.
    """

    memory: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_memory(self.memory)

    def rule(self) -> Rule:
        """A rule with an empty history."""
        return _AndersonRule(self.memory)


@dataclass(frozen=True)
class Broyden(Solver):
    """Broyden's (good) method with limited memory: `z ← z - B r`, B the estimated inverse Jacobian of `r = f(z) - z`.

    B starts at `-I` (a plain step) and gains one rank a step; it starts over when `memory` is full or the change grows.
    """

    memory: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_memory(self.memory)

    def rule(self) -> Rule:
        """A rule with an empty history."""
        return _BroydenRule(self.memory)


def _check_memory(memory: int) -> None:
    if not 1 <= memory <= 10:
        raise ConfigError(f"memory must be 1 … 10, got {memory}")


class _AndersonRule:
    def __init__(self, memory: int) -> None:
        self.values: deque[Tensor] = deque(maxlen=memory)
        self.changes: deque[Tensor] = deque(maxlen=memory)
        self.last: tuple[Tensor, Tensor, float] | None = None

    def __call__(self, _z: Tensor, fz: Tensor, change: Tensor) -> Tensor:
        value, r = fz.flatten(), change.flatten()
        length = r.norm().item()
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
        R = torch.stack(tuple(self.changes))
        gram = (R @ R.T).double()
        # Relative to each direction's own scale, so that old, large differences do not drown the fresh, small ones.
        scale = gram.diagonal().clamp(min=torch.finfo(torch.float64).tiny).rsqrt()
        system = gram * scale[:, None] * scale + 1e-12 * torch.eye(len(gram), dtype=torch.float64, device=gram.device)
        gamma = scale * torch.linalg.solve(system, scale * (R @ r).double())
        return (value - gamma.to(value.dtype) @ torch.stack(tuple(self.values))).view_as(fz)


class _BroydenRule:
    """`B = -I + Σ u_i v_iᵀ`, by Sherman-Morrison: `u = (Δz - B Δr) / (Δzᵀ B Δr)`, `v = Bᵀ Δz`."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.u: list[Tensor] = []
        self.v: list[Tensor] = []
        self.last: tuple[Tensor, Tensor, float] | None = None

    def __call__(self, z: Tensor, fz: Tensor, change: Tensor) -> Tensor:
        state, r = z.flatten(), change.flatten()
        length = r.norm().item()
        if self.last is not None:
            last_state, last_change, last_length = self.last
            if length > 2 * last_length or len(self.u) == self.memory:
                self.u, self.v = [], []
            else:
                self._learn(state - last_state, r - last_change)
        self.last = (state, r, length)
        return (state - self._apply(r, self.u, self.v)).view_as(fz)

    def _learn(self, dz: Tensor, dr: Tensor) -> None:
        b_dr = self._apply(dr, self.u, self.v)
        curvature = dz.dot(b_dr).item()
        # A step along which the map's change says nothing would add an infinite correction.
        if abs(curvature) > 1e-12 * dz.norm().item() * b_dr.norm().item():
            v = self._apply(dz, self.v, self.u)
            self.u.append((dz - b_dr) / curvature)
            self.v.append(v)

    @staticmethod
    def _apply(x: Tensor, u: list[Tensor], v: list[Tensor]) -> Tensor:
        """`(-I + Σ u vᵀ) x`."""
        result = -x
        for left, right in zip(u, v, strict=True):
            result = result + left * right.dot(x)
        return result


BY_NAME: dict[str, type[Solver]] = {"picard": Picard, "anderson": Anderson, "broyden": Broyden}
