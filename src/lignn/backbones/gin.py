"""Graph isomorphism network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor, nn

from lignn.backbones.layers import ALL_COLUMNS, DenseLayers
from lignn.backbones.stack import Convolution, ConvolutionStack
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
    def linear_bias(self) -> Tensor | None:
        """Bias of the MLP's first layer."""
        return self.nn.first.bias

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice = ALL_COLUMNS) -> Tensor:
        """Compute `((1+ε) x + A x) Wᵀ` with the first weight W of the MLP."""
        first = self.nn.first
        if first.propagates_first(x):
            return first.product((1 + self.eps) * x + adj @ x, columns)
        product = first.product(x, columns)
        return (1 + self.eps) * product + adj @ product

    def after_linear(self, total: Tensor, adj: Adjacency) -> Tensor:  # noqa: ARG002
        """Apply the rest of the MLP."""
        return self.nn.after_first(total)


@dataclass(eq=False, repr=False)
class GIN(ConvolutionStack):
    """`H_{l+1} = ReLU(MLP_l((1+ε_l) H_l + A H_l))`, `H_0 = [S | X]`, the last layer without ReLU.

    Xu et al., "How powerful are graph neural networks?", ICLR 2019, eq. 4.1. Edge weights scale the terms of the sum.
    Equal to PyG's `GIN` on `[S | X]`, with the same names of weights.

    The arguments num_features, num_classes, label_inputs, hidden, num_layers, dropout and generator are those of
    `LinearFirst`, residual and norm those of `ConvolutionStack`; `hidden` is also the width inside the MLPs, and
    dropout is applied between convolutions only.

    Args:
        eps: initial ε of all layers.
        train_eps: whether each ε_l is learnt.
    """

    normalization: ClassVar[Normalization] = "none"
    self_loops: ClassVar[bool] = False

    eps: float = 0.0
    train_eps: bool = False

    def convolution(self, width: int, out: int, generator: Generator | None) -> GINConv:
        """Create a convolution from `width` to `out` channels."""
        return GINConv(width, out, self.eps, self.train_eps, generator)
