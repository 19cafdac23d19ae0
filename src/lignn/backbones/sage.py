"""GraphSAGE with mean aggregation."""

from __future__ import annotations

from typing import ClassVar

from torch import Generator, Tensor

from lignn.backbones.backbone import Norms
from lignn.backbones.layers import ALL_COLUMNS, Linear, Sides
from lignn.backbones.stack import Convolution, ConvolutionStack
from lignn.propagation import Adjacency, SparseMatrix
from lignn.propagation.adjacency import Normalization


class SAGEConv(Convolution):
    """`D^-1 A H Wᵀ + b + H Vᵀ`: the mean of the neighbours and the node itself, each with its own weight."""

    def __init__(self, width: int, out: int, generator: Generator | None = None) -> None:
        super().__init__()
        self.lin_l = Linear(width, out, generator=generator)
        self.lin_r = Linear(width, out, bias=False, generator=generator)

    @property
    def linear_bias(self) -> Tensor | None:
        """The bias b."""
        return self.lin_l.bias

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice = ALL_COLUMNS) -> Tensor:
        """Compute `D^-1 A x Wᵀ + x Vᵀ`."""
        return self.lin_l.propagated(x, adj, columns) + self.lin_r.product(x, columns)

    def gain(self, norms: Norms, columns: slice = ALL_COLUMNS, centred: Sides = (False, False)) -> Tensor:
        """Return `‖D^-1 A‖ ‖W‖₂ + ‖V‖₂`."""
        return norms[0] * self.lin_l.gain(columns, centred) + self.lin_r.gain(columns, centred)

    def label_weights(self, columns: slice) -> list[Tensor]:
        """Return these columns of W and V."""
        return [lin.weight.detach()[:, columns] for lin in (self.lin_l, self.lin_r)]


class SAGE(ConvolutionStack):
    """`H_{l+1} = ReLU(D^-1 A H_l W_lᵀ + b_l + H_l V_lᵀ)`, `H_0 = [S | X]`, the last layer without ReLU.

    Hamilton, Ying and Leskovec, "Inductive representation learning on large graphs", NeurIPS 2017, algorithm 1 with
    mean aggregation and without the normalisation in line 7. On a weighted graph the mean is weighted. Equal to PyG's
    `GraphSAGE` on `[S | X]`, with the same names of weights.

    The arguments num_features, num_classes, label_inputs, hidden, num_layers, dropout and generator are those of
    `LinearFirst`, residual and norm those of `ConvolutionStack`.
    """

    normalization: ClassVar[Normalization] = "row"
    self_loops: ClassVar[bool] = False
    bounded: ClassVar[bool] = True
    tried_from = "fast"

    def convolution(self, width: int, out: int, generator: Generator | None) -> SAGEConv:
        """Create a convolution from `width` to `out` channels."""
        return SAGEConv(width, out, generator)
