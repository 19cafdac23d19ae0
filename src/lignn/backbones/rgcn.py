"""Relational graph convolutional network: a weight per type of edges."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Generator, Tensor, nn

from lignn.backbones.backbone import Norms
from lignn.backbones.layers import ALL_COLUMNS, Sides, propagates_first, spectral_norm, uniform
from lignn.backbones.stack import Convolution, ConvolutionStack
from lignn.errors import ConfigError
from lignn.graph import Graph
from lignn.propagation import Adjacency, SparseMatrix, TypedAdjacency
from lignn.propagation.adjacency import Normalization


class RGCNConv(Convolution):
    """`H W_0 + Σ_r Ã_r H W_r + b`, optionally with `W_r = Σ_b a_rb V_b`.

    The weights have the names and shapes that they have in PyG: `root` is W_0, `weight` has all W_r or V_b, `comp` all
    a_rb.
    """

    def __init__(
        self, width: int, out: int, num_types: int, num_bases: int = 0, generator: Generator | None = None
    ) -> None:
        super().__init__()
        bound = math.sqrt(6 / (width + out))
        self.weight = uniform((num_bases or num_types, width, out), bound, generator)
        comp = math.sqrt(6 / (num_types + num_bases))
        self.comp = uniform((num_types, num_bases), comp, generator) if num_bases else None
        self.root = uniform((width, out), bound, generator)
        self.bias = nn.Parameter(torch.zeros(out))

    @property
    def linear_bias(self) -> Tensor:
        """The bias b."""
        return self.bias

    def weights(self, columns: slice = ALL_COLUMNS) -> Tensor:
        """Return the rows of `[W_0, W_1, …]` that multiply these columns of the input: (types + 1) × width × out."""
        weight = self.weight[:, columns]
        if self.comp is not None:
            weight = torch.einsum("rb,bio->rio", self.comp, weight)
        return torch.cat([self.root[None, columns], weight])

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice = ALL_COLUMNS) -> Tensor:
        """Compute `x W_0 + Σ_r Ã_r x W_r`; of x and `x W_r`, the narrower one is propagated."""
        weights, parts = self.weights(columns), cast(TypedAdjacency, adj).parts
        if propagates_first(x, weights.shape[2]):
            return torch.cat([x, *(part @ x for part in parts)], 1) @ weights.flatten(0, 1)
        total = x @ weights[0]
        for part, weight in zip(parts, weights[1:], strict=True):
            total = total + part @ (x @ weight)
        return total

    def gain(self, norms: Norms, columns: slice = ALL_COLUMNS, centred: Sides = (False, False)) -> Tensor:
        """Return `‖W_0‖₂ + Σ_r ‖Ã_r‖ ‖W_r‖₂`."""
        each = [spectral_norm(weight.T, centred) for weight in self.weights(columns)]
        return each[0] + sum(norm * gain for norm, gain in zip(norms, each[1:], strict=True))

    def label_weights(self, columns: slice) -> list[Tensor]:
        """Return these columns of W_0, and of all W_r or V_b."""
        return [self.root.detach()[columns], self.weight.detach()[:, columns]]


@dataclass(eq=False, repr=False)
class RGCN(ConvolutionStack):
    """`H_{l+1} = ReLU(H_l W_0 + Σ_r Ã_r H_l W_r + b)`, `H_0 = [S | X]`, `Ã_r = D_r^-1 A_r`; the last without ReLU.

    Schlichtkrull et al., "Modeling relational data with graph convolutional networks", ESWC 2018, eq. 2, with the basis
    decomposition of eq. 3. The two directions of the edges as two types are those of Rossi et al., "Edge directionality
    improves learning on heterophilic graphs", 2023. On a weighted graph the means are weighted. Equal to PyG's
    `RGCNConv` on `[S | X]`, with the same names of weights.

    The arguments num_features, num_classes, label_inputs, hidden, num_layers, dropout and generator are those of
    `LinearFirst`, residual and norm those of `ConvolutionStack`.

    Args:
        edge_types: names of the types of edges, in the order of their weights; empty for edges without types. Types of
            a graph are found by their names.
        both_directions: pass messages against the edges too, with weights of their own.
        num_bases: number of bases V_b that the types share; 0 gives each type its own weight.
    """

    normalization: ClassVar[Normalization] = "row"
    self_loops: ClassVar[bool] = False
    bounded: ClassVar[bool] = True
    knows_types: ClassVar[bool] = True

    edge_types: Sequence[str] = ()
    both_directions: bool = False
    num_bases: int = 0

    def __post_init__(self, generator: Generator | None) -> None:
        if self.num_bases < 0:
            raise ConfigError(f"num_bases: a number of at least 0 is needed, got {self.num_bases}")
        self.edge_types = tuple(self.edge_types)
        super().__post_init__(generator)

    @property
    def operator(self) -> Hashable:
        """What its operator depends on besides the graph: the types."""
        return "typed", self.edge_types, self.both_directions

    def adjacency(self, graph: Graph, dtype: torch.dtype = torch.float32) -> TypedAdjacency:
        """Return the operators of all types."""
        return TypedAdjacency.of(graph, self.edge_types, self.both_directions, dtype)

    def convolution(self, width: int, out: int, generator: Generator | None) -> RGCNConv:
        """Create a convolution from `width` to `out` channels."""
        num_types = max(len(self.edge_types), 1) * (2 if self.both_directions else 1)
        return RGCNConv(width, out, num_types, self.num_bases, generator)

    @property
    def label_weight(self) -> Tensor | None:
        """`[W_0; W_1; …]ᵀ` of the label columns if there is only one layer: it multiplies `[S | Ã_1 S | …]`."""
        if len(self.convs) > 1:
            return None
        return cast(RGCNConv, self.first).weights(slice(0, self.label_inputs)).flatten(0, 1).T.detach()
