"""Jumping knowledge network."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, cast

import torch
from torch import Generator, Tensor

from lignn.backbones.backbone import Norms
from lignn.backbones.gcn import GCNConv
from lignn.backbones.layers import ALL_COLUMNS, Dropout, Linear
from lignn.backbones.stack import Convolutions
from lignn.propagation import Adjacency


class JKNet(Convolutions):
    """`[H_1 | … | H_L] Wᵀ + b` over GCN layers `H_{l+1} = ReLU(Ã H_l W_lᵀ + b_l)`, `H_0 = [S | X]`.

    Xu et al., "Representation learning on graphs with jumping knowledge networks", ICML 2018, section 4
    (concatenation). Equal to PyG's `GCN(jk="cat")` on `[S | X]`, with the same names of weights.

    The arguments num_features, num_classes, label_inputs, hidden, num_layers (L), dropout and generator are those of
    `LinearFirst`.
    """

    bounded: ClassVar[bool] = True

    def __post_init__(self, generator: Generator | None) -> None:
        super().__post_init__(generator)
        self.dropouts.append(Dropout(self.dropout))
        self.lin = Linear(self.num_layers * self.hidden, self.num_classes, generator=generator)

    @property
    def is_deep(self) -> bool:
        """True: all convolutions are as wide as the hidden layers."""
        return True

    def convolution(self, width: int, out: int, generator: Generator | None) -> GCNConv:
        """Create a convolution from `width` to `out` channels."""
        return GCNConv(width, out, generator)

    def last_convolution(self, width: int, generator: Generator | None) -> GCNConv:
        """Create the last convolution, which is as wide as the others."""
        return self.convolution(width, self.hidden, generator)

    def after_linear(self, hidden: Tensor, adj: Adjacency) -> Tensor:
        """Apply all other convolutions, and the output map to the outputs of all."""
        layers = [self.dropouts[0](hidden.relu())]
        for conv, dropout in zip(self.convs[1:], self.dropouts[1:], strict=True):
            layers.append(dropout(conv(layers[-1], adj).relu()))
        return self.lin(torch.cat(layers, 1))

    def gain(self, norms: Norms, centred: bool) -> Tensor:
        """Return `Σ_l g_l ‖V_l‖₂` over the gains g_l of all layers and the parts V_l of W that multiply them."""
        total, gain = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
        for number, conv in enumerate(cast(Iterable[GCNConv], self.convs)):
            columns = ALL_COLUMNS if number else self.label_columns
            gain = gain * conv.gain(norms, columns, (False, centred and not number))
            part = slice(number * self.hidden, (number + 1) * self.hidden)
            total = total + gain * self.lin.gain(part, (centred, False))
        return total
