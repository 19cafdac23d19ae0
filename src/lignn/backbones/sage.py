"""GraphSAGE with mean aggregation."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

from torch import Generator, Tensor

from lignn.backbones.convolution import Convolution, Convolutional
from lignn.backbones.layers import EVERY, Linear, layer_widths
from lignn.propagation import Adjacency, SparseMatrix
from lignn.propagation.adjacency import Normalization


class SAGEConv(Convolution):
    """`D^-1 A H Wᵀ + b + H Vᵀ`: the mean of the neighbours and the node itself, each with its own weight."""

    def __init__(self, width: int, out: int, generator: Generator | None = None) -> None:
        super().__init__()
        self.lin_l = Linear(width, out, generator=generator)
        self.lin_r = Linear(width, out, bias=False, generator=generator)

    @property
    def offset(self) -> Tensor | None:
        """The bias."""
        return self.lin_l.bias

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice = EVERY) -> Tensor:
        """`D^-1 A x Wᵀ + x Vᵀ`."""
        return self.lin_l.propagated(x, adj, columns) + self.lin_r.share(x, columns)


class SAGE(Convolutional):
    """`H_{l+1} = ReLU(D^-1 A H_l W_lᵀ + b_l + H_l V_lᵀ)`, `H_0 = [S | X]`, the last layer without ReLU.

    Hamilton, Ying and Leskovec, "Inductive representation learning on large graphs", NeurIPS 2017, algorithm 1 with
    the mean, without the normalisation of its line 7. Edge weights make it a weighted mean. Equal to PyG's `GraphSAGE`
    on `[S | X]`, with the same names of weights.

    Args:
        num_features: width of X.
        num_classes: c.
        label_inputs: width of the label state S.
        hidden: width of the hidden layers.
        num_layers: number of convolutions.
        dropout: probability, behind each ReLU; none on the input.
        generator: draws the weights.
    """

    normalization: ClassVar[Normalization] = "row"
    self_loops: ClassVar[bool] = False

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
        widths = layer_widths(label_inputs + num_features, hidden, num_layers, num_classes)
        convs = (SAGEConv(width, out, generator) for width, out in pairwise(widths))
        super().__init__(num_features, num_classes, label_inputs, dropout, convs)
