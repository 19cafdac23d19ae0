"""LI-GCN as a good PyG user writes Algorithm 1, and IGNN* in plain PyTorch; `lignn bench` compares with them.

They import nothing from lignn. The network is `torch_geometric.nn.GCN` with `edge_index` on the dense input
`[state | X]`. The forward solve is a Python loop without gradients, followed by one taped step. A step of the adjoint
is one vector-Jacobian product.

Three things keep it fast: the edges are normalised once; the solve writes the state into the first columns of one input
tensor instead of concatenating in every step; an adjoint step computes the gradient of the state only, not those of the
weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GCN
from torch_geometric.nn.conv.gcn_conv import gcn_norm


@dataclass(frozen=True)
class Budget:
    """Maximum number of steps of a solve, and the root-mean-square change at which it stops earlier."""

    steps: int
    tol: float = 0.0


@dataclass(frozen=True, eq=False)
class Data:
    """A graph with its known labels.

    Attributes:
        inputs: `[state | X]`, n×(c + d); the first c columns are overwritten by every solve.
        edge_index: edges with self-loops.
        edge_weight: entries of `Ã = D^-1/2 (A+I) D^-1/2`.
        onehot: one-hot labels, n×c.
        known: mask of the training nodes, M_t.
    """

    inputs: Tensor
    edge_index: Tensor
    edge_weight: Tensor
    onehot: Tensor
    known: Tensor

    @classmethod
    def of(cls, inputs: Tensor, edge_index: Tensor, y: Tensor, known: Tensor, num_classes: int) -> Data:
        """Normalise the edges once, and encode the labels."""
        edge_index, edge_weight = gcn_norm(edge_index, num_nodes=len(y), dtype=inputs.dtype)
        onehot = functional.one_hot(y, num_classes).to(inputs.dtype)
        return cls(inputs, edge_index, edge_weight, onehot, known)


class LIGCN(nn.Module):
    """LI-GCN: `Ŷ = softmax(f_θ(A, [clamp(Ŷ) | X]))` with the paper's implicit gradient.

    The masked label strategy is applied in the taped step.

    Args:
        width: width of the input, c + d.
        num_classes: number of classes c.
        hidden: width of the hidden layer.
        mask_rate: mask rate β.
        forward: budget of the forward solve.
        backward: budget of the adjoint.
    """

    def __init__(
        self, width: int, num_classes: int, hidden: int, mask_rate: float, forward: Budget, backward: Budget
    ) -> None:
        super().__init__()
        self.net = GCN(width, hidden, num_layers=2, out_channels=num_classes, normalize=False)
        self.num_classes, self.mask_rate = num_classes, mask_rate
        self.forward_budget, self.backward_budget = forward, backward

    @torch.no_grad()
    def solve(self, data: Data) -> Tensor:
        """Iterate from zero: lines 2 to 8 without forward mask."""
        labels = data.inputs[:, : self.num_classes]
        state = torch.zeros_like(data.onehot)
        for _ in range(self.forward_budget.steps):
            labels.copy_(torch.where(data.known[:, None], data.onehot, state))
            last, state = state, self.net(data.inputs, data.edge_index, data.edge_weight).softmax(1)
            if rms(state - last) <= self.forward_budget.tol:
                break
        return state

    def backward(self, data: Data, hidden: Tensor) -> float:
        """Return the loss of the nodes in `hidden`, and set the gradients of the weights: lines 9 to 16."""
        state = torch.where(data.known[:, None], data.onehot, self.solve(data))
        shown = ~hidden[:, None]
        masked = (state * shown / (1 - self.mask_rate)).requires_grad_()
        inputs = torch.cat([masked, data.inputs[:, self.num_classes :]], 1)
        out = self.net(inputs, data.edge_index, data.edge_weight).softmax(1)
        supervised = hidden & data.known
        loss = functional.nll_loss(out[supervised].log(), data.onehot[supervised].argmax(1))
        (b,) = torch.autograd.grad(loss, out, retain_graph=True)
        carries = shown & ~data.known[:, None]
        g = b
        for _ in range(self.backward_budget.steps):
            (product,) = torch.autograd.grad(out, masked, g, retain_graph=True)
            last, g = g, product.mul_(carries).add_(b)
            if rms(g - last) <= self.backward_budget.tol:
                break
        out.backward(g)
        return loss.item()

    def epoch(self, data: Data, optimizer: torch.optim.Optimizer, generator: Generator) -> float:
        """Update the weights once and return the loss."""
        hidden = torch.rand(len(data.known), generator=generator) < self.mask_rate
        while not (hidden & data.known).any():
            hidden = torch.rand(len(data.known), generator=generator) < self.mask_rate
        optimizer.zero_grad()
        loss = self.backward(data, hidden)
        optimizer.step()
        return loss


def rms(change: Tensor) -> float:
    """Return the root mean square."""
    return change.square().mean().sqrt().item()


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
