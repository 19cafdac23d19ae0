"""Normalisation of hidden layers: whose statistics, and when they move."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from lignn.errors import InputError


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation of a network that is solved.

    The map whose equilibrium is sought has the running statistics as constants, in training as in prediction, so that
    it is one and the same map. The taped step normalises by the statistics of the nodes that training may see, and
    moves the running ones.
    """

    seen: Tensor | None = None
    """Mask of the nodes that the statistics are of; None for all. `seeing` sets it."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each column."""
        if not self.training:
            return super().forward(x)
        if not self.track_running_stats:  # a solve, see `solving`
            assert self.running_mean is not None
            assert self.running_var is not None
            # Copies, since the taped step moves the statistics before the backward pass of the solve reads them.
            constants = self.running_mean.clone(), self.running_var.clone()
            return functional.batch_norm(x, *constants, self.weight, self.bias, eps=self.eps)
        if self.seen is None:
            return super().forward(x)
        part = x[self.seen]
        normal = super().forward(part)
        variance, mean = torch.var_mean(part, 0, correction=0)
        others = (x - mean) * (variance + self.eps).rsqrt() * self.weight + self.bias
        return others.index_put((self.seen,), normal)


def norm_gain(norm: nn.Module) -> Tensor | None:
    """Return the largest factor of a normalisation in eval mode: 1 for none, None for one without a bound.

    Batch normalisation is affine then. Layer normalisation multiplies nearly constant rows by up to `1/√eps`.
    """
    if isinstance(norm, nn.LayerNorm):
        return None
    if not isinstance(norm, nn.BatchNorm1d) or norm.running_var is None:
        return torch.ones((), dtype=torch.float64)
    return (norm.weight.detach().abs() / (norm.running_var + norm.eps).sqrt()).max().double()


def check_statistics(norms: nn.ModuleList, hidden: Tensor, instead: str) -> None:
    """Raise if batch normalisation would have to train on a single node."""
    if len(hidden) < 2 and any(isinstance(norm, nn.BatchNorm1d) and norm.training for norm in norms):
        raise InputError(f"batch normalisation needs at least two nodes; give the backbone option {instead}")


def batch_norms(module: nn.Module) -> list[BatchNorm]:
    """Return all `BatchNorm` in a module."""
    return [part for part in module.modules() if isinstance(part, BatchNorm)]


@contextmanager
def solving(module: nn.Module) -> Iterator[None]:
    """Keep the running statistics of all batch normalisation in `module` unchanged until the context ends.

    A solver evaluates the network many times per epoch, but only the taped step may update the statistics. In training
    mode, `BatchNorm` normalises by the running ones, and PyTorch's own layer by those of the batch.
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


@contextmanager
def seeing(module: nn.Module, seen: Tensor | None) -> Iterator[None]:
    """Let the statistics of all `BatchNorm` in `module` be of the nodes in `seen` (a mask), until the context ends."""
    norms = batch_norms(module)
    try:
        for norm in norms:
            norm.seen = seen
        yield
    finally:
        for norm in norms:
            norm.seen = None


@contextmanager
def estimating(module: nn.Module) -> Iterator[None]:
    """Let a pass in training mode set the running statistics of `BatchNorm` instead of moving them, until the end."""
    norms = batch_norms(module)
    momenta = [norm.momentum for norm in norms]
    try:
        for norm in norms:
            norm.momentum = 1.0
        yield
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
