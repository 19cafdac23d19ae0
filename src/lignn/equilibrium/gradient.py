"""How an equilibrium is differentiated.

Algorithm 1 *solves* one map U (masked or not) and *tapes* another map T (the masked step, whose output is supervised).
The caller finds `z* = U(z*)`; a gradient strategy returns `T(z*)` with a backward pass. Without a taped map it returns
`z*` itself.

| strategy | backward pass | cost |
|---|---|---|
| `LastStep` | through T alone | one product |
| `Unrolled(k)` | through T and k steps of U before it | k tapes of memory |
| `Implicit("paper")` | solve `g = T_zᵀ g + b`, then θ through T | adjoint solve, one tape |
| `Implicit("exact")` | b through T, then solve `h = U_zᵀ h + T_zᵀ b`, θ through both | adjoint solve, two tapes |

The paper's form is the gradient of the loss only if T and U are the same map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lignn.equilibrium.norms import WHOLE, Space
from lignn.equilibrium.solve import Map, Solution, Solver, adjoint
from lignn.errors import ConfigError, unknown


@dataclass(frozen=True)
class Maps:
    """The maps of Algorithm 1, and the space that they act on.

    Attributes:
        solved: U, the map whose equilibrium was solved for.
        taped: T, the map whose output is supervised; None: the output is the equilibrium of U itself.
        approximate: a map with the same values as the one whose adjoint is solved, but an approximate Jacobian; None:
            the adjoint is solved with the exact Jacobian.
        space: the reductions over the state, for the adjoint solve.
    """

    solved: Map
    taped: Map | None = None
    approximate: Map | None = None
    space: Space = WHOLE


class Gradient(Protocol):
    """A strategy to differentiate an equilibrium."""

    def attach(self, solution: Solution, maps: Maps, solver: Solver) -> Tensor:
        """Return `taped(z*)`, or `z*` if there is no taped map, with a backward pass.

        Args:
            solution: the solved state z*, a constant; a backward solve is appended to its `adjoints`.
            maps: the solved map and the taped one.
            solver: the solver that found z*.
        """
        ...


@dataclass(frozen=True)
class Unrolled:
    """Backward through the last `steps` steps of the solved map and the taped one, at `steps` times the memory."""

    steps: int

    def attach(self, solution: Solution, maps: Maps, solver: Solver) -> Tensor:  # noqa: ARG002
        """Take `steps` more steps with gradients, then the taped one."""
        z = solution.value
        for _ in range(self.steps):
            z = maps.solved(z)
        return (maps.solved if maps.taped is None else maps.taped)(z)


@dataclass(frozen=True)
class LastStep(Unrolled):
    """Backward through the taped step alone, as in Label Reuse; the solved state is a constant."""

    steps: int = 0


@dataclass(frozen=True)
class Implicit:
    """Backward through the equilibrium by the implicit function theorem, in constant memory.

    Attributes:
        form: `exact` or `paper`, see the table of this module.
        solver: solver of the adjoint. None: the forward solver with a relative tolerance, stopped when the adjoint
            expands. The tolerance is relative because gradients of a mean are as small as 1/n: with an absolute
            tolerance, the solve would stop at its start.
    """

    form: Literal["exact", "paper"] = "exact"
    solver: Solver | None = None

    def __post_init__(self) -> None:
        if self.form not in ("exact", "paper"):
            raise ConfigError(f"the implicit gradient has the forms 'exact' and 'paper', not {self.form!r}")

    def attach(self, solution: Solution, maps: Maps, solver: Solver) -> Tensor:
        """Tape one step, whose backward pass solves the adjoint equation."""
        solver = self.solver or replace(solver, norm="relative", growth=1.0)
        if maps.taped is not None and self.form == "paper" and maps.approximate is None:
            return _attach_adjoint(maps.taped, solution, None, solver, maps.space)
        # The loss is differentiated through the taped map itself; only the gradient of the state is approximate.
        z = _attach_adjoint(maps.approximate or maps.solved, solution, solution.value, solver, maps.space)
        return z if maps.taped is None else maps.taped(z)


GRADIENTS: dict[str, Callable[[Solver | None], Gradient]] = {
    "paper": lambda solver: Implicit("paper", solver),
    "exact": lambda solver: Implicit("exact", solver),
    "last_step": lambda _: LastStep(),
}
"""Gradients that can be asked for by name: functions of the adjoint's solver. Add your own."""


def gradient_named(name: str, adjoint_solver: Solver | None = None) -> Gradient:
    """Return the gradient strategy called `name`.

    Args:
        name: a key of `GRADIENTS`.
        adjoint_solver: solver of the adjoint, if the strategy has one; None: its default.

    Raises:
        ConfigError: if the name is unknown; the message names the closest one.
    """
    if name not in GRADIENTS:
        raise unknown("gradient", name, GRADIENTS)
    return GRADIENTS[name](adjoint_solver)


def _attach_adjoint(fn: Map, solution: Solution, value: Tensor | None, solver: Solver, space: Space) -> Tensor:
    """Return `value` (None: `fn(z*)`) with a backward pass that solves `g = fn_zᵀ g + b`, then differentiates `fn`.

    The equation is solved in state space, so that autograd computes the gradient of the parameters only once.
    """
    if value is not None and not torch.is_grad_enabled():
        return value
    z = solution.value.detach().requires_grad_()
    taped = getattr(fn, "taped", None)
    out, compiled = (fn(z), None) if taped is None else taped(z)
    value = out if value is None else value
    if not out.requires_grad:
        return value

    vjp = _Transposed(out, z, compiled)

    def solve_adjoint(b: Tensor) -> Tensor:
        solution.adjoints.append(adjoint(vjp, b, solver, space=space))
        return solution.adjoints[-1].value

    return _SolveAdjoint.apply(out, value, solve_adjoint)


@dataclass(frozen=True, eq=False)
class _Transposed:
    """The map `g ↦ Jᵀ g` of a taped output, and its compiled solve if there is one."""

    out: Tensor
    z: Tensor
    compiled: Callable[[Tensor, Solver], Solution | None] | None

    def __call__(self, g: Tensor) -> Tensor:
        return torch.autograd.grad(self.out, self.z, g, retain_graph=True, materialize_grads=True)[0]

    def iterate(self, b: Tensor, solver: Solver) -> Solution | None:
        """Solve `g = Jᵀ g + b`; None if there is no compiled solve."""
        return None if self.compiled is None else self.compiled(b, solver)


class _SolveAdjoint(torch.autograd.Function):
    """Return `value` forward; backward, pass the solution of the adjoint equation on to `out`."""

    @staticmethod
    def forward(ctx: Any, out: Tensor, value: Tensor, solve_adjoint: Map) -> Tensor:  # noqa: ARG004
        ctx.solve_adjoint = solve_adjoint
        return value.view_as(value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, b: Tensor) -> tuple[Tensor, None, None]:
        return ctx.solve_adjoint(b), None, None
