"""An equilibrium as a differentiable layer: solve the map, then attach a backward pass to the solution."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from lignn.equilibrium.gradient import Gradient, Implicit, Maps
from lignn.equilibrium.norms import WHOLE, Space
from lignn.equilibrium.solve import Map, Picard, Solution, Solver, solve


def fixed_point(
    fn: Map,
    z0: Tensor,
    solver: Solver | None = None,
    *,
    gradient: Gradient | None = None,
    throw: bool = True,
    space: Space = WHOLE,
) -> Solution:
    """Solve `z = fn(z)`; the solution is differentiable.

    `solution.value` carries gradients to every tensor that `fn` closes over. Backward solves are appended to
    `solution.adjoints`.

    Args:
        fn: the map. It must return a new tensor on every call.
        z0: the state to start from; no gradient flows to it.
        solver: forward solver, default `Picard()`.
        gradient: how to differentiate the solution, default `Implicit()`.
        throw: raise `ConvergenceError` if the forward solve fails.
        space: the reductions over the state, if one process does not hold it whole.
    """
    solution = solve(fn, z0, solver, throw=throw, space=space)
    return differentiable(fn, solution, solver, gradient, space)


def differentiable(
    fn: Map, solution: Solution, solver: Solver | None = None, gradient: Gradient | None = None, space: Space = WHOLE
) -> Solution:
    """Return a known solution of `z = fn(z)` as `fixed_point` would, without solving again.

    Args:
        fn: the map.
        solution: its solution; no gradient flows to its value.
        solver: the solver that found it, default `Picard()`.
        gradient: how to differentiate the solution, default `Implicit()`.
        space: the reductions over the state.
    """
    constant = replace(solution, value=solution.value.detach(), adjoints=[])
    value = (gradient or Implicit()).attach(constant, Maps(fn, space=space), solver or Picard())
    return replace(constant, value=value)
