"""Dropout whose mask stays the same for a whole solve, so that the solver iterates one function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Generator, Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lignn.errors import ConfigError


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
        with torch.inference_mode(False):  # a mask drawn in a solve is taped in the step after it
            kept = torch.rand(shape, generator=generator, device="cpu") >= self.p
            return kept.to(like.device, like.dtype) / (1 - self.p)

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


@contextmanager
def frozen_dropout(module: nn.Module, generator: Generator | None = None) -> Iterator[None]:
    """Keep the masks of all dropout in `module` until the context ends (notes.md §2.8).

    The seeds of the masks are drawn once, when the context is entered. What happens inside does not change the seeds
    of the next context.

    Args:
        module: with `Dropout` or `Adapter` modules inside.
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


@contextmanager
def solving(module: nn.Module) -> Iterator[None]:
    """Keep the running statistics of all batch normalisation in `module` unchanged until the context ends.

    A solver evaluates the network many times per epoch, but only the taped step may update the statistics. Training
    mode still normalises by those of the batch, and eval mode by the running ones.
    """
    norms = [part for part in module.modules() if isinstance(part, _BatchNorm) and part.track_running_stats]
    try:
        for norm in norms:
            # PyTorch reads this flag only to update: in eval mode the running statistics are still used.
            norm.track_running_stats = False
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True
