"""Compiled solves: where they apply, and how a step becomes one. This is the one place that chooses.

A map `Ŷ ↦ σ(Ã relu(Ã (scale ∘ Ŷ + offset) W + F) V + b)` is solved by the kernels of `lignn.propagation.fused`, and so
is its adjoint. Every other map, solver, norm or device takes the plain way, which also is the reference in the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from lignn.backbones import GCN, Dropout
from lignn.backbones.gcn import GCNConv
from lignn.backbones.layers import Linear
from lignn.equilibrium import Map, Solution, Status
from lignn.equilibrium.solvers import Anderson, Picard, Solver
from lignn.labels import LabelInput

if TYPE_CHECKING:
    from lignn.methods.steps import BoundStep
    from lignn.propagation.fused import FusedStep, Limits, Outcome

MOST_CLASSES = 16
"""With more classes, the columns of a tile no longer fit into the registers."""

_NORMS = ("rms", "max", "relative")
_STATUSES = (Status.BUDGET, Status.CONVERGED, Status.BUDGET, Status.STALLED, Status.DIVERGING, Status.NON_FINITE)
"""Norms and statuses by their numbers in `propagation.solve_kernel`; 0 is a solve that has not ended."""


CompiledAdjoint = Callable[[Tensor, Solver], Solution | None]
"""Function of `b` and a solver that solves `g = Jᵀ g + b`, or returns None for a solver that it does not have."""


@cache
def _kernels(name: str = "fused") -> Any:
    return import_module(f"lignn.propagation.{name}")  # imports Numba, so not before the first solve


def step_of(bound: BoundStep) -> FusedStep | None:
    """Return the fused step of a bound network, without an input yet; None if the network has to take the plain way."""
    backbone, features = bound.backbone, bound.features
    if not (type(backbone) is GCN and features.device.type == "cpu" and _is_plain(backbone)):
        return None
    first, second, bias = (weight.detach() for weight in bound.weights)
    mask = cast(Dropout, backbone.dropouts[0]).mask(tuple(features.shape), features)
    kernels, nothing = _kernels(), features.new_empty(0)
    return kernels.FusedStep(
        bound.adj,
        first.contiguous(),
        second.T.contiguous(),
        kernels.tiled(features.detach()),
        nothing,
        nothing,
        bias,
        None if mask is None else kernels.tiled(mask),
        bound.problem.labels.multilabel,
        mask,
    )


def weights_of(backbone: GCN) -> tuple[Tensor, Tensor, Tensor]:
    """Return the weights of a step: of the label inputs (hidden×c), of the last layer (c×hidden), and its bias."""
    first, second = (cast(GCNConv, conv) for conv in backbone.convs)
    return first.lin.weight[:, : backbone.label_inputs], second.lin.weight, second.bias


def _is_plain(backbone: GCN) -> bool:
    """Return whether a GCN has two layers and few classes, and no part of its step was exchanged or is watched."""
    if not 1 <= backbone.label_inputs == backbone.num_classes <= MOST_CLASSES:
        return False
    if backbone.norm != "none":
        return False
    convs, dropouts = [*backbone.convs], [*backbone.dropouts]
    if [type(part) for part in convs + dropouts] != [GCNConv, GCNConv, Dropout]:
        return False
    (dropout,), parts = cast(list[Dropout], dropouts), [backbone, *convs, *dropouts, *(conv.lin for conv in convs)]
    redrawn = dropout.training and dropout.p > 0 and dropout.seed is None  # another mask in every call
    watched = any(part._forward_hooks or part._forward_pre_hooks or part._backward_hooks for part in parts)
    replaced = any(vars(part).keys() & _METHODS for part in parts)  # methods of one instance
    return not (redrawn or watched or replaced) and all(type(part) is Linear for part in parts[-2:])


_METHODS = {"features", "step", "forward", "linear", "after_linear", "activate", "propagated", "product", "mask"}


@dataclass(frozen=True, eq=False)
class InputMap:
    """The map `Ŷ ↦ step(prepare(Ŷ))`. Its solves, taped steps and adjoints are compiled where that applies.

    Attributes:
        step: the step; one with a fused form has it in its attribute `fused`.
        prepare: returns the step's input.
        inputs: `prepare` as factors and offsets of rows; None if it is not of this kind.
        context: in which the map is called in PyTorch.
    """

    step: Map
    prepare: Map
    inputs: LabelInput | None
    context: Callable[[], AbstractContextManager[None]] = nullcontext

    def __call__(self, state: Tensor) -> Tensor:
        """Compute one step, with gradients."""
        return self.taped(state)[0]

    def taped(self, state: Tensor) -> tuple[Tensor, CompiledAdjoint | None]:
        """Compute one step with gradients; also return what solves its adjoint, None if that takes the plain way."""
        step, inputs = self._fused, self.inputs
        taped = torch.is_grad_enabled() and step is not None and step.matrix.runs_here(state)
        if step is None or inputs is None or not taped or inputs.offset.requires_grad:  # an explanation asks for that
            with self.context():
                return self.step(self.prepare(state)), None
        bound, tape = cast("BoundStep", self.step), step.tape(state.detach().contiguous())
        logits = _kernels("taped").Taped.apply(state, bound.features, *bound.weights, step, tape, inputs.backward)
        if not bound.activated:  # logits cannot be iterated
            return logits, None
        out = bound.output(logits)
        output, diagonal = out.detach(), bound.jacobian == "diagonal"

        def solve(b: Tensor, solver: Solver) -> Solution | None:
            limits, right = _limits(solver), b.contiguous()
            if limits is None:
                return None
            return _solution(
                lambda limits: step.solve_adjoint(right, tape.recorded, output, inputs.backward, limits, diagonal),
                limits,
            )

        return out, solve

    @cached_property
    def _fused(self) -> FusedStep | None:
        kernel: FusedStep | None = None if self.inputs is None else getattr(self.step, "fused", None)
        if kernel is None or self.inputs is None:
            return None
        return replace(kernel, scale=self.inputs.scale, offset=self.inputs.offset)

    def iterate(self, start: Tensor, solver: Solver) -> Solution | None:
        """Solve the map from `start` in compiled code; None if it has to take the plain way."""
        limits, step = _limits(solver), self._fused
        if limits is None or step is None:
            return None
        return _solution(lambda limits: step.solve(start.contiguous(), limits), limits)


def _limits(solver: Solver) -> Limits | None:
    """Return the settings of a solver for the kernels; None for solvers and norms that they do not have."""
    if type(solver) not in (Picard, Anderson) or solver.norm not in _NORMS or solver.max_steps < 1:
        return None
    return _limits_of(solver)


@lru_cache(maxsize=64)
def _limits_of(solver: Solver) -> Limits:
    memory = solver.memory if isinstance(solver, Anderson) else 0
    fixed = solver.follows_map and solver.tol == 0 and solver.growth is None
    norm = _NORMS.index(str(solver.norm))
    return _kernels().Limits(solver.tol, solver.max_steps, norm, solver.growth, solver.rounding, memory, fixed)


def _solution(solve: Callable[[Limits], Outcome], limits: Limits) -> Solution:
    """Run a compiled solve, and return its outcome as a solution."""
    outcome, fixed = solve(limits), limits.fixed
    if fixed and not math.isfinite(outcome.residuals[-1]):
        outcome, fixed = solve(replace(limits, fixed=False)), False  # stops where the values become infinite
    residuals = outcome.residuals[-1:] if fixed else outcome.residuals
    status = _STATUSES[outcome.status]
    return Solution(outcome.value, status, len(outcome.residuals), residuals, outcome.contraction, limits.tol)
