"""The forward solve `z = f(z)` and the backward one `g = Jᵀ g + b`, both without gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from lignn.equilibrium.solution import Solution, Status
from lignn.equilibrium.solvers import Picard, Solver

Map = Callable[[Tensor], Tensor]

_OUT_OF_BOUNDS = 1e4
"""A change this many times the smallest one so far means divergence."""

_PATIENCE = 5
"""Steps without a smaller change before a solve may be called stalled."""


def solve(fn: Map, z0: Tensor, solver: Solver | None = None, *, throw: bool = True) -> Solution:
    """Solve `z = fn(z)` from `z0`, whole state, no gradients.

    Args:
        fn: the map. It must return a new tensor on every call.
        z0: where to start.
        solver: which algorithm, tolerance and budget; default `Picard()`.
        throw: raise `ConvergenceError` if the solve fails, instead of returning a solution that says so.
    """
    solver = solver or Picard()
    with torch.no_grad():
        fixed = solver.follows_map and solver.tol == 0 and solver.growth is None
        solution = _repeat(fn, z0.detach(), solver) if fixed else _Account(solver).run(fn, z0.detach())
    return solution.require() if throw else solution


def adjoint(vjp: Map, b: Tensor, solver: Solver | None = None) -> Solution:
    """Solve `g = vjp(g) + b` from `g = b`, the implicit-function equation of the gradient.

    `vjp` is `g ↦ Jᵀ g`. A failed solve never raises here: it stops where the adjoint expands, says so in its status,
    and gives the best it had, which lies between the last-step gradient (`b`) and the full one.
    """
    return solve(lambda g: vjp(g) + b, b, solver or Picard(norm="relative", growth=1.0), throw=False)


def _repeat(fn: Map, z: Tensor, solver: Solver) -> Solution:
    """Exactly `max_steps` steps: nothing can stop them, so only the last change is measured, and no contraction."""
    value = last = z
    for _ in range(solver.max_steps):
        last, value = value, fn(value)
    change = value - last
    length = change.norm().item()
    if not math.isfinite(length):
        return _Account(solver).run(fn, z)
    residuals = (solver.size(change, length, value),) if solver.max_steps else ()
    return Solution(value, Status.BUDGET, solver.max_steps, residuals, 0.0, solver.tol)


class _Account:
    """One solve in progress: the residuals so far, the best state, and when to stop."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.residuals: list[float] = []
        self.contraction = 0.0
        self.length = math.inf
        self.shortest = math.inf
        self.since_shortest = 0
        self.best: Tensor | None = None

    def run(self, fn: Map, z: Tensor) -> Solution:
        rule = self.solver.rule()
        status = Status.BUDGET
        value = z
        last: tuple[Tensor, Tensor] | None = None
        for _ in range(self.solver.max_steps):
            fz = fn(z)
            change = fz - z
            length = change.norm().item()
            stop = self._observe(z, fz, change, length, last)
            if stop is not None:
                status = stop
                break
            last = (z, fz)
            value = fz
            z = rule(z, fz, change)
        if status is Status.CONVERGED:
            value = fz
        elif self.best is not None and not (status is Status.BUDGET and self.solver.follows_map):
            value = self.best
        return Solution(value, status, len(self.residuals), tuple(self.residuals), self.contraction, self.solver.tol)

    def _observe(
        self, z: Tensor, fz: Tensor, change: Tensor, length: float, last: tuple[Tensor, Tensor] | None
    ) -> Status | None:
        """Account for one step; the status that ends the solve, or None to go on."""
        size = self.solver.size(change, length, fz)
        self.residuals.append(size)
        if not math.isfinite(length):
            return Status.NON_FINITE
        ratio = self._ratio(z, fz, length, last)
        self.contraction = max(self.contraction, ratio)
        self.length = length
        if size <= self.solver.tol:
            return Status.CONVERGED
        if length > _OUT_OF_BOUNDS * self.shortest:
            return Status.DIVERGING
        if self.solver.growth is not None and ratio > self.solver.growth:
            # What a plain iteration has so far is its last state: changes may grow while information travels.
            self.best = z if self.solver.follows_map else self.best
            return Status.DIVERGING
        if length < self.shortest:
            self.shortest, self.since_shortest, self.best = length, 0, fz
            return None
        self.since_shortest += 1
        noise = self.solver.rounding * torch.finfo(fz.dtype).eps
        stalled = self.since_shortest >= _PATIENCE and length <= noise * fz.norm().item()
        return Status.STALLED if stalled else None

    def _ratio(self, z: Tensor, fz: Tensor, length: float, last: tuple[Tensor, Tensor] | None) -> float:
        """`‖f(z_i) - f(z_{i-1})‖ / ‖z_i - z_{i-1}‖`, for a Picard step the ratio of the two last changes."""
        if last is None:
            return 0.0
        if self.solver.follows_map:
            numerator, denominator = length, self.length
        else:
            numerator, denominator = (fz - last[1]).norm().item(), (z - last[0]).norm().item()
        # A step no larger than rounding tells nothing of the map.
        if denominator <= 10 * torch.finfo(fz.dtype).eps * fz.norm().item():
            return 0.0
        return numerator / denominator


__all__ = ["Map", "adjoint", "solve"]
