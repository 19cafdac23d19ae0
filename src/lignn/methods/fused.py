"""Compiled solves: where they apply, and how a step becomes one. This is the one place that chooses.

A map `Ŷ ↦ σ(Ã relu(Ã (scale ∘ Ŷ + offset) W + F) V + b)` is solved by the kernels of `lignn.propagation.fused`, and so is
its adjoint. Every other map, solver, norm or device takes the plain way, which also is the reference in the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lignn.backbones import GCN, Backbone, Dropout
from lignn.backbones.gcn import GCNConv
from lignn.backbones.layers import Linear
from lignn.equilibrium import Map, Solution, Status
from lignn.equilibrium.solvers import Anderson, Picard, Solver
from lignn.labels import LabelInput
from lignn.propagation import Adjacency

if TYPE_CHECKING:
    from lignn.propagation.fused import FusedStep, Limits, Outcome

MOST_CLASSES = 16
"""With more classes, the columns of a tile no longer fit into the registers."""

_NORMS = ("rms", "max", "relative")
_STATUSES = (None, Status.CONVERGED, Status.BUDGET, Status.STALLED, Status.DIVERGING, Status.NON_FINITE)
"""Norms and statuses in the order of their numbers in `propagation.solve_kernel`."""


@cache
def _kernels() -> Any:
    return import_module("lignn.propagation.fused")  # imports Numba, so not before the first solve


def step_of(backbone: Backbone, features: Tensor, adj: Adjacency, multilabel: bool) -> FusedStep | None:
    """Return the fused step of a bound network, without an input yet; None if the network has to take the plain way."""
    if not (type(backbone) is GCN and features.device.type == "cpu" and _is_plain(backbone)):
        return None
    first, second = (conv.lin.weight.detach() for conv in backbone.convs)
    mask = backbone.dropouts[0].mask(tuple(features.shape), features)
    kernels, nothing = _kernels(), features.new_empty(0)
    return kernels.FusedStep(
        adj,
        first[:, : backbone.label_inputs].contiguous(),
        second.T.contiguous(),
        kernels.tiled(features.detach()),
        nothing,
        nothing,
        backbone.convs[1].bias.detach(),
        None if mask is None else kernels.tiled(mask),
        multilabel,
    )


def _is_plain(backbone: GCN) -> bool:
    """Return whether a GCN is one of two layers with few classes, nothing of which was exchanged or is watched."""
    if len(backbone.convs) != 2 or not 1 <= backbone.label_inputs == backbone.num_classes <= MOST_CLASSES:
        return False
    parts = list(backbone.modules())
    if [type(part) for part in parts] != _PARTS:
        return False
    dropout = backbone.dropouts[0]
    redrawn = dropout.training and dropout.p > 0 and dropout.seed is None  # another mask in every call
    watched = any(part._forward_hooks or part._forward_pre_hooks or part._backward_hooks for part in parts)
    replaced = any(callable(value) for part in parts for value in vars(part).values())  # a method of one instance
    return not (redrawn or watched or replaced)


_PARTS = [GCN, nn.ModuleList, GCNConv, Linear, GCNConv, Linear, nn.ModuleList, Dropout]


@dataclass(frozen=True, eq=False)
class FusedMap:
    """A map that is called as `plain`, and whose solves are compiled.

    Attributes:
        plain: the map in PyTorch.
        step: its fused step.
        backward: factors of the state in the backward pass, n×c.
        diagonal: whether the adjoint uses only the diagonal of the softmax Jacobian.
    """

    plain: Map
    step: FusedStep
    backward: Tensor
    diagonal: bool = False

    def __call__(self, state: Tensor) -> Tensor:
        """Compute one step in PyTorch, with gradients."""
        return self.plain(state)

    def iterate(self, start: Tensor, solver: Solver) -> Solution | None:
        """Solve the map from `start`; None if the solver has to take the plain way."""
        return _solution(lambda limits: self.step.solve(start.contiguous(), limits), solver)

    def transposed(self, state: Tensor, out: Tensor) -> Callable[[Tensor, Solver], Solution | None]:
        """Return a function of `b` and a solver that solves `g = Jᵀ g + b`, where J is the derivative at `state`.

        Args:
            state: the state.
            out: the map's value there.
        """
        recorded, output = self.step.recorded(state.detach()), out.detach().clone()

        def solve(b: Tensor, solver: Solver) -> Solution | None:
            right = b.contiguous()
            return _solution(
                lambda limits: self.step.solve_adjoint(right, recorded, output, self.backward, limits, self.diagonal),
                solver,
            )

        return solve


def fused(step: Map, prepare: Map, inputs: LabelInput | None, wrap: Callable[[Map], Map] | None = None) -> Map:
    """Return `Ŷ ↦ step(prepare(Ŷ))`, with compiled solves if they apply.

    Args:
        step: the step; one with a fused form has it in its attribute `fused`.
        prepare: returns the step's input.
        inputs: `prepare` as factors and offsets of rows; None if it is not of this kind.
        wrap: changes the plain map, e.g. by a context in which it is called.
    """

    def plain(state: Tensor) -> Tensor:
        return step(prepare(state))

    whole = plain if wrap is None else wrap(plain)
    kernel = None if inputs is None else getattr(step, "fused", None)
    if inputs is None or kernel is None:
        return whole
    scale, backward = (column.expand_as(inputs.offset) for column in (inputs.scale, inputs.backward))
    diagonal = getattr(step, "jacobian", "exact") == "diagonal"
    return FusedMap(whole, replace(kernel, scale=scale, offset=inputs.offset), backward, diagonal)


def _solution(solve: Callable[[Limits], Outcome], solver: Solver) -> Solution | None:
    if type(solver) not in (Picard, Anderson) or solver.norm not in _NORMS or solver.max_steps < 1:
        return None
    memory = solver.memory if isinstance(solver, Anderson) else 0
    norm = _NORMS.index(solver.norm)
    fixed = memory == 0 and solver.tol == 0 and solver.growth is None
    limits = _kernels().Limits(solver.tol, solver.max_steps, norm, solver.growth, solver.rounding, memory, fixed)
    outcome = solve(limits)
    residuals = outcome.residuals
    if fixed:
        residuals = residuals[-1:]
        if not torch.tensor(residuals).isfinite().all():
            outcome = solve(replace(limits, fixed=False))  # stops where the values become infinite
            fixed, residuals = False, outcome.residuals
    status = _STATUSES[outcome.status]
    assert status is not None
    steps = solver.max_steps if fixed else len(residuals)
    return Solution(outcome.value, status, steps, residuals, outcome.contraction, solver.tol)
