"""The mean of the weights over the last epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from lignn.backbones.norms import batch_norms, estimating


class WeightAverage:
    """A moving mean of a module's weights, `W̄ ← W̄ + (W - W̄) / min(t, window)` after epoch t.

    Every epoch hides other labels, features and units, so the weights never come to rest, and those of a single epoch
    are good or bad by chance. Their mean is not (Izmailov et al., "Averaging weights leads to wider optima and better
    generalization", UAI 2018).

    Args:
        module: what is trained.
        window: number of epochs that the mean remembers; with 1 it is the last weights, and nothing is kept.
    """

    def __init__(self, module: nn.Module, window: int) -> None:
        self.module, self.window = module, window
        self.count = 0
        self.mean: dict[str, Tensor] = {}
        self._places = _places(module) if window > 1 else {}

    def add(self) -> None:
        """Take the weights of another epoch into the mean."""
        if self.window == 1:
            return
        weights = self._weights()
        self.count += 1
        if self.count == 1:
            self.mean = {name: value.clone() for name, value in weights.items()}
        share = 1 / min(self.count, self.window)
        torch._foreach_lerp_(list(self.mean.values()), list(weights.values()), share)

    @contextmanager
    def in_use(self, pass_through: Callable[[], object]) -> Iterator[None]:
        """Let the module have the mean for its weights until the context ends.

        Args:
            pass_through: passes through the module in training mode; it estimates the running statistics of
                `BatchNorm`, of which a mean would be that of no network.
        """
        if self.window == 1:
            yield
            return
        last = {name: value.clone() for name, value in self._weights().items()}
        self.module.load_state_dict(self.mean, strict=False)
        try:
            if batch_norms(self.module):
                with torch.no_grad(), estimating(self.module):
                    pass_through()
            yield
        finally:
            self.module.load_state_dict(last, strict=False)

    def state(self) -> dict[str, Any]:
        """Return a copy of all that is kept, for checkpoints."""
        return {"count": self.count, "mean": {name: value.clone() for name, value in self.mean.items()}}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned; raise if it does not fit the weights."""
        fresh = self._weights() if state["count"] else {}
        if {name: value.shape for name, value in state["mean"].items()} != {n: v.shape for n, v in fresh.items()}:
            raise ValueError("the mean of the weights does not fit the weights")
        self.count, self.mean = state["count"], {name: state["mean"][name].to(value) for name, value in fresh.items()}

    def _weights(self) -> dict[str, Tensor]:
        """Return weights and statistics, but no counters."""
        return {name: table[key].detach() for name, (table, key) in self._places.items()}


def _places(module: nn.Module) -> dict[str, tuple[dict[str, Any], str]]:
    """Return the table and the key of every weight and statistic; `state_dict` takes longer than Adam's step."""
    floating = [name for name, value in module.state_dict().items() if value.is_floating_point()]
    owners = {name: module.get_submodule(name.rpartition(".")[0]) for name in floating}
    keys = {name: name.rpartition(".")[2] for name in floating}
    return {
        name: (owner._parameters if keys[name] in owner._parameters else owner._buffers, keys[name])
        for name, owner in owners.items()
    }
