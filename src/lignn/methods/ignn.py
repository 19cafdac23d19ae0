"""IGNN*: the implicit graph neural network of Gu et al., whose state is a representation, not labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor
from torch.autograd.function import once_differentiable

from lignn.backbones.layers import check_sizes, uniform
from lignn.equilibrium import Map, Solution, solve
from lignn.equilibrium.solvers import Solver
from lignn.errors import ConfigError
from lignn.methods.problem import Problem
from lignn.methods.representation import Representation
from lignn.propagation import Adjacency, SparseMatrix


class IGNN(Representation):
    """`Z = ReLU(Ã Z W + Ã X Ω)`, output a linear map of the L2-normalised rows of Z.

    Gu et al., "Implicit graph neural networks", NeurIPS 2020; the paper's IGNN*. W is projected before every forward
    pass so that `‖W‖₁ ρ(Ã) ≤ κ < 1`, which makes the equilibrium unique. The norm is the 1-norm (the largest column
    sum) because W is on the right here.

    Args:
        num_features: width of X.
        num_classes: c.
        hidden: width of Z.
        kappa: κ.
        dropout: dropout probability, before the output map.
        solver: solver of the equilibrium, forward and backward.
        generator: draws the weights.
    """

    proof: ClassVar[str] = "the weights are projected so that the map contracts, ‖W‖₁ ρ(Ã) ≤ κ < 1"

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        hidden: int = 64,
        kappa: float = 0.9,
        dropout: float = 0.0,
        solver: Solver | None = None,
        generator: Generator | None = None,
    ) -> None:
        check_sizes(hidden)
        super().__init__(hidden, num_classes, solver, True, dropout, generator)
        if not 0 < kappa < 1:
            raise ConfigError(f"κ must be between 0 and 1, got {kappa}")
        self.kappa = kappa
        self.weight = uniform((hidden, hidden), hidden**-0.5, generator)
        self.omega = uniform((num_features, hidden), hidden**-0.5, generator)

    def prepare(self, problem: Problem) -> None:
        """Project W so that `‖W‖₁ ρ(Ã) ≤ κ`."""
        radius = problem.once("spectral radius", problem.adjacency().spectral_radius)
        with torch.no_grad():
            self.weight.copy_(project_columns(self.weight, self.kappa / max(radius, 1e-12)))

    def represent(self, problem: Problem, known: Solution | None = None) -> Solution:
        """Return the equilibrium of `Z ↦ ReLU(Ã Z W + Ã X Ω)`."""
        adj, x, weight = problem.adjacency(), problem.x, self.weight.detach()
        assert x is not None
        solution = known or self._solve(adj, weight, adj @ (x @ self.omega.detach()))

        def backward(b: Tensor) -> Tensor:
            active = solution.value > 0
            solution.adjoints.append(
                solve(lambda g: torch.addmm(b, adj.T @ (g * active), weight.T), b, self.solver, throw=False)
            )
            return solution.adjoints[-1].value * active

        value = _Equilibrium.apply(self.weight, self.omega, x, solution.value, adj, backward)
        return replace(solution, value=value)

    def _solve(self, adj: Adjacency, weight: Tensor, offset: Tensor) -> Solution:
        """Solve `Z = ReLU(Ã Z W + B)`."""
        start = offset.relu()  # the step from zero, which needs no products
        if not start.norm().isfinite():
            start = torch.zeros_like(start)  # the solve then ends as non-finite at its first step
        return solve(lambda z: torch.addmm(offset, adj @ z, weight).relu_(), start, self.solver, throw=False)


class _Equilibrium(torch.autograd.Function):
    """The solved Z; backward by the implicit formula.

    The gradient before ReLU is `H = G ∘ [Z > 0]` with the adjoint `G = Ãᵀ H Wᵀ + ∂L/∂Z`. Those of the weights are
    `Zᵀ Ãᵀ H` and `Xᵀ Ãᵀ H`. So a known Z is differentiated without one more step of the map.
    """

    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,  # noqa: ARG004
        omega: Tensor,
        x: Tensor | SparseMatrix,
        z: Tensor,
        adj: Adjacency,
        backward: Map,
    ) -> Tensor:
        ctx.save_for_backward(omega, z)
        ctx.x, ctx.adj, ctx.solve = x, adj, backward
        return z.view_as(z)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, b: Tensor) -> tuple[Tensor | None, ...]:
        omega, z = ctx.saved_tensors
        propagated = ctx.adj.T @ ctx.solve(b)
        features = propagated @ omega.T if ctx.needs_input_grad[2] else None
        return z.T @ propagated, ctx.x.T @ propagated, features, None, None, None


def project_columns(weight: Tensor, radius: float) -> Tensor:
    """Return the nearest matrix whose columns have absolute sums of at most `radius`.

    Each column is projected onto the l1 ball: all its entries shrink by one threshold (Duchi et al., ICML 2008).
    Columns that are outside the ball only by rounding are left as they are.
    """
    size = weight.abs()
    outside = size.sum(0) > radius * (1 + len(weight) * torch.finfo(weight.dtype).eps)
    if not outside.any():
        return weight
    ordered = size[:, outside].sort(0, descending=True).values
    excess = ordered.cumsum(0) - radius
    count = torch.arange(1, len(weight) + 1, dtype=weight.dtype, device=weight.device)[:, None]
    last = ((ordered * count > excess).sum(0) - 1).clamp(min=0)  # rounding of huge entries may leave none
    threshold = (excess / count).gather(0, last[None])
    projected = weight.clone()
    projected[:, outside] = weight[:, outside].sign() * (size[:, outside] - threshold).clamp(min=0)
    return projected
