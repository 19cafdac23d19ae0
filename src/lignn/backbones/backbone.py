"""What every backbone is: a part that reads the features, once a solve, and a step that reads the labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from lignn.errors import ConfigError
from lignn.graph import Graph
from lignn.propagation import Adjacency, SparseMatrix
from lignn.propagation.adjacency import Normalization

Features: TypeAlias = Tensor | SparseMatrix | None


class Backbone(nn.Module, ABC):
    """A network f_θ(A, [S | X]) that gives logits (n×c); S is the label state, X the features.

    A solve calls it many times with the same X and ever new S: `features` is computed once, then `step` for each S.

    Args:
        num_features: width of X, 0 for graphs without features.
        num_classes: c.
        label_inputs: width of S, 0 for a network without label input.
    """

    normalization: ClassVar[Normalization] = "symmetric"
    self_loops: ClassVar[bool] = True

    def __init__(self, num_features: int, num_classes: int, label_inputs: int = 0) -> None:
        super().__init__()
        self.num_features = num_features
        self.num_classes = num_classes
        self.label_inputs = label_inputs

    def adjacency(self, graph: Graph, dtype: torch.dtype = torch.float32) -> Adjacency:
        """The operator that this network propagates with."""
        return Adjacency.normalized(graph, self.normalization, self.self_loops, dtype)

    @abstractmethod
    def features(self, x: Features, adj: Adjacency) -> Tensor:
        """All that does not depend on the labels; None stands for a graph without features."""

    @abstractmethod
    def step(self, features: Tensor, state: Tensor | None, adj: Adjacency) -> Tensor:
        """Logits for a label state (n×label_inputs), given `features`; None stands for a state of zeros."""

    def forward(self, x: Features, adj: Adjacency) -> Tensor:
        """The network as an ordinary GNN, without labels."""
        return self.step(self.features(x, adj), None, adj)


class LinearFirst(Backbone):
    """A backbone whose first layer is linear: the share of X in it is computed once, a step adds that of S.

    `[S | X]` is never built. The first weight is one parameter over the width of both, the columns of S before those
    of X, so that it is drawn as, and can be copied to and from, a network on the concatenated input.
    """

    def features(self, x: Features, adj: Adjacency) -> Tensor:
        """The share of X in the first layer, with the bias where that is added before anything that is not linear."""
        x = adj.values.new_zeros(adj.shape[0], 0) if x is None else x
        share = self.linear(x, adj, slice(self.label_inputs, None))
        return share if self.first_bias is None else share.add_(self.first_bias)

    def step(self, features: Tensor, state: Tensor | None, adj: Adjacency) -> Tensor:
        """The share of S added, and all that follows."""
        if state is None:
            return self.rest(features.clone(), adj)
        return self.rest(self.linear(state, adj, slice(0, self.label_inputs)).add_(features), adj)

    def forward(self, x: Features, adj: Adjacency) -> Tensor:
        """The network as an ordinary GNN: features that nobody else holds need no copy."""
        return self.rest(self.features(x, adj), adj)

    @property
    def first_bias(self) -> Tensor | None:
        """The bias that `features` adds."""
        return None

    @abstractmethod
    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice) -> Tensor:
        """The first layer's linear map of `x`, which stands in these columns of its input, as a new tensor."""

    @abstractmethod
    def rest(self, hidden: Tensor, adj: Adjacency) -> Tensor:
        """Logits from the first layer's sum, which may be overwritten."""


def check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not among the choices of an option."""
    if value not in choices:
        raise ConfigError(f"{option}: {value!r} is unknown, choose from {', '.join(choices)}")
