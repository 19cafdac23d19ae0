"""What a solve gives: one result type for every solver, forward and backward."""

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
    """A state, and the account of how it was reached.

    Attributes:
        value: the equilibrium, or the best that was reached.
        status: how the solve ended.
        steps: evaluations of the map.
        residuals: `‖f(z_i) - z_i‖` of every step, in the solver's norm; of the last if a fixed number was asked for.
        contraction: `K̂ = max_i ‖f(z_i) - f(z_{i-1})‖ / ‖z_i - z_{i-1}‖` in the Frobenius norm over the steps taken
            (the paper's stochastic Lipschitz constant; for a Picard solve `‖f(z_i) - z_i‖ / ‖z_i - z_{i-1}‖`); 0 if
            fewer than two steps tell.
        tol: the tolerance that was asked for; 0 where a fixed number of steps was.
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
        """Whether the state is what was asked for: an equilibrium (to tolerance or rounding), or a number of steps."""
        asked = self.tol == 0 and self.status is Status.BUDGET
        return asked or self.status in (Status.CONVERGED, Status.STALLED)

    @property
    def residual(self) -> float:
        """The last residual; infinity before the first step."""
        return self.residuals[-1] if self.residuals else float("inf")

    @property
    def message(self) -> str:
        """One sentence: what happened, and what to try."""
        reached = (
            f"residual {self.residual:.3g} after {self.steps} steps, tolerance {self.tol:.3g}, K̂ {self.contraction:.3g}"
        )
        return f"{self.status}: {reached}{_ADVICE[self.status](self)}"

    def require(self) -> Solution:
        """This solution if it is `ok`.

        Raises:
            ConvergenceError: otherwise.
        """
        if not self.ok:
            raise ConvergenceError(self.message, self)
        return self

    def record(self) -> dict[str, Any]:
        """The account as plain values, for histories."""
        return {
            "status": str(self.status),
            "steps": self.steps,
            "residual": self.residual if self.residuals else None,
            "contraction": self.contraction,
        }


def _budget_advice(solution: Solution) -> str:
    if solution.contraction >= 1:
        return "; the map does not contract (it oscillates or drifts): try another solver or a larger mask rate"
    return "; raise max_steps or tol, or try another solver"


_ADVICE = {
    Status.CONVERGED: lambda _: "",
    Status.BUDGET: _budget_advice,
    Status.STALLED: lambda _: "; the tolerance is below what this precision can show: raise tol or use float64",
    Status.DIVERGING: lambda _: "; the map expands: make it contract (smaller weights, larger mask rate)",
    Status.NON_FINITE: lambda _: "; the map gave NaN or infinity: look for overflow in its inputs or weights",
}
