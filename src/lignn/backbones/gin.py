"""Graph isomorphism network."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import torch
from torch import Generator, Tensor, nn

from lignn.backbones.convolution import Convolution, Convolutional
from lignn.backbones.layers import EVERY, DenseLayers, layer_widths
from lignn.propagation import Adjacency, SparseMatrix
from lignn.propagation.adjacency import Normalization


class GINConv(Convolution):
    """`MLP((1+ε) H + A H)` with a two-layer MLP."""

    eps: Tensor

    def __init__(self, width: int, out: int, eps: float, train_eps: bool, generator: Generator | None = None) -> None:
        super().__init__()
        self.nn = DenseLayers([width, out, out], dropout=0.0, batch_norm=False, generator=generator)
        if train_eps:
            self.eps = nn.Parameter(torch.tensor([eps]))
        else:
            self.register_buffer("eps", torch.tensor([eps]))

    @property
    def offset(self) -> Tensor | None:
        """Bias of the MLP's first layer."""
        return self.nn.first.bias

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice = EVERY) -> Tensor:
        """`((1+ε) x + A x) Wᵀ` with the MLP's first weight."""
        first = self.nn.first
        if first.widens(x):
            return first.share((1 + self.eps) * x + adj @ x, columns)
        product = first.share(x, columns)
        return (1 + self.eps) * product + adj @ product

    def rest(self, total: Tensor, adj: Adjacency) -> Tensor:  # noqa: ARG002
        """The rest of the MLP."""
        return self.nn.rest(total)


class GIN(Convolutional):
    """`H_{l+1} = ReLU(MLP_l((1+ε_l) H_l + A H_l))`, `H_0 = [S | X]`, the last layer without ReLU.

    Xu et al., "How powerful are graph neural networks?", ICLR 2019, eq. 4.1. Edge weights scale the terms of the sum.
    Equal to PyG's `GIN` on `[S | X]`, with the same names of weights.

    Args:
        num_features: width of X.
        num_classes: c.
        label_inputs: width of the label state S.
        hidden: width of the hidden layers, inside and outside of the MLPs.
        num_layers: number of convolutions.
        dropout: probability, behind each ReLU between convolutions; none on the input.
        eps: ε of all layers (at first).
        train_eps: whether each ε_l is learnt.
        generator: draws the weights.
    """

    normalization: ClassVar[Normalization] = "none"
    self_loops: ClassVar[bool] = False

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        label_inputs: int = 0,
        hidden: int = 64,
        num_layers: int = 2,
        dropout: float = 0.0,
        eps: float = 0.0,
        train_eps: bool = False,
        generator: Generator | None = None,
    ) -> None:
        widths = layer_widths(label_inputs + num_features, hidden, num_layers, num_classes)
        convs = (GINConv(width, out, eps, train_eps, generator) for width, out in pairwise(widths))
        super().__init__(num_features, num_classes, label_inputs, dropout, convs)
