"""The result of a solve: one type for every solver, forward and backward."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from torch import Tensor

from lignn.errors import ConvergenceError


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
        reached = (
            f"residual {self.residual:.3g} after {self.steps} steps, tolerance {self.tol:.3g}, K̂ {self.contraction:.3g}"
        )
        drifts = self.status is Status.BUDGET and self.contraction >= 1
        return f"{self.status}: {reached}{_NO_CONTRACTION if drifts else _ADVICE[self.status]}"

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
