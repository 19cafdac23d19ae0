"""The interface of every backbone, and the base classes of those that start with a linear map."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import InitVar, dataclass, field
from typing import ClassVar, Literal, TypeAlias

import torch
from torch import Generator, Tensor, nn

from lignn.errors import ConfigError
from lignn.graph import Graph
from lignn.propagation import Adjacency, SparseMatrix
from lignn.propagation.adjacency import Normalization

Features: TypeAlias = Tensor | SparseMatrix | None

Norms: TypeAlias = Sequence[float]
"""Norm of the operator of a graph; of each operator if there are types of edges."""


class Backbone(nn.Module, ABC):
    """Network `f_θ(A, [S | X])` that computes logits (n×c) from a label state S and features X.

    A solver evaluates the network many times with the same X and a new S each time. The network is therefore split in
    two: `features` is computed once per solve, `step` once per S.

    Args:
        num_features: width of X; 0 for a graph without features.
        num_classes: number of classes, c.
        label_inputs: width of S; 0 for a network without label input.
    """

    normalization: ClassVar[Normalization] = "symmetric"
    self_loops: ClassVar[bool] = True
    streams: ClassVar[bool] = False
    """Whether it can propagate with a graph in a store: all that it computes are products with Ã and maps of rows."""
    bounded: ClassVar[bool] = False
    """Whether `gain` is a bound. A subclass has to say so itself, since it may change what the bound rests on."""
    knows_types: ClassVar[bool] = False
    """Whether it tells types of edges apart."""
    uses_edges: ClassVar[bool] = True
    """Whether it propagates; if not, labels as inputs tell a node nothing of its neighbours."""
    tried_from: ClassVar[Literal["fast", "good", "best"] | None] = None
    """The quality from which on `auto` tries it on any graph; None for never."""

    def __init__(self, num_features: int, num_classes: int, label_inputs: int = 0) -> None:
        super().__init__()
        self.num_features = num_features
        self.num_classes = num_classes
        self.label_inputs = label_inputs

    @property
    def label_weight(self) -> Tensor | None:
        """`W_z` (c×label_inputs, detached) if the logits are `Ã S W_zᵀ` plus terms without S; None for all others.

        With types of edges, `[S | Ã_1 S | …]` takes the place of `Ã S`.
        """
        return None

    def gain(self, norms: Norms, centred: bool) -> Tensor | None:  # noqa: ARG002
        """Return a bound of the Lipschitz constant of the logits as a function of S in eval mode; None for no bound.

        Args:
            norms: norms of the operators, see `operator_norms.norm_bounds`.
            centred: whether rows of S differ by vectors of sum zero, and a shift of all logits of a row does not
                matter: true if S and what becomes of the logits are probabilities of one class per node.
        """
        return None

    def label_weights(self) -> list[Tensor]:
        """Return the weights that multiply S, as views to be changed in place; `gain` is proportional to them."""
        return []

    @property
    def is_deep(self) -> bool:
        """Whether some product with Ã is as wide as the hidden layers in every step, which takes more memory."""
        return True

    @property
    def operator(self) -> Hashable:
        """What the operator depends on besides the graph, and the key under which it is kept.

        Override it together with `adjacency`.
        """
        return self.normalization, self.self_loops

    def adjacency(self, graph: Graph, dtype: torch.dtype = torch.float32) -> Adjacency:
        """Return the operator that this network propagates with."""
        return Adjacency.normalized(graph, self.normalization, self.self_loops, dtype)

    @abstractmethod
    def features(self, x: Features, adj: Adjacency) -> Tensor:
        """Compute everything that does not depend on S; `x` is None for a graph without features."""

    @abstractmethod
    def step(self, features: Tensor, state: Tensor | None, adj: Adjacency) -> Tensor:
        """Compute logits from the result of `features` and a state S (n×label_inputs); None means a state of zeros."""

    def forward(self, x: Features, adj: Adjacency) -> Tensor:
        """Compute logits without labels, as an ordinary GNN does."""
        return self.step(self.features(x, adj), None, adj)


@dataclass(eq=False, repr=False)
class LinearFirst(Backbone):
    """Backbone whose first layer is linear, and the arguments that all such backbones share.

    The product of X with the first weight is computed once per solve, and a step adds that of S: `[S | X]` is never
    built. The first weight is one parameter with the columns of S before those of X, so it can be exchanged with a
    network on the concatenated input.

    A subclass adds an option by declaring it as a field (and is then a dataclass too), and creates its layers in
    `__post_init__`.

    Args:
        num_features: width of X; 0 for a graph without features.
        num_classes: number of classes, c.
        label_inputs: width of the label state S; 0 for a network without label input.
        hidden: width of the hidden layers.
        num_layers: number of layers; those of a residual network, without the linear maps around them.
        dropout: probability that an entry of a hidden layer is set to zero; the input is left as it is.
        generator: random numbers for the initial weights; None uses PyTorch's global random state.
    """

    streams: ClassVar[bool] = True

    num_features: int
    num_classes: int
    label_inputs: int = 0
    hidden: int = 64
    num_layers: int = 2
    dropout: float = 0.0
    generator: InitVar[Generator | None] = field(default=None, kw_only=True)

    def __post_init__(self, generator: Generator | None) -> None:
        super().__init__(self.num_features, self.num_classes, self.label_inputs)

    @property
    def label_columns(self) -> slice:
        """The columns of the first weight that multiply S."""
        return slice(0, self.label_inputs)

    @property
    def input_width(self) -> int:
        """Width of `[S | X]`."""
        return self.label_inputs + self.num_features

    def features(self, x: Features, adj: Adjacency) -> Tensor:
        """Compute the first layer's product with X, plus its bias."""
        x = adj.values.new_zeros(adj.shape[0], 0) if x is None else x
        product = self.linear(x, adj, slice(self.label_inputs, None))
        return product if self.linear_bias is None else product.add_(self.linear_bias)

    def step(self, features: Tensor, state: Tensor | None, adj: Adjacency) -> Tensor:
        """Add the first layer's product with S and apply the other layers."""
        if state is None:
            return self.after_linear(features.clone(), adj)
        return self.after_linear(self.linear(state, adj, self.label_columns).add_(features), adj)

    def forward(self, x: Features, adj: Adjacency) -> Tensor:
        """Compute logits without labels; unlike in `step`, the features need not be copied."""
        return self.after_linear(self.features(x, adj), adj)

    @property
    @abstractmethod
    def linear_bias(self) -> Tensor | None:
        """Bias that is added to the first layer's product; None if the layer has none."""

    @abstractmethod
    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice) -> Tensor:
        """Multiply `x` with these columns of the first layer's weight; the result is a new tensor."""

    @abstractmethod
    def after_linear(self, hidden: Tensor, adj: Adjacency) -> Tensor:
        """Compute logits from the first layer's sum, which may be overwritten."""


def check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise `ConfigError` if the value of an option is not one of its choices."""
    if value not in choices:
        raise ConfigError(f"{option}: {value!r} is unknown, choose from {', '.join(choices)}")
