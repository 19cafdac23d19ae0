"""GCNII, a deep GCN with initial residual and identity mapping."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Generator, Tensor, nn

from lignn.backbones.backbone import LinearFirst, Norms
from lignn.backbones.layers import Dropout, Linear, check_sizes, spectral_norm, uniform
from lignn.errors import ConfigError
from lignn.propagation import Adjacency, SparseMatrix


class GCNIIConv(nn.Module):
    """`((1-α) Ã H + α H_0) ((1-β) I + β W)`, equal to PyG's `GCN2Conv` with shared weights."""

    def __init__(self, hidden: int, alpha: float, beta: float, generator: Generator | None) -> None:
        super().__init__()
        self.alpha, self.beta = alpha, beta
        self.weight1 = uniform((hidden, hidden), math.sqrt(3 / hidden), generator)

    def forward(self, hidden: Tensor, initial: Tensor, adj: Adjacency) -> Tensor:
        """Apply the convolution to H, given H_0."""
        mixed = (1 - self.alpha) * (adj @ hidden) + self.alpha * initial
        return (1 - self.beta) * mixed + self.beta * (mixed @ self.weight1)


@dataclass(eq=False, repr=False)
class GCNII(LinearFirst):
    """`H_{l+1} = ReLU(((1-α) Ã H_l + α H_0) ((1-β_l) I + β_l W_l))`, `β_l = log(θ/l + 1)`, between two linear maps.

    Chen et al., "Simple and deep graph convolutional networks", ICML 2020, eq. 5; `H_0 = ReLU([S | X] W_inᵀ + b_in)`.

    The arguments num_features, num_classes, label_inputs, hidden, num_layers, dropout and generator are those of
    `LinearFirst`; num_layers counts the convolutions. Dropout is applied before each convolution and before the output
    map, but not to the residual H_0.

    Args:
        alpha: share of H_0 in each layer, α.
        theta: strength of the weights relative to the identity, θ.
    """

    bounded: ClassVar[bool] = True

    alpha: float = 0.1
    theta: float = 0.5

    def __post_init__(self, generator: Generator | None) -> None:
        super().__post_init__(generator)
        check_sizes(self.hidden, self.num_layers)
        if self.theta < 0:
            raise ConfigError(f"theta: a number of at least 0 is needed, got {self.theta}")
        betas = [math.log(self.theta / layer + 1) for layer in range(1, self.num_layers + 1)]
        self.lin_in = Linear(self.input_width, self.hidden, generator=generator)
        self.convs = nn.ModuleList(GCNIIConv(self.hidden, self.alpha, beta, generator) for beta in betas)
        self.dropouts = nn.ModuleList(Dropout(self.dropout) for _ in range(self.num_layers + 1))
        self.lin_out = Linear(self.hidden, self.num_classes, generator=generator)

    @property
    def linear_bias(self) -> Tensor | None:
        """The bias b_in."""
        return self.lin_in.bias

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice) -> Tensor:  # noqa: ARG002
        """Compute `x W_inᵀ`."""
        return self.lin_in.product(x, columns)

    def after_linear(self, hidden: Tensor, adj: Adjacency) -> Tensor:
        """Apply all convolutions and the output map."""
        initial = hidden = hidden.relu()
        for conv, dropout in zip(self.convs, self.dropouts[:-1], strict=True):
            hidden = conv(dropout(hidden), initial, adj).relu()
        return self.lin_out(self.dropouts[-1](hidden))

    def gain(self, norms: Norms, centred: bool) -> Tensor:
        """Return `g_L ‖W_out‖₂`, `g_{l+1} = ((1-α) ‖Ã‖ g_l + α g_0) ‖(1-β_l) I + β_l W_l‖₂`, `g_0 = ‖W_in‖₂`."""
        initial = gain = self.lin_in.gain(self.label_columns, (False, centred))
        for conv in cast(Iterable[GCNIIConv], self.convs):
            mixed = (1 - conv.alpha) * norms[0] * gain + conv.alpha * initial
            gain = mixed * spectral_norm((1 - conv.beta) * torch.eye(self.hidden) + conv.beta * conv.weight1.cpu())
        return gain * self.lin_out.gain(centred=(centred, False))

    def label_weights(self) -> list[Tensor]:
        """Return the label columns of W_in."""
        return [self.lin_in.weight.detach()[:, self.label_columns]]
