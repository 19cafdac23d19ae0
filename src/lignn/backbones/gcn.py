"""Graph convolutional network."""

from __future__ import annotations

from typing import ClassVar, cast

import torch
from torch import Generator, Tensor, nn

from lignn.backbones.backbone import Norms
from lignn.backbones.layers import ALL_COLUMNS, Linear, Sides
from lignn.backbones.stack import Convolution, ConvolutionStack
from lignn.propagation import Adjacency, SparseMatrix


class GCNConv(Convolution):
    """`Ã H Wᵀ + b`."""

    def __init__(self, width: int, out: int, generator: Generator | None = None) -> None:
        super().__init__()
        self.lin = Linear(width, out, bias=False, glorot=True, generator=generator)
        self.bias = nn.Parameter(torch.zeros(out))

    @property
    def linear_bias(self) -> Tensor:
        """The bias b."""
        return self.bias

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice = ALL_COLUMNS) -> Tensor:
        """Compute `Ã x Wᵀ`."""
        return self.lin.propagated(x, adj, columns)

    def gain(self, norms: Norms, columns: slice = ALL_COLUMNS, centred: Sides = (False, False)) -> Tensor:
        """Return `‖Ã‖ ‖W‖₂`."""
        return norms[0] * self.lin.gain(columns, centred)

    def label_weights(self, columns: slice) -> list[Tensor]:
        """Return these columns of W."""
        return [self.lin.weight.detach()[:, columns]]


class GCN(ConvolutionStack):
    """`H_{l+1} = ReLU(Ã H_l W_lᵀ + b_l)`, `H_0 = [S | X]`, the last layer without ReLU; `Ã = D^-1/2 (A+I) D^-1/2`.

    Kipf and Welling, "Semi-supervised classification with graph convolutional networks", ICLR 2017, eq. 2. Equal to
    PyG's `GCN` on `[S | X]`, with the same names of weights.

    The arguments num_features, num_classes, label_inputs, hidden, num_layers, dropout and generator are those of
    `LinearFirst`, residual and norm those of `ConvolutionStack`.
    """

    bounded: ClassVar[bool] = True
    tried_from = "fast"

    def convolution(self, width: int, out: int, generator: Generator | None) -> GCNConv:
        """Create a convolution from `width` to `out` channels."""
        return GCNConv(width, out, generator)

    @property
    def label_weight(self) -> Tensor | None:
        """`W_z`, the label columns of W, if there is only one layer."""
        if len(self.convs) > 1:
            return None
        return cast(GCNConv, self.first).lin.weight[:, : self.label_inputs].detach()
