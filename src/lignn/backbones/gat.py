"""Graph attention network."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import ClassVar, Literal

import torch
from torch import Generator, Tensor, nn

from lignn.backbones.backbone import check_choice
from lignn.backbones.convolution import Convolution, Convolutional
from lignn.backbones.dropout import Dropout
from lignn.backbones.layers import EVERY, Linear, layer_widths, uniform
from lignn.errors import ConfigError
from lignn.propagation import Adjacency, SparseMatrix
from lignn.propagation.adjacency import Normalization
from lignn.propagation.attention import attend


class GATConv(Convolution):
    """`Σ_j α_ij (W h)_j + b` for each head; the heads side by side, or their mean."""

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
    def offset(self) -> None:
        """Nothing: the bias is added behind the attention."""

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice = EVERY) -> Tensor:  # noqa: ARG002
        """`x Wᵀ`."""
        return self.lin.share(x, columns)

    def rest(self, total: Tensor, adj: Adjacency) -> Tensor:
        """The attention over `W h`."""
        values = total.view(total.shape[0], self.heads, -1)
        source, target = (values * self.att_src).sum(2), (values * self.att_dst).sum(2)
        keep = self.dropout.mask((adj.nnz, self.heads), values)
        out = attend(adj, values, source, target, slope=0.2, keep=keep)
        return (out.flatten(1) if self.concat else out.mean(1)) + self.bias


class GAT(Convolutional):
    """`h'_i = σ(Σ_j α_ij W h_j)` with `α_ij = softmax_j(LeakyReLU(aᵀ [W h_i | W h_j]))`, `H_0 = [S | X]`.

    Veličković et al., "Graph attention networks", ICLR 2018, eq. 3 to 6: the heads of hidden layers side by side, those
    of the last averaged, LeakyReLU of slope 0.2, a self-loop at each node. An edge of weight w counts as w parallel
    ones. Equal to PyG's `GAT` on `[S | X]`, with the same names of weights.

    Args:
        num_features: width of X.
        num_classes: c.
        label_inputs: width of the label state S.
        hidden: width of the hidden layers, all heads together.
        num_layers: number of convolutions.
        dropout: probability, behind each activation and on the attention coefficients; none on the input.
        heads: number of heads in each layer.
        activation: "relu" as PyG's model, or "elu" as the authors of GAT.
        generator: draws the weights.
    """

    normalization: ClassVar[Normalization] = "none"

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        label_inputs: int = 0,
        hidden: int = 64,
        num_layers: int = 2,
        dropout: float = 0.0,
        heads: int = 8,
        activation: Literal["relu", "elu"] = "relu",
        generator: Generator | None = None,
    ) -> None:
        check_choice("activation", activation, ("relu", "elu"))
        if heads < 1 or hidden % heads:
            raise ConfigError(f"heads: {hidden} hidden channels cannot be shared by {heads} heads; use a divisor")
        widths = layer_widths(label_inputs + num_features, hidden, num_layers, num_classes)
        convs = [
            GATConv(width, channels // heads, heads, True, dropout, generator)
            for width, channels in pairwise(widths[:-1])
        ]
        convs.append(GATConv(widths[-2], num_classes, heads, False, dropout, generator))
        super().__init__(num_features, num_classes, label_inputs, dropout, convs)
        self._activation = nn.functional.relu if activation == "relu" else nn.functional.elu

    def activation(self, hidden: Tensor) -> Tensor:
        """Between two convolutions."""
        return self._activation(hidden)
