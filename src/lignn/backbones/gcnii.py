"""GCNII: a deep GCN by initial residual and identity mapping."""

from __future__ import annotations

import math

from torch import Generator, Tensor, nn

from lignn.backbones.backbone import LinearFirst
from lignn.backbones.dropout import Dropout
from lignn.backbones.layers import Linear, check_sizes, uniform
from lignn.errors import ConfigError
from lignn.propagation import Adjacency, SparseMatrix


class GCNIIConv(nn.Module):
    """`((1-β) I + β W)` applied to `(1-α) Ã H + α H_0`; PyG's `GCN2Conv` with shared weights."""

    def __init__(self, hidden: int, alpha: float, beta: float, generator: Generator | None) -> None:
        super().__init__()
        self.alpha, self.beta = alpha, beta
        self.weight1 = uniform((hidden, hidden), math.sqrt(3 / hidden), generator)

    def forward(self, hidden: Tensor, initial: Tensor, adj: Adjacency) -> Tensor:
        """One convolution."""
        mixed = (1 - self.alpha) * (adj @ hidden) + self.alpha * initial
        return (1 - self.beta) * mixed + self.beta * (mixed @ self.weight1)


class GCNII(LinearFirst):
    """`H_{l+1} = ReLU(((1-α) Ã H_l + α H_0) ((1-β_l) I + β_l W_l))`, `β_l = log(θ/l + 1)`, between two linear maps.

    Chen et al., "Simple and deep graph convolutional networks", ICML 2020, eq. 5; `H_0 = ReLU([S | X] W_inᵀ + b_in)`.

    Args:
        num_features: width of X.
        num_classes: c.
        label_inputs: width of the label state S.
        hidden: width of all layers.
        num_layers: number of convolutions.
        dropout: probability, before each convolution and before the output map; H_0 as the residual and the input are
            left whole.
        alpha: share of H_0 in each layer, α.
        theta: strength of the weights against the identity, θ.
        generator: draws the weights.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        label_inputs: int = 0,
        hidden: int = 64,
        num_layers: int = 2,
        dropout: float = 0.0,
        alpha: float = 0.1,
        theta: float = 0.5,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(num_features, num_classes, label_inputs)
        check_sizes(hidden, num_layers)
        if theta < 0:
            raise ConfigError(f"theta: a number of at least 0 is needed, got {theta}")
        self.lin_in = Linear(label_inputs + num_features, hidden, generator=generator)
        self.convs = nn.ModuleList(
            GCNIIConv(hidden, alpha, math.log(theta / layer + 1), generator) for layer in range(1, num_layers + 1)
        )
        self.dropouts = nn.ModuleList(Dropout(dropout) for _ in range(num_layers + 1))
        self.lin_out = Linear(hidden, num_classes, generator=generator)

    @property
    def first_bias(self) -> Tensor | None:
        """The bias b_in."""
        return self.lin_in.bias

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice) -> Tensor:  # noqa: ARG002
        """`x W_inᵀ`."""
        return self.lin_in.share(x, columns)

    def rest(self, hidden: Tensor, adj: Adjacency) -> Tensor:
        """All convolutions and the output map."""
        initial = hidden = hidden.relu()
        for conv, dropout in zip(self.convs, self.dropouts[:-1], strict=True):
            hidden = conv(dropout(hidden), initial, adj).relu()
        return self.lin_out(self.dropouts[-1](hidden))
