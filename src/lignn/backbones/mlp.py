"""Multi-layer perceptron, the backbone that ignores the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Generator, Tensor

from lignn.backbones.backbone import LinearFirst, Norms
from lignn.backbones.layers import DenseLayers, layer_widths
from lignn.propagation import Adjacency, SparseMatrix


@dataclass(eq=False, repr=False)
class MLP(LinearFirst):
    """`H_{l+1} = ReLU(BN(H_l W_lᵀ + b_l))`, `H_0 = [S | X]`, the last layer without BN and ReLU.

    The arguments num_features, num_classes, label_inputs, hidden, num_layers, dropout and generator are those of
    `LinearFirst`.

    Args:
        batch_norm: whether batch normalisation (BN) is applied before each ReLU, as in the paper's runs.
    """

    bounded: ClassVar[bool] = True
    uses_edges: ClassVar[bool] = False
    tried_from = "fast"

    num_layers: int = 3
    batch_norm: bool = True

    def __post_init__(self, generator: Generator | None) -> None:
        super().__post_init__(generator)
        widths = layer_widths(self.input_width, self.hidden, self.num_layers, self.num_classes)
        self.layers = DenseLayers(widths, self.dropout, self.batch_norm, generator)

    @property
    def linear_bias(self) -> Tensor | None:
        """The bias b_0."""
        return self.layers.first.bias

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice) -> Tensor:  # noqa: ARG002
        """Compute `x W_0ᵀ`."""
        return self.layers.first.product(x, columns)

    def after_linear(self, hidden: Tensor, adj: Adjacency) -> Tensor:  # noqa: ARG002
        """Apply all other layers."""
        return self.layers.after_first(hidden)

    @property
    def is_deep(self) -> bool:
        """False: nothing is propagated."""
        return False

    def gain(self, norms: Norms, centred: bool) -> Tensor:  # noqa: ARG002
        """Return the product of the layers' norms; the operator is not used."""
        return self.layers.gain(self.label_columns, centred)

    def label_weights(self) -> list[Tensor]:
        """Return the label columns of W_0."""
        return [self.layers.first.weight.detach()[:, self.label_columns]]
