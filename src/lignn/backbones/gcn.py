"""Graph convolutional network."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Generator, Tensor, nn

from lignn.backbones.convolution import Convolution, Convolutional
from lignn.backbones.layers import EVERY, Linear, layer_widths
from lignn.propagation import Adjacency, SparseMatrix


class GCNConv(Convolution):
    """`Ã H Wᵀ + b`."""

    def __init__(self, width: int, out: int, generator: Generator | None = None) -> None:
        super().__init__()
        self.lin = Linear(width, out, bias=False, glorot=True, generator=generator)
        self.bias = nn.Parameter(torch.zeros(out))

    @property
    def offset(self) -> Tensor:
        """The bias."""
        return self.bias

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice = EVERY) -> Tensor:
        """`Ã x Wᵀ`."""
        return self.lin.propagated(x, adj, columns)


class GCN(Convolutional):
    """`H_{l+1} = ReLU(Ã H_l W_lᵀ + b_l)`, `H_0 = [S | X]`, the last layer without ReLU.

    Kipf and Welling, "Semi-supervised classification with graph convolutional networks", ICLR 2017, eq. 2; `Ã = D^-1/2
    (A+I) D^-1/2`. Equal to PyG's `GCN` on `[S | X]`, with the same names of weights.

    Args:
        num_features: width of X.
        num_classes: c.
        label_inputs: width of the label state S.
        hidden: width of the hidden layers.
        num_layers: number of convolutions.
        dropout: probability, behind each ReLU; none on the input.
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
        generator: Generator | None = None,
    ) -> None:
        widths = layer_widths(label_inputs + num_features, hidden, num_layers, num_classes)
        convs = (GCNConv(width, out, generator) for width, out in pairwise(widths))
        super().__init__(num_features, num_classes, label_inputs, dropout, convs)
