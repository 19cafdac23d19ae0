"""Multi-layer perceptron: the backbone that does not look at the graph."""

from __future__ import annotations

from torch import Generator, Tensor

from lignn.backbones.backbone import LinearFirst
from lignn.backbones.layers import DenseLayers, layer_widths
from lignn.propagation import Adjacency, SparseMatrix


class MLP(LinearFirst):
    """`H_{l+1} = ReLU(BN(H_l W_lᵀ + b_l))`, `H_0 = [S | X]`, the last layer plain.

    Args:
        num_features: width of X.
        num_classes: c.
        label_inputs: width of the label state S.
        hidden: width of the hidden layers.
        num_layers: number of linear maps.
        dropout: probability, behind each ReLU; none on the input.
        batch_norm: batch normalisation before each ReLU, as in the paper's runs.
        generator: draws the weights.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        label_inputs: int = 0,
        hidden: int = 64,
        num_layers: int = 3,
        dropout: float = 0.0,
        batch_norm: bool = True,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(num_features, num_classes, label_inputs)
        widths = layer_widths(label_inputs + num_features, hidden, num_layers, num_classes)
        self.layers = DenseLayers(widths, dropout, batch_norm, generator)

    @property
    def first_bias(self) -> Tensor | None:
        """The bias b_0."""
        return self.layers.first.bias

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice) -> Tensor:  # noqa: ARG002
        """`x W_0ᵀ`."""
        return self.layers.first.share(x, columns)

    def rest(self, hidden: Tensor, adj: Adjacency) -> Tensor:  # noqa: ARG002
        """All other layers."""
        return self.layers.rest(hidden)
