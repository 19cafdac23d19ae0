"""Jumping knowledge network."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Generator, Tensor

from lignn.backbones.convolution import Convolutional
from lignn.backbones.dropout import Dropout
from lignn.backbones.gcn import GCNConv
from lignn.backbones.layers import Linear, layer_widths
from lignn.propagation import Adjacency


class JKNet(Convolutional):
    """`[H_1 | … | H_L] Wᵀ + b` over GCN layers `H_{l+1} = ReLU(Ã H_l W_lᵀ + b_l)`, `H_0 = [S | X]`.

    Xu et al., "Representation learning on graphs with jumping knowledge networks", ICML 2018, section 4
    (concatenation). Equal to PyG's `GCN(jk="cat")` on `[S | X]`, with the same names of weights.

    Args:
        num_features: width of X.
        num_classes: c.
        label_inputs: width of the label state S.
        hidden: width of each layer.
        num_layers: number of convolutions, L.
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
        widths = layer_widths(label_inputs + num_features, hidden, num_layers, hidden)
        convs = (GCNConv(width, out, generator) for width, out in pairwise(widths))
        super().__init__(num_features, num_classes, label_inputs, dropout, convs)
        self.dropouts.append(Dropout(dropout))
        self.lin = Linear(num_layers * hidden, num_classes, generator=generator)

    def rest(self, hidden: Tensor, adj: Adjacency) -> Tensor:
        """All other convolutions, and the output from all of them."""
        layers = [self.dropouts[0](hidden.relu())]
        for conv, dropout in zip(self.convs[1:], self.dropouts[1:], strict=True):
            layers.append(dropout(conv(layers[-1], adj).relu()))
        return self.lin(torch.cat(layers, 1))
