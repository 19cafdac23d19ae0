"""A graph convolution that starts with a linear map, and the network of several of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import cast

from torch import Generator, Tensor, nn

from lignn.backbones.backbone import LinearFirst
from lignn.backbones.dropout import Dropout
from lignn.backbones.layers import ALL_COLUMNS, check_sizes
from lignn.propagation import Adjacency, SparseMatrix


class Convolution(nn.Module, ABC):
    """Layer `after_linear(linear(H) + linear_bias)`."""

    @property
    @abstractmethod
    def linear_bias(self) -> Tensor | None:
        """Bias that is added to the linear map; None if there is none."""

    @abstractmethod
    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice = ALL_COLUMNS) -> Tensor:
        """Apply the linear map to `x`, the input in these columns; the result is a new tensor."""

    def after_linear(self, total: Tensor, adj: Adjacency) -> Tensor:  # noqa: ARG002
        """Apply what follows the linear map and its bias."""
        return total

    def forward(self, hidden: Tensor, adj: Adjacency) -> Tensor:
        """Apply the whole layer."""
        total = self.linear(hidden, adj)
        return self.after_linear(total if self.linear_bias is None else total.add_(self.linear_bias), adj)


class ConvolutionStack(LinearFirst):
    """`H_{l+1} = Dropout(ReLU(conv_l(H_l)))`, `H_0 = [S | X]`; the last layer is the convolution alone.

    A subclass says which `convolution` it uses.
    """

    def __post_init__(self, generator: Generator | None) -> None:
        super().__post_init__(generator)
        check_sizes(self.hidden, self.num_layers)
        *widths, last = [self.input_width, *[self.hidden] * (self.num_layers - 1)]
        convs = [self.convolution(width, self.hidden, generator) for width in widths]
        self.convs = nn.ModuleList([*convs, self.last_convolution(last, generator)])
        self.dropouts = nn.ModuleList(Dropout(self.dropout) for _ in self.convs[1:])

    @abstractmethod
    def convolution(self, width: int, out: int, generator: Generator | None) -> Convolution:
        """Create a convolution from `width` to `out` channels."""

    def last_convolution(self, width: int, generator: Generator | None) -> Convolution:
        """Create the last convolution."""
        return self.convolution(width, self.num_classes, generator)

    @property
    def first(self) -> Convolution:
        """The first convolution."""
        return cast(Convolution, self.convs[0])

    @property
    def linear_bias(self) -> Tensor | None:
        """Bias of the first convolution."""
        return self.first.linear_bias

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice) -> Tensor:
        """Apply the linear map of the first convolution."""
        return self.first.linear(x, adj, columns)

    def after_linear(self, hidden: Tensor, adj: Adjacency) -> Tensor:
        """Apply the rest of the first convolution, and all others."""
        hidden = self.first.after_linear(hidden, adj)
        for conv, dropout in zip(self.convs[1:], self.dropouts, strict=True):
            hidden = conv(dropout(self.activate(hidden)), adj)
        return hidden

    def activate(self, hidden: Tensor) -> Tensor:
        """Apply ReLU in place, which saves a solver a copy in each step."""
        return hidden.relu_()
