"""Layers that several backbones share; weights are out×in and have the names they have in PyG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeGuard, cast

import torch
from torch import Generator, Tensor, nn

from lignn.backbones.dropout import Dropout
from lignn.errors import ConfigError
from lignn.propagation import Adjacency, SparseMatrix

ALL_COLUMNS = slice(None)


class Linear(nn.Module):
    """`x Wᵀ + b` with initial weights drawn from a generator.

    The weights are uniform in ±1/√in, as those of `torch.nn.Linear`, or in ±√(6/(in + out)), after Glorot.
    """

    def __init__(
        self, width: int, out: int, bias: bool = True, glorot: bool = False, generator: Generator | None = None
    ) -> None:
        super().__init__()
        bound = math.sqrt(6 / (width + out)) if glorot else 1 / math.sqrt(max(width, 1))
        self.weight = uniform((out, width), bound, generator)
        self.bias = uniform((out,), bound, generator) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Compute `x Wᵀ + b`."""
        return nn.functional.linear(x, self.weight, self.bias)

    def product(self, x: Tensor | SparseMatrix, columns: slice = ALL_COLUMNS) -> Tensor:
        """Compute `x Wᵀ` with these columns of W, without the bias."""
        return x @ self.weight[:, columns].T

    def propagated(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice = ALL_COLUMNS) -> Tensor:
        """Compute `A x Wᵀ` with these columns of W, without the bias."""
        if self.propagates_first(x):
            return self.product(adj @ x, columns)
        return adj @ self.product(x, columns)

    def propagates_first(self, x: Tensor | SparseMatrix) -> TypeGuard[Tensor]:
        """Return whether `(A x) Wᵀ` is cheaper than `A (x Wᵀ)`: if x is dense and narrower than the output."""
        return isinstance(x, Tensor) and x.shape[1] < self.weight.shape[0]

    def extra_repr(self) -> str:
        """Return the sizes, which the module's repr shows."""
        out, width = self.weight.shape
        return f"{width}, {out}, bias={self.bias is not None}"


class DenseLayers(nn.Module):
    """Linear maps with optional batch normalisation, ReLU and dropout between them, in this order."""

    def __init__(
        self, widths: Sequence[int], dropout: float, batch_norm: bool, generator: Generator | None = None
    ) -> None:
        super().__init__()
        hidden = widths[1:-1]
        self.lins = nn.ModuleList(Linear(width, out, generator=generator) for width, out in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) if batch_norm else nn.Identity() for width in hidden)
        self.dropouts = nn.ModuleList(Dropout(dropout) for _ in hidden)

    @property
    def first(self) -> Linear:
        """The first linear map."""
        return cast(Linear, self.lins[0])

    def after_first(self, hidden: Tensor) -> Tensor:
        """Apply everything that follows the first linear map."""
        for lin, norm, dropout in zip(self.lins[1:], self.norms, self.dropouts, strict=True):
            hidden = lin(dropout(norm(hidden).relu()))
        return hidden


def uniform(shape: tuple[int, ...], bound: float, generator: Generator | None) -> nn.Parameter:
    """Return a parameter drawn uniformly from ±bound."""
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))


def check_sizes(hidden: int, num_layers: int = 1) -> None:
    """Raise `ConfigError` if a network would have no layers, or layers of no width."""
    if num_layers < 1:
        raise ConfigError(f"num_layers: a network has at least 1 layer, not {num_layers}")
    if hidden < 1:
        raise ConfigError(f"hidden: a layer has a width of at least 1, not {hidden}")


def layer_widths(inputs: int, hidden: int, num_layers: int, outputs: int) -> list[int]:
    """Return the widths of the input, of all hidden layers and of the output."""
    check_sizes(hidden, num_layers)
    return [inputs, *[hidden] * (num_layers - 1), outputs]
