"""IGNN*: the implicit graph neural network of Gu et al., whose state is a representation, not labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from lignn.backbones.layers import check_sizes, uniform
from lignn.equilibrium import Implicit, Solution, differentiable, solve
from lignn.equilibrium.solvers import Solver
from lignn.errors import ConfigError
from lignn.methods.problem import Problem
from lignn.methods.representation import Representation
from lignn.propagation import Adjacency


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
        adj = problem.adjacency()
        assert problem.x is not None
        step = RectifiedMap(adj, self.weight, adj @ (problem.x @ self.omega))
        start = step.offset.detach().relu()  # the step from zero, which needs no products
        if not start.norm().isfinite():
            start = torch.zeros_like(start)  # the solve then ends as non-finite at its first step
        solution = known or solve(step, start, self.solver, throw=False)
        return differentiable(step, solution, self.solver, gradient=Implicit(solver=self.solver))


@dataclass(frozen=True, eq=False)
class RectifiedMap:
    """`Z ↦ ReLU(Ã Z W + B)`.

    Attributes:
        adj: Ã.
        weight: W.
        offset: B.
    """

    adj: Adjacency
    weight: Tensor
    offset: Tensor

    def __call__(self, z: Tensor) -> Tensor:
        """Compute one step."""
        return torch.addmm(self.offset, self.adj @ z, self.weight).relu_()

    def taped(self, z: Tensor) -> tuple[Tensor, Callable[[Tensor, Solver], Solution]]:
        """Compute one step with the gradients of W and B; also return what solves its adjoint in Z.

        The adjoint is `G = Ãᵀ (G ∘ active) Wᵀ + ∂L/∂Z`. Without it on the tape, autograd does not compute one more step
        of it for Z, which nobody needs.
        """
        out = self(z.detach())
        active, transposed = out.detach() > 0, self.weight.detach().T

        def solve_adjoint(b: Tensor, solver: Solver) -> Solution:
            return solve(lambda g: torch.addmm(b, self.adj.T @ (g * active), transposed), b, solver, throw=False)

        return out, solve_adjoint


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
