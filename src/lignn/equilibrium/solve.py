"""One solve, from its settings to its result: the forward equation `z = f(z)` and the backward one `g = Jᵀ g + b`.

Nothing here computes gradients. The whole state is one vector: one graph is one problem, so norms and mixing weights
are computed over the whole state, never row by row.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from lignn import notebook
from lignn.equilibrium import norms
from lignn.equilibrium.norms import WHOLE, Change, Norm, Space
from lignn.errors import ConfigError, ConvergenceError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Map = Callable[[Tensor], Tensor]
"""A function of a state, `z ↦ f(z)`."""

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
        tol, max_steps = self.tol, self.max_steps
        if not 0 <= tol < math.inf or max_steps < 0:
            raise ConfigError(f"tol and max_steps must not be negative or infinite, got {tol} and {max_steps}")
        if self.growth is not None and not self.growth > 0:
            raise ConfigError(f"growth must be positive, got {self.growth}")

    @abstractmethod
    def rule(self, space: Space) -> Rule:
        """Return a new rule without history that reduces over the state through `space`."""


@dataclass(frozen=True)
class Picard(Solver):
    """Plain iteration `z ← f(z)`, the paper's solver; with `tol=0` it takes exactly `max_steps` steps."""

    follows_map: ClassVar[bool] = True
    rounding: ClassVar[float] = 1e3  # Its changes decrease at every step; those of other solvers go up and down.

    def rule(self, space: Space) -> Rule:  # noqa: ARG002
        """Return the rule `z ← f(z)`."""
        return lambda _z, fz, _change: fz


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


class Status(StrEnum):
    """How a solve ended."""

    CONVERGED = "converged"
    BUDGET = "budget used up"
    STALLED = "stalled at rounding"
    DIVERGING = "diverging"
    NON_FINITE = "non-finite"


@dataclass(frozen=True, eq=False)
class Solution:
    """A state, and how it was reached.

    Attributes:
        value: the equilibrium, or the best state that was reached.
        status: how the solve ended.
        steps: number of evaluations of the map.
        residuals: `‖f(z_i) - z_i‖` of every step, in the solver's norm; only of the last step if the solver takes a
            fixed number of steps.
        contraction: `K̂ = max_i ‖f(z_i) - f(z_{i-1})‖ / ‖z_i - z_{i-1}‖` in the Frobenius norm over the steps taken,
            the paper's stochastic Lipschitz constant; for a Picard solve `‖f(z_i) - z_i‖ / ‖z_i - z_{i-1}‖`. 0 if
            fewer than two steps were measured.
        tol: tolerance of the solver; 0 if it takes a fixed number of steps.
        adjoints: the backward solves through this equilibrium, appended as they happen.
    """

    value: Tensor
    status: Status
    steps: int
    residuals: tuple[float, ...]
    contraction: float
    tol: float
    adjoints: list[Solution] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the solve reached an equilibrium, to tolerance or rounding, or took the fixed number of steps."""
        fixed_steps = self.tol == 0 and self.status is Status.BUDGET
        return fixed_steps or self.status in (Status.CONVERGED, Status.STALLED)

    @property
    def residual(self) -> float:
        """The last residual; infinity if no step was taken."""
        return self.residuals[-1] if self.residuals else float("inf")

    @property
    def message(self) -> str:
        """One sentence that says what happened and what to try."""
        reached = f"residual {self.residual:.3g} after {self.steps} steps, tolerance {self.tol:.3g}"
        drifts = self.status is Status.BUDGET and self.contraction >= 1
        advice = _NO_CONTRACTION if drifts else _ADVICE[self.status]
        return f"{self.status}: {reached}, K̂ {self.contraction:.3g}{advice}"

    def plot_residuals(self, ax: Axes | None = None) -> Axes:
        """Draw the residual of every step beside the tolerance, and return the axes."""
        ax = notebook.axes(ax)
        ax.semilogy(range(1, len(self.residuals) + 1), self.residuals, marker="o", color=notebook.BLUE)
        if self.tol:
            ax.axhline(self.tol, color=notebook.GREY, linestyle="--")
            ax.annotate("tolerance", (1, self.tol), va="bottom", color=notebook.GREY)
        ax.set(xlabel="step", ylabel="residual", title=f"{self.status}, K̂ {self.contraction:.3g}")
        return ax

    def require(self) -> Solution:
        """Return this solution if it is `ok`.

        Raises:
            ConvergenceError: if it is not.
        """
        if not self.ok:
            raise ConvergenceError(self.message, self)
        return self

    def record(self) -> dict[str, Any]:
        """Return status, steps, residual and contraction as plain values, for histories."""
        return {
            "status": str(self.status),
            "steps": self.steps,
            "residual": self.residual if self.residuals else None,
            "contraction": self.contraction,
        }


_ADVICE = {
    Status.CONVERGED: "",
    Status.BUDGET: "; raise max_steps or tol, or try another solver",
    Status.STALLED: "; the tolerance is below what this precision can resolve: raise tol or use float64",
    Status.DIVERGING: "; the map expands: make it contract (smaller weights, larger mask rate)",
    Status.NON_FINITE: "; the map returned NaN or infinity: look for overflow in its inputs or weights",
}
_NO_CONTRACTION = "; the map does not contract (it oscillates or drifts): try another solver or a larger mask rate"

_OUT_OF_BOUNDS = 1e4
"""A change this many times the smallest one so far means divergence."""

_PATIENCE = 5
"""Number of steps without a smaller change after which a solve may count as stalled."""


def solve(fn: Map, z0: Tensor, solver: Solver | None = None, *, throw: bool = True, space: Space = WHOLE) -> Solution:
    """Solve `z = fn(z)` from `z0`, without gradients.

    Args:
        fn: the map. It must return a new tensor on every call. If it has a method `iterate(z0, solver)` that returns a
            solution (or None, for a solver that it does not know), that is used instead.
        z0: the state to start from.
        solver: algorithm, tolerance and budget; default `Picard()`.
        throw: raise `ConvergenceError` if the solve fails, instead of returning a solution with that status.
        space: the reductions over the state, if one process does not hold it whole.
    """
    solver = solver or Picard()
    with torch.no_grad():
        solution = _compiled(fn, z0.detach(), solver) if space is WHOLE else None
        if solution is None:
            fixed = solver.follows_map and solver.tol == 0 and solver.growth is None
            solution = (_repeat if fixed else _iterate)(fn, z0.detach(), solver, space)
    return solution.require() if throw else solution


def adjoint(vjp: Map, b: Tensor, solver: Solver | None = None, *, space: Space = WHOLE) -> Solution:
    """Solve `g = vjp(g) + b` from `g = b`, the equation of the implicit function theorem.

    A failed solve does not raise. It stops when the adjoint expands, says so in its status, and returns the best state
    so far, which lies between the last-step gradient `b` and the full one.

    Args:
        vjp: the map `g ↦ Jᵀ g`; it may have a method `iterate(b, solver)` that solves the equation itself.
        b: gradient of the loss with respect to the state.
        solver: default `Picard` with a relative tolerance, stopped when the adjoint expands.
        space: the reductions over the state.
    """
    solver = solver or Picard(norm="relative", growth=1.0)
    return solve(_Affine(vjp, b), b, solver, throw=False, space=space)


@dataclass(frozen=True, eq=False)
class _Affine:
    """The map `g ↦ vjp(g) + b`."""

    vjp: Map
    b: Tensor

    def __call__(self, g: Tensor) -> Tensor:
        return self.vjp(g) + self.b

    def iterate(self, _start: Tensor, solver: Solver) -> Solution | None:
        """Solve from b, if the vector-Jacobian product has a compiled solve."""
        return _compiled(self.vjp, self.b, solver)


def _compiled(fn: Map, z: Tensor, solver: Solver) -> Solution | None:
    """Return the solution of a map that brings its own compiled solve; None if it has none, or not for this solver."""
    iterate: Callable[[Tensor, Solver], Solution | None] | None = getattr(fn, "iterate", None)
    return None if iterate is None else iterate(z, solver)


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
        del change  # its difference would be held during the next step
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
        self.last: tuple[tuple[Tensor, Tensor] | None, float] | None = None
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
        self.last = (None if self.solver.follows_map else (z, change.value), change.length)
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
        states, last_length = self.last
        if states is None:  # plain iteration: the last value is this state
            numerator, denominator = change.length, last_length
        else:
            last_z, last_value = states
            numerator, denominator = change.space.norm(change.value - last_value), change.space.norm(z - last_z)
        # A step no larger than rounding says nothing about the map.
        if denominator <= 10 * torch.finfo(change.value.dtype).eps * change.value_length:
            return 0.0
        return numerator / denominator
