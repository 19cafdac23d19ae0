"""Layers that several backbones share: linear maps, and dropout whose mask can stay the same for a whole solve.

Weights are out×in and have the names they have in PyG.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from typing import TypeGuard, cast

import torch
from torch import Generator, Tensor, nn

from lignn.backbones.first_product import FirstProduct
from lignn.backbones.norms import check_statistics, norm_gain
from lignn.errors import ConfigError
from lignn.propagation import Adjacency, Rows, SparseMatrix, StoredRows
from lignn.store.share import entries_kept

ALL_COLUMNS = slice(None)

Sides = tuple[bool, bool]
"""Whether the outputs and the inputs of a weight are centred, see `spectral_norm`."""


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
        if isinstance(x, SparseMatrix) and isinstance(adj, SparseMatrix) and adj.runs_here(self.weight):
            return self.first_product(self.weight, x, adj, columns)
        return adj @ self.product(x, columns)

    @cached_property
    def first_product(self) -> FirstProduct:
        """The last product with sparse features."""
        return FirstProduct()

    def propagates_first(self, x: Tensor | SparseMatrix) -> TypeGuard[Tensor]:
        """Return whether `(A x) Wᵀ` is cheaper than `A (x Wᵀ)`: if x is dense and narrower than the output."""
        return propagates_first(x, self.weight.shape[0])

    def gain(self, columns: slice = ALL_COLUMNS, centred: Sides = (False, False)) -> Tensor:
        """Return `‖W‖₂` of these columns, see `spectral_norm`."""
        return spectral_norm(self.weight[:, columns], centred)

    def extra_repr(self) -> str:
        """Return the sizes, which the module's repr shows."""
        out, width = self.weight.shape
        return f"{width}, {out}, bias={self.bias is not None}"


def propagates_first(x: Tensor | SparseMatrix, out: int) -> TypeGuard[Tensor]:
    """Return whether `(A x) Wᵀ` is cheaper than `A (x Wᵀ)`: if x is dense and narrower than `out`, the output.

    Features in a store whose product with a weight is not kept are propagated first: `A x` is kept, in a file.
    """
    if isinstance(x, StoredRows):
        return not x.keeps(out)
    return isinstance(x, Tensor | Rows) and x.shape[1] < out


class Seeded(nn.Module):
    """Module that computes the same function in every call while its `seed` is set; `frozen_dropout` sets it."""

    seed: int | None = None


class Dropout(Seeded):
    """Dropout that sets each entry to zero with probability p and multiplies the others by 1/(1-p).

    It is the identity in eval mode and for p = 0. Within `frozen_dropout` the mask depends only on the context's seed
    and the shape of the input, and is kept until the context ends. Otherwise each call draws a mask from PyTorch's
    global random state. Masks are drawn on the CPU, so they are the same on every device.
    """

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ConfigError(f"dropout: a probability of at least 0 and below 1 is needed, not {p}")
        self.p = p
        self._mask: Tensor | None = None

    def mask(self, shape: tuple[int, ...], like: Tensor) -> Tensor | None:
        """Return the factors 0 and 1/(1-p) in the type and on the device of `like`; None if they would all be 1."""
        if not self.training or self.p == 0:
            return None
        if self.seed is None:
            return self._draw(shape, like, None)
        kept = self._mask
        if kept is None or (kept.shape, kept.dtype, kept.device) != (shape, like.dtype, like.device):
            kept = self._mask = self._draw(shape, like, Generator().manual_seed(self.seed))
        return kept

    def _draw(self, shape: tuple[int, ...], like: Tensor, generator: Generator | None) -> Tensor:
        if isinstance(like, Rows):
            return like.kept(self.p, generator)
        with torch.inference_mode(False):  # a mask drawn in a solve is taped in the step after it
            kept = torch.rand(shape, generator=generator, device="cpu") >= self.p
            return kept.to(like.device, like.dtype).div_(1 - self.p)

    def forward(self, x: Tensor) -> Tensor:
        """Multiply the input with the mask."""
        mask = self.mask(x.shape, x)
        return x if mask is None else x * mask

    def release(self) -> None:
        """Forget the mask."""
        self._mask = None

    def extra_repr(self) -> str:
        """Return the probability, which the module's repr shows."""
        return f"p={self.p}"


def dropout_mask(shape: tuple[int, ...], p: float, like: Tensor, generator: Generator | None) -> Tensor:
    """Draw factors, 0 with probability p and else 1/(1-p), in the type and on the device of `like`."""
    kept = entries_kept(math.prod(shape), p, generator).view(shape)
    return kept.to(like.device, like.dtype).div_(1 - p)


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

    def gain(self, columns: slice, centred: bool) -> Tensor:
        """Return a bound of the Lipschitz constant in eval mode, with these columns of the first map alone."""
        first, last = self.lins[0], self.lins[-1]
        total = cast(Linear, first).gain(columns, (centred and first is last, centred))
        for lin, norm in zip(self.lins[1:], self.norms, strict=True):
            gain = norm_gain(norm)
            assert gain is not None  # batch normalisation or none
            total = total * gain * cast(Linear, lin).gain(centred=(centred and lin is last, False))
        return total

    def after_first(self, hidden: Tensor) -> Tensor:
        """Apply everything that follows the first linear map."""
        check_statistics(self.norms, hidden, "batch_norm=False")
        for lin, norm, dropout in zip(self.lins[1:], self.norms, self.dropouts, strict=True):
            hidden = lin(dropout(norm(hidden).relu()))
        return hidden


def spectral_norm(weight: Tensor, centred: Sides = (False, False)) -> Tensor:
    """Return `‖W‖₂` in double precision, detached.

    Centred outputs are `P W`, centred inputs `W P`, `P = I - 11ᵀ/c`: what is left of W if all outputs may be shifted
    alike, as before a softmax, or if all inputs have the same sum, as probabilities have.
    """
    weight = weight.detach().double()
    outputs, inputs = centred
    weight = weight - weight.mean(0, keepdim=True) if outputs else weight
    weight = weight - weight.mean(1, keepdim=True) if inputs else weight
    gram = weight @ weight.T if weight.shape[0] < weight.shape[1] else weight.T @ weight
    if not gram.isfinite().all():
        return weight.new_full((), math.inf)
    return torch.linalg.eigvalsh(gram)[-1].clamp(min=0).sqrt() if gram.numel() else weight.new_zeros(())


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


@contextmanager
def frozen_dropout(module: nn.Module, generator: Generator | None = None) -> Iterator[None]:
    """Keep the masks of all dropout in `module` until the context ends.

    A solve then evaluates the same map in every step, and the map that is solved is the map that is differentiated.

    The seeds of the masks are drawn once, when the context is entered. What happens inside does not change the seeds
    of the next context.

    Args:
        module: a module that contains `Dropout` or `Adapter` modules.
        generator: random numbers for the seeds; None uses PyTorch's global random state.
    """
    seeded = [part for part in module.modules() if isinstance(part, Seeded)]
    outer = [part.seed for part in seeded]
    seeds = torch.randint(2**31, (len(seeded),), generator=generator, device="cpu").tolist()
    try:
        _reseed(seeded, seeds)
        yield
    finally:
        _reseed(seeded, outer)


def _reseed(parts: list[Seeded], seeds: list[int | None]) -> None:
    for part, seed in zip(parts, seeds, strict=True):
        part.seed = seed
        if isinstance(part, Dropout):
            part.release()
