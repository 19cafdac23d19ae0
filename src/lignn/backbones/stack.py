"""Layers of one kind of convolution, plain or with residual connections and normalisation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

import torch
from torch import Generator, Tensor, nn

from lignn.backbones.backbone import LinearFirst, Norms, check_choice
from lignn.backbones.layers import ALL_COLUMNS, Dropout, Linear, Sides, check_sizes
from lignn.backbones.norms import BatchNorm, check_statistics, norm_gain
from lignn.propagation import Adjacency, SparseMatrix

Norm = Literal["none", "batch", "layer"]

_NORMS: dict[str, type[nn.Module]] = {"none": nn.Identity, "batch": BatchNorm, "layer": nn.LayerNorm}


class Convolution(nn.Module, ABC):
    """Layer `after_linear(linear(H) + linear_bias)`."""

    @property
    @abstractmethod
    def linear_bias(self) -> Tensor | None:
        """Bias that is added to the linear map; None if there is none."""

    @abstractmethod
    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice = ALL_COLUMNS) -> Tensor:
        """Apply the linear map to `x`, the input in these columns; the result is a new tensor."""

    def gain(
        self,
        norms: Norms,  # noqa: ARG002
        columns: slice = ALL_COLUMNS,  # noqa: ARG002
        centred: Sides = (False, False),  # noqa: ARG002
    ) -> Tensor | None:
        """Return a bound of the layer's Lipschitz constant as a function of these columns; None for no bound."""
        return None

    def label_weights(self, columns: slice) -> list[Tensor]:  # noqa: ARG002
        """Return the weights that multiply these columns, as views to be changed in place."""
        return []

    def after_linear(self, total: Tensor, adj: Adjacency) -> Tensor:  # noqa: ARG002
        """Apply what follows the linear map and its bias."""
        return total

    def forward(self, hidden: Tensor, adj: Adjacency) -> Tensor:
        """Apply the whole layer."""
        total = self.linear(hidden, adj)
        return self.after_linear(total if self.linear_bias is None else total.add_(self.linear_bias), adj)


class Pointwise(Convolution):
    """`H Wᵀ + b`: each node by itself, as before and after the layers of a residual network."""

    def __init__(self, width: int, out: int, generator: Generator | None = None) -> None:
        super().__init__()
        self.lin = Linear(width, out, generator=generator)

    @property
    def linear_bias(self) -> Tensor | None:
        """The bias b."""
        return self.lin.bias

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice = ALL_COLUMNS) -> Tensor:  # noqa: ARG002
        """Compute `x Wᵀ`."""
        return self.lin.product(x, columns)

    def gain(self, norms: Norms, columns: slice = ALL_COLUMNS, centred: Sides = (False, False)) -> Tensor:  # noqa: ARG002
        """Return `‖W‖₂`."""
        return self.lin.gain(columns, centred)

    def label_weights(self, columns: slice) -> list[Tensor]:
        """Return these columns of W."""
        return [self.lin.weight.detach()[:, columns]]


class Residual(nn.Module):
    """`conv(H) + H Rᵀ`."""

    def __init__(self, conv: Convolution, width: int, generator: Generator | None = None) -> None:
        super().__init__()
        self.conv = conv
        self.lin = Linear(width, width, bias=False, generator=generator)

    def forward(self, hidden: Tensor, adj: Adjacency) -> Tensor:
        """Apply the convolution, and add the input by its own weight R."""
        return self.conv(hidden, adj) + self.lin(hidden)

    def gain(self, norms: Norms, columns: slice = ALL_COLUMNS, centred: Sides = (False, False)) -> Tensor | None:
        """Return the convolution's gain plus `‖R‖₂`."""
        gain = self.conv.gain(norms, columns, centred)
        return None if gain is None else gain + self.lin.gain(columns, centred)


class Convolutions(LinearFirst):
    """Backbone of several convolutions, the first of which takes `[S | X]`. A subclass says which `convolution`."""

    def __post_init__(self, generator: Generator | None) -> None:
        super().__post_init__(generator)
        check_sizes(self.hidden, self.num_layers)
        self.convs = nn.ModuleList(self.layers(generator))
        self.dropouts = nn.ModuleList(Dropout(self.dropout) for _ in self.convs[1:])

    @abstractmethod
    def convolution(self, width: int, out: int, generator: Generator | None) -> Convolution:
        """Create a convolution from `width` to `out` channels."""

    def last_convolution(self, width: int, generator: Generator | None) -> Convolution:
        """Create the last convolution."""
        return self.convolution(width, self.num_classes, generator)

    def layers(self, generator: Generator | None) -> list[nn.Module]:
        """Create all layers, in the order in which they are applied."""
        *widths, last = [self.input_width, *[self.hidden] * (self.num_layers - 1)]
        convs = [self.convolution(width, self.hidden, generator) for width in widths]
        return [*convs, self.last_convolution(last, generator)]

    @property
    def is_deep(self) -> bool:
        """Whether there is a layer between the first and the last."""
        return len(self.convs) > 2

    @property
    def first(self) -> Convolution:
        """The first layer."""
        return cast(Convolution, self.convs[0])

    def label_weights(self) -> list[Tensor]:
        """Return the label columns of the first layer."""
        return self.first.label_weights(self.label_columns)

    @property
    def linear_bias(self) -> Tensor | None:
        """Bias of the first layer."""
        return self.first.linear_bias

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice) -> Tensor:
        """Apply the linear map of the first layer."""
        return self.first.linear(x, adj, columns)


@dataclass(eq=False, repr=False)
class ConvolutionStack(Convolutions):
    """`H_{l+1} = Dropout(ReLU(norm(conv_l(H_l))))`, `H_0 = [S | X]`; the last layer is the convolution alone.

    A residual network adds each layer's input by a weight of its own, `conv_l(H_l) + H_l R_lᵀ`, and all its
    convolutions are `hidden` wide, between a linear map into them and one out of them. Luo, Shi and Wu, "Classic GNNs
    are strong baselines", NeurIPS 2024.

    Args:
        residual: whether it is a residual network; `num_layers` does not count its two linear maps.
        norm: normalisation before each ReLU: "none"; "batch", by statistics of all nodes of the graph; or "layer", of
            each node by itself.
    """

    residual: bool = field(default=False, kw_only=True)
    norm: Norm = field(default="none", kw_only=True)

    def __post_init__(self, generator: Generator | None) -> None:
        check_choice("norm", self.norm, get_args(Norm))
        super().__post_init__(generator)
        self.norms = nn.ModuleList(_NORMS[self.norm](self.hidden) for _ in self.convs[1:])

    def layers(self, generator: Generator | None) -> list[nn.Module]:
        """Create all layers, in the order in which they are applied."""
        if not self.residual:
            return super().layers(generator)
        first = Pointwise(self.input_width, self.hidden, generator)
        convs = [
            Residual(self.convolution(self.hidden, self.hidden, generator), self.hidden, generator)
            for _ in range(self.num_layers)
        ]
        return [first, *convs, Pointwise(self.hidden, self.num_classes, generator)]

    def gain(self, norms: Norms, centred: bool) -> Tensor | None:
        """Return the product of all layers' gains: ReLU does not expand."""
        gains = [norm_gain(norm) for norm in self.norms]
        for number, conv in enumerate(cast(Iterable[Convolution | Residual], self.convs)):
            columns = ALL_COLUMNS if number else self.label_columns
            gains.append(conv.gain(norms, columns, (centred and conv is self.convs[-1], centred and not number)))
        return None if None in gains else torch.stack([gain for gain in gains if gain is not None]).prod()

    def after_linear(self, hidden: Tensor, adj: Adjacency) -> Tensor:
        """Apply the rest of the first layer, and all others."""
        check_statistics(self.norms, hidden, "norm='layer'")
        hidden = self.first.after_linear(hidden, adj)
        for conv, norm, dropout in zip(self.convs[1:], self.norms, self.dropouts, strict=True):
            hidden = conv(dropout(self.activate(norm(hidden))), adj)
        return hidden

    def activate(self, hidden: Tensor) -> Tensor:
        """Apply ReLU in place, which saves a solver a copy in each step."""
        return hidden.relu_()
