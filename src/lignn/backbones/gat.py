"""Graph attention network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Generator, Tensor, nn

from lignn.backbones.backbone import check_choice
from lignn.backbones.layers import ALL_COLUMNS, Dropout, Linear, uniform
from lignn.backbones.stack import Convolution, ConvolutionStack
from lignn.errors import ConfigError
from lignn.propagation import Adjacency, SparseMatrix
from lignn.propagation.adjacency import Normalization
from lignn.propagation.attention import attend


class GATConv(Convolution):
    """`Σ_j α_ij (W h)_j + b` for each head; the heads are concatenated or averaged."""

    def __init__(
        self, width: int, channels: int, heads: int, concat: bool, dropout: float, generator: Generator | None = None
    ) -> None:
        super().__init__()
        self.heads, self.concat = heads, concat
        self.lin = Linear(width, heads * channels, bias=False, glorot=True, generator=generator)
        bound = math.sqrt(6 / (heads + channels))
        self.att_src = uniform((1, heads, channels), bound, generator)
        self.att_dst = uniform((1, heads, channels), bound, generator)
        self.bias = nn.Parameter(torch.zeros(heads * channels if concat else channels))
        self.dropout = Dropout(dropout)

    @property
    def linear_bias(self) -> None:
        """None: the bias is added after the attention."""

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice = ALL_COLUMNS) -> Tensor:  # noqa: ARG002
        """Compute `x Wᵀ`."""
        return self.lin.product(x, columns)

    def after_linear(self, total: Tensor, adj: Adjacency) -> Tensor:
        """Apply the attention to `W h`."""
        values = total.view(total.shape[0], self.heads, -1)
        source, target = (values * self.att_src).sum(2), (values * self.att_dst).sum(2)
        keep = self.dropout.mask((adj.nnz, self.heads), values)
        out = attend(adj, values, source, target, slope=0.2, keep=keep)
        return (out.flatten(1) if self.concat else out.mean(1)) + self.bias


@dataclass(eq=False, repr=False)
class GAT(ConvolutionStack):
    """`h'_i = σ(Σ_j α_ij W h_j)` with `α_ij = softmax_j(LeakyReLU(aᵀ [W h_i | W h_j]))`, `H_0 = [S | X]`.

    Veličković et al., "Graph attention networks", ICLR 2018, eq. 3 to 6. Each node has a self-loop, and LeakyReLU the
    slope 0.2. The heads are concatenated in hidden layers and averaged in the last. An edge of weight w counts as w
    parallel edges. Equal to PyG's `GAT` on `[S | X]`, with the same names of weights.

    The arguments num_features, num_classes, label_inputs, hidden, num_layers, dropout and generator are those of
    `LinearFirst`, residual and norm those of `ConvolutionStack`; `hidden` is the width of all heads together, and
    dropout is also applied to the coefficients α.

    Args:
        heads: number of heads in each layer, a divisor of `hidden`.
        activation: "relu" as in PyG's model, or "elu" as in the paper.
    """

    normalization: ClassVar[Normalization] = "none"
    tried_from = "good"
    streams: ClassVar[bool] = False  # attention is no product with a fixed Ã

    heads: int = 8
    activation: Literal["relu", "elu"] = "relu"

    def __post_init__(self, generator: Generator | None) -> None:
        check_choice("activation", self.activation, ("relu", "elu"))
        if self.heads < 1 or self.hidden % self.heads:
            raise ConfigError(
                f"heads: {self.hidden} hidden channels cannot be shared by {self.heads} heads; use a divisor"
            )
        super().__post_init__(generator)

    def convolution(self, width: int, out: int, generator: Generator | None) -> GATConv:
        """Create a convolution from `width` to `out` channels, all heads together."""
        return GATConv(width, out // self.heads, self.heads, True, self.dropout, generator)

    def last_convolution(self, width: int, generator: Generator | None) -> GATConv:
        """Create the last convolution, which averages its heads."""
        return GATConv(width, self.num_classes, self.heads, False, self.dropout, generator)

    def activate(self, hidden: Tensor) -> Tensor:
        """Apply the activation between two convolutions."""
        return hidden.relu() if self.activation == "relu" else nn.functional.elu(hidden)
