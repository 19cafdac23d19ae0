"""How an equilibrium is differentiated.

Algorithm 1 *solves* one map (U, masked or not) and *tapes* another (T, the masked step whose output is supervised). A
gradient strategy joins them: it gives `T(z*)`, `z* = U(z*)`, with a backward pass of its kind. With one map only
(`taped=None`) it gives `z*` itself.

| strategy | backward | cost |
|---|---|---|
| `LastStep` | through T alone | one product |
| `Unrolled(k)` | through T and k steps of U before it | k tapes of memory |
| `Implicit("paper")` | `g = T_zᵀ g + b`, then θ through T | adjoint solve, one tape |
| `Implicit("exact")` | b through T, then `h = U_zᵀ h + T_zᵀ b`, θ through both | adjoint solve, two tapes |

The paper's form is the gradient of the loss only where T and U are the same map.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lignn.equilibrium.solution import Solution
from lignn.equilibrium.solve import Map, adjoint, solve
from lignn.equilibrium.solvers import Picard, Solver
from lignn.errors import ConfigError


class Gradient(Protocol):
    """A strategy: the taped output at the equilibrium, and the account of the solve."""

    def join(
        self,
        solved: Map,
        taped: Map | None,
        z0: Tensor | Solution,
        solver: Solver | None,
        *,
        throw: bool = True,
        through: Map | None = None,
    ) -> tuple[Tensor, Solution]:
        """`taped(z)`, `z = solved(z)`, differentiable; `z` itself if `taped` is None.

        `z0` is where to start, or the solution where it is known already. `through` has the values of the map whose
        adjoint is solved and an approximate Jacobian to solve it with.
        """
        ...


@dataclass(frozen=True)
class Unrolled:
    """Backward through the last `steps` steps of the solved map and the taped one, at `steps` times the memory."""

    steps: int

    def join(
        self,
        solved: Map,
        taped: Map | None,
        z0: Tensor | Solution,
        solver: Solver | None,
        *,
        throw: bool = True,
        through: Map | None = None,  # noqa: ARG002
    ) -> tuple[Tensor, Solution]:
        """Solve without gradients, then tape `steps` more steps."""
        solution = z0 if isinstance(z0, Solution) else solve(solved, z0, solver, throw=throw)
        z = solution.value
        for _ in range(self.steps):
            z = solved(z)
        return (solved if taped is None else taped)(z), solution


@dataclass(frozen=True)
class LastStep(Unrolled):
    """Backward through the taped step alone, as Label Reuse does; the solved state is a constant."""

    steps: int = 0


@dataclass(frozen=True)
class Implicit:
    """Backward through the equilibrium by the implicit function theorem, in constant memory.

    Attributes:
        form: `exact`, or `paper` (see the table above).
        solver: of the adjoint; None: the forward solver, stopped as soon as the adjoint expands. Its tolerance is then
            relative: gradients of a mean are as small as 1/n, and an absolute one would end the solve at its start.
    """

    form: Literal["exact", "paper"] = "exact"
    solver: Solver | None = None

    def __post_init__(self) -> None:
        if self.form not in ("exact", "paper"):
            raise ConfigError(f"the implicit gradient has the forms 'exact' and 'paper', not {self.form!r}")

    def join(
        self,
        solved: Map,
        taped: Map | None,
        z0: Tensor | Solution,
        solver: Solver | None,
        *,
        throw: bool = True,
        through: Map | None = None,
    ) -> tuple[Tensor, Solution]:
        """Solve without gradients, tape one step, and hook the adjoint solve to its backward pass."""
        solution = z0 if isinstance(z0, Solution) else solve(solved, z0, solver, throw=throw)
        backward = self.solver or replace(solver or Picard(), norm="relative", growth=1.0)
        if taped is not None and self.form == "paper" and through is None:
            return _layer(taped, solution, backward), solution
        # The loss itself goes through the taped map; only what it sends back into the loop is approximate.
        z = _layer(through or solved, solution, backward, solution.value)
        return (z if taped is None else taped(z)), solution


def _layer(fn: Map, solution: Solution, adjoint_solver: Solver, value: Tensor | None = None) -> Tensor:
    """`fn(z*)` whose backward pass first solves `g = fn_zᵀ g + b` in state space; autograd then pays θ once.

    With `value` that is the output instead: where `z* = fn(z*)` the solved state itself, not one step further.
    """
    if value is not None and not torch.is_grad_enabled():
        return value
    z = solution.value.detach().requires_grad_()
    out = fn(z)
    if not out.requires_grad:
        return out if value is None else value

    def solve_adjoint(b: Tensor) -> Tensor:
        def vjp(g: Tensor) -> Tensor:
            return torch.autograd.grad(out, z, g, retain_graph=True, materialize_grads=True)[0]

        solution.adjoints.append(adjoint(vjp, b, adjoint_solver))
        return solution.adjoints[-1].value

    return _SolveAdjoint.apply(out, out if value is None else value, solve_adjoint)


class _SolveAdjoint(torch.autograd.Function):
    """`value` forward; backward, the incoming gradient goes to `out` as the solution of the adjoint equation."""

    @staticmethod
    def forward(ctx: Any, out: Tensor, value: Tensor, solve_adjoint: Map) -> Tensor:  # noqa: ARG004
        ctx.solve_adjoint = solve_adjoint
        return value.view_as(value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, b: Tensor) -> tuple[Tensor, None, None]:
        return ctx.solve_adjoint(b), None, None


def fixed_point(
    fn: Map,
    z0: Tensor | Solution,
    solver: Solver | None = None,
    *,
    gradient: Gradient | None = None,
    throw: bool = True,
) -> Solution:
    """The differentiable solution of `z = fn(z)`: an equilibrium layer.

    `solution.value` carries gradients to every tensor that `fn` closes over. The backward solves are appended to
    `solution.adjoints`.

    Args:
        fn: the map; it must return a new tensor on every call.
        z0: where to start, or the solution where it is known already; no gradient flows to it.
        solver: forward solver, default `Picard()`.
        gradient: default `Implicit()`.
        throw: raise `ConvergenceError` if the forward solve fails.
    """
    if isinstance(z0, Solution):
        known = z0.require() if throw else z0
        z0 = replace(known, value=known.value.detach(), adjoints=[])
    value, solution = (gradient or Implicit()).join(fn, None, z0, solver, throw=throw)
    return replace(solution, value=value)
