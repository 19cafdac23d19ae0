"""The two ways of batch normalisation in a solve that were not chosen, for the study `minesweeper_choice`."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from lignn.backbones.backbone import check_choice
from lignn.backbones.norms import BatchNorm

Statistics = Literal["batch", "running"]
"""Whose statistics both the solve and the taped step normalise by: those of the batch, or the running ones."""


class Running(BatchNorm):
    """Batch normalisation by running statistics as constants, also in the taped step, which moves them afterwards."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each column."""
        if not (self.training and self.track_running_stats):
            return super().forward(x)
        assert self.running_mean is not None
        assert self.running_var is not None
        constants = self.running_mean.clone(), self.running_var.clone()
        with torch.no_grad():
            functional.batch_norm(x, self.running_mean, self.running_var, training=True, momentum=self.momentum or 0.0)
        return functional.batch_norm(x, *constants, self.weight, self.bias, eps=self.eps)


def use_statistics(network: nn.Module, statistics: Statistics) -> None:
    """Replace all `BatchNorm` of a network with fresh weights."""
    check_choice("statistics", statistics, get_args(Statistics))
    kind = {"batch": nn.BatchNorm1d, "running": Running}[statistics]
    for module in list(network.modules()):
        for name, part in module.named_children():
            if isinstance(part, BatchNorm):
                module.add_module(name, kind(part.num_features))
