"""IGNN* in plain PyTorch, written as its equations; `lignn.methods.IGNN` is compared with it.

Ã is a `torch.sparse` CSR tensor, the features are dense, and `Ã X` is computed once. Both solves are Python loops that
stop at the same tolerance. A step of the adjoint multiplies by the derivative of ReLU, by Ãᵀ and by Wᵀ.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Equilibrium(torch.autograd.Function):
    """Fixed point of `Z = ReLU(Ã Z W + B)` with its implicit gradient; Ã is symmetric."""

    @staticmethod
    def forward(ctx: Any, adj: Tensor, weight: Tensor, offset: Tensor, tol: float, steps: int) -> Tensor:
        """Iterate from zero."""
        z = torch.zeros_like(offset)
        for _ in range(steps):
            last, z = z, (adj @ (z @ weight) + offset).relu_()
            if (z - last).abs().max() <= tol:
                break
        ctx.save_for_backward(adj, weight, z)
        ctx.tol, ctx.steps = tol, steps
        return z

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Iterate `g ↦ Ãᵀ (g ∘ active) Wᵀ + b`."""
        adj, weight, z = ctx.saved_tensors
        active = z > 0
        g = grads[0]
        for _ in range(ctx.steps):
            last, g = g, (adj @ (g * active)) @ weight.T + grads[0]
            if (g - last).abs().max() <= ctx.tol:
                break
        g = g * active
        return None, (adj @ z).T @ g, g, None, None


class PlainIGNN(nn.Module):
    """IGNN*: a linear map of the L2-normalised rows of the equilibrium.

    Args:
        adj: Ã as a `torch.sparse` CSR tensor.
        x: features, dense.
        num_classes: c.
        hidden: width of Z.
        radius: bound κ/ρ(Ã) of the absolute sum of each column of W.
    """

    tol = 3e-6
    """A solve stops when no entry changes by more than this."""
    steps = 300
    """Maximum number of steps of a solve."""

    def __init__(self, adj: Tensor, x: Tensor, num_classes: int, hidden: int, radius: float) -> None:
        super().__init__()
        self.adj, self.propagated, self.radius = adj, adj @ x, radius
        self.weight = nn.Parameter(torch.empty(hidden, hidden))
        self.omega = nn.Parameter(torch.empty(x.shape[1], hidden))
        self.output = nn.Linear(hidden, num_classes, bias=False)

    def forward(self) -> Tensor:
        """Project W and return the logits."""
        with torch.no_grad():
            self.weight.copy_(_project(self.weight, self.radius))
        z = Equilibrium.apply(self.adj, self.weight, self.propagated @ self.omega, self.tol, self.steps)
        return self.output(functional.normalize(z, dim=1))


def _project(weight: Tensor, radius: float) -> Tensor:
    """Project each column onto the l1 ball."""
    size = weight.abs()
    ordered = size.sort(0, descending=True).values
    count = torch.arange(1, len(weight) + 1, dtype=weight.dtype)[:, None]
    excess = (ordered.cumsum(0) - radius) / count
    threshold = excess.gather(0, (ordered > excess).sum(0, keepdim=True) - 1)
    return torch.where(size.sum(0) > radius, weight.sign() * (size - threshold).clamp(min=0), weight)
