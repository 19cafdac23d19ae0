"""Dropout that holds still: one mask for a whole solve, its taped step and its adjoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Generator, Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lignn.errors import ConfigError


class Seeded(nn.Module):
    """A module whose randomness `frozen_dropout` fixes: while `seed` is set, every call computes the same function."""

    seed: int | None = None


class Dropout(Seeded):
    """Zero each entry with probability p and scale the rest by 1/(1-p); the identity in eval mode and for p = 0.

    Inside `frozen_dropout` the mask depends only on the context's seed and the shape of the input, and is kept until
    the context ends. Outside it is drawn anew at each call from the global random state, as `torch.nn.Dropout` does.
    """

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ConfigError(f"dropout: a probability of at least 0 and below 1 is needed, not {p}")
        self.p = p
        self._mask: Tensor | None = None

    def mask(self, shape: tuple[int, ...], like: Tensor) -> Tensor | None:
        """The factors 0 and 1/(1-p), typed like a tensor; None where dropout is the identity."""
        if not self.training or self.p == 0:
            return None
        if self.seed is None:
            return self._draw(shape, like, None)
        if self._mask is None or self._mask.shape != shape or self._mask.dtype != like.dtype:
            self._mask = self._draw(shape, like, Generator().manual_seed(self.seed))
        return self._mask

    def _draw(self, shape: tuple[int, ...], like: Tensor, generator: Generator | None) -> Tensor:
        with torch.inference_mode(False):  # a mask drawn in a solve is taped in the step after it
            kept = torch.rand(shape, generator=generator) >= self.p
            return kept.to(like.device, like.dtype) / (1 - self.p)

    def forward(self, x: Tensor) -> Tensor:
        """Input times mask."""
        mask = self.mask(x.shape, x)
        return x if mask is None else x * mask

    def release(self) -> None:
        """Forget the mask."""
        self._mask = None

    def extra_repr(self) -> str:
        """Shown in the module's repr."""
        return f"p={self.p}"


@contextmanager
def frozen_dropout(module: nn.Module, generator: Generator | None = None) -> Iterator[None]:
    """All dropout in `module` uses one draw of masks until the context ends (notes.md §2.8).

    The draw comes from `generator` (None: the global random state), once at entry: nothing that happens inside changes
    the next one.
    """
    seeded = [part for part in module.modules() if isinstance(part, Seeded)]
    outer = [part.seed for part in seeded]
    seeds = torch.randint(2**31, (len(seeded),), generator=generator).tolist()
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


@contextmanager
def solving(module: nn.Module) -> Iterator[None]:
    """Batch normalisation in `module` leaves its running statistics alone until the context ends.

    It normalises as its current mode says. A solve calls the network many times for one epoch: only the taped step may
    count.
    """
    norms = [part for part in module.modules() if isinstance(part, _BatchNorm) and part.track_running_stats]
    try:
        for norm in norms:
            # PyTorch reads this flag only to update: in eval mode the statistics it has are still used.
            norm.track_running_stats = False
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True
