"""A stack of graph convolutions that are linear at first: what GCN, GAT, SAGE, GIN and JKNet have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import cast

from torch import Tensor, nn

from lignn.backbones.backbone import LinearFirst
from lignn.backbones.dropout import Dropout
from lignn.backbones.layers import EVERY
from lignn.propagation import Adjacency, SparseMatrix


class Convolution(nn.Module, ABC):
    """A layer `rest(linear(H) + offset)`."""

    @property
    @abstractmethod
    def offset(self) -> Tensor | None:
        """What is added to the linear map."""

    @abstractmethod
    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice = EVERY) -> Tensor:
        """The linear map of x, which stands in these columns of the layer's input: a new tensor."""

    def rest(self, total: Tensor, adj: Adjacency) -> Tensor:  # noqa: ARG002
        """What the layer does behind its linear map."""
        return total

    def forward(self, hidden: Tensor, adj: Adjacency) -> Tensor:
        """The whole layer."""
        total = self.linear(hidden, adj)
        return self.rest(total if self.offset is None else total.add_(self.offset), adj)


class Convolutional(LinearFirst):
    """Convolutions with ReLU and dropout between them, in this order."""

    def __init__(
        self, num_features: int, num_classes: int, label_inputs: int, dropout: float, convs: Iterable[Convolution]
    ) -> None:
        super().__init__(num_features, num_classes, label_inputs)
        self.convs = nn.ModuleList(convs)
        self.dropouts = nn.ModuleList(Dropout(dropout) for _ in self.convs[1:])

    @property
    def first(self) -> Convolution:
        """The first convolution."""
        return cast(Convolution, self.convs[0])

    @property
    def first_bias(self) -> Tensor | None:
        """The offset of the first convolution."""
        return self.first.offset

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice) -> Tensor:
        """The linear map of the first convolution."""
        return self.first.linear(x, adj, columns)

    def rest(self, hidden: Tensor, adj: Adjacency) -> Tensor:
        """What remains of the first convolution, and all others."""
        hidden = self.first.rest(hidden, adj)
        for conv, dropout in zip(self.convs[1:], self.dropouts, strict=True):
            hidden = conv(dropout(self.activation(hidden)), adj)
        return hidden

    def activation(self, hidden: Tensor) -> Tensor:
        """Between two convolutions, in place: a solve does this in every step."""
        return hidden.relu_()
