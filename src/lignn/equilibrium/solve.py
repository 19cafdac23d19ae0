"""The forward equation `z = f(z)` and the backward equation `g = Jᵀ g + b`, both solved without gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from lignn.equilibrium import norms
from lignn.equilibrium.norms import Change
from lignn.equilibrium.solution import Solution, Status
from lignn.equilibrium.solvers import Picard, Solver
from lignn.equilibrium.space import WHOLE, Space

Map = Callable[[Tensor], Tensor]

_OUT_OF_BOUNDS = 1e4
"""A change this many times the smallest one so far means divergence."""

_PATIENCE = 5
"""Number of steps without a smaller change after which a solve may count as stalled."""


def solve(fn: Map, z0: Tensor, solver: Solver | None = None, *, throw: bool = True, space: Space = WHOLE) -> Solution:
    """Solve `z = fn(z)` from `z0`, without gradients.

    Args:
        fn: the map. It must return a new tensor on every call.
        z0: the state to start from.
        solver: algorithm, tolerance and budget; default `Picard()`.
        throw: raise `ConvergenceError` if the solve fails, instead of returning a solution with that status.
        space: the reductions over the state, if one process does not hold it whole.
    """
    solver = solver or Picard()
    with torch.no_grad():
        fixed = solver.follows_map and solver.tol == 0 and solver.growth is None
        solution = (_repeat if fixed else _iterate)(fn, z0.detach(), solver, space)
    return solution.require() if throw else solution


def adjoint(vjp: Map, b: Tensor, solver: Solver | None = None, *, space: Space = WHOLE) -> Solution:
    """Solve `g = vjp(g) + b` from `g = b`, the equation of the implicit function theorem.

    A failed solve does not raise. It stops when the adjoint expands, says so in its status, and returns the best state
    so far, which lies between the last-step gradient `b` and the full one.

    Args:
        vjp: the map `g ↦ Jᵀ g`.
        b: gradient of the loss with respect to the state.
        solver: default `Picard` with a relative tolerance, stopped when the adjoint expands.
        space: the reductions over the state.
    """
    solver = solver or Picard(norm="relative", growth=1.0)
    return solve(lambda g: vjp(g) + b, b, solver, throw=False, space=space)


def _repeat(fn: Map, z: Tensor, solver: Solver, space: Space) -> Solution:
    """Take exactly `max_steps` steps; measure only the last change, and no contraction, since nothing can stop them."""
    value = last = z
    for _ in range(solver.max_steps):
        last, value = value, fn(value)
    change = Change(value - last, value, space)
    if not math.isfinite(change.length):
        return _iterate(fn, z, solver, space)
    residuals = (float(norms.resolve(solver.norm)(change)),) if solver.max_steps else ()
    return Solution(value, Status.BUDGET, solver.max_steps, residuals, 0.0, solver.tol)


def _iterate(fn: Map, z: Tensor, solver: Solver, space: Space) -> Solution:
    """Take steps until the stopping rule ends the solve or the budget is used up."""
    rule, progress = solver.rule(space), _Progress(solver)
    status, value = Status.BUDGET, z
    for _ in range(solver.max_steps):
        fz = fn(z)
        change = Change(fz - z, fz, space)
        stop = progress.observe(z, change)
        if stop is not None:
            status = stop
            break
        value = fz
        z = rule(z, fz, change.delta)
    if status is Status.CONVERGED:
        value = fz
    elif progress.best is not None and not (status is Status.BUDGET and solver.follows_map):
        value = progress.best
    residuals = tuple(progress.residuals)
    return Solution(value, status, len(residuals), residuals, progress.contraction, solver.tol)


class _Progress:
    """The stopping rule of one solve: the residuals so far, the best state, and when to stop."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.norm = norms.resolve(solver.norm)
        self.residuals: list[float] = []
        self.contraction = 0.0
        self.last: tuple[Tensor, Tensor, float] | None = None
        self.shortest = math.inf
        self.since_shortest = 0
        self.best: Tensor | None = None

    def observe(self, z: Tensor, change: Change) -> Status | None:
        """Record one step; return the status that ends the solve, or None to go on."""
        size = float(self.norm(change))
        self.residuals.append(size)
        if not math.isfinite(change.length):
            return Status.NON_FINITE
        ratio = self._ratio(z, change)
        self.contraction = max(self.contraction, ratio)
        self.last = (z, change.value, change.length)
        if size <= self.solver.tol:
            return Status.CONVERGED
        if change.length > _OUT_OF_BOUNDS * self.shortest:
            return Status.DIVERGING
        if self.solver.growth is not None and ratio > self.solver.growth:
            # A plain iteration keeps its last state: changes may also grow while information travels.
            self.best = z if self.solver.follows_map else self.best
            return Status.DIVERGING
        if change.length < self.shortest:
            self.shortest, self.since_shortest, self.best = change.length, 0, change.value
            return None
        self.since_shortest += 1
        noise = self.solver.rounding * torch.finfo(change.value.dtype).eps
        stalled = self.since_shortest >= _PATIENCE and change.length <= noise * change.value_length
        return Status.STALLED if stalled else None

    def _ratio(self, z: Tensor, change: Change) -> float:
        """Return `‖f(z_i) - f(z_{i-1})‖ / ‖z_i - z_{i-1}‖`; for plain iteration, the ratio of the last two changes."""
        if self.last is None:
            return 0.0
        last_z, last_value, last_length = self.last
        if self.solver.follows_map:
            numerator, denominator = change.length, last_length
        else:
            numerator, denominator = change.space.norm(change.value - last_value), change.space.norm(z - last_z)
        # A step no larger than rounding says nothing about the map.
        if denominator <= 10 * torch.finfo(change.value.dtype).eps * change.value_length:
            return 0.0
        return numerator / denominator
