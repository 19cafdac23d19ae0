"""The mean of the weights over the last epochs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Generator, Tensor, nn

from lignn.backbones.norms import batch_norms, estimating
from lignn.training.hooks.hook import Hook

if TYPE_CHECKING:
    from lignn.methods import Problem
    from lignn.training.run import Run


class Averaging(Hook):
    """Predicts with a moving mean of the weights, `W̄ ← W̄ + (W - W̄) / min(t, window)` after epoch t.

    Every epoch hides other labels, features and units, so the weights never come to rest, and those of a single epoch
    are good or bad by chance. Their mean is not (Izmailov et al., "Averaging weights leads to wider optima and better
    generalization", UAI 2018).

    Args:
        module: what is trained.
        window: number of epochs that the mean remembers.
    """

    def __init__(self, module: nn.Module, window: int) -> None:
        self.module, self.window = module, window
        self.count = 0
        self.mean: dict[str, Tensor] = {}
        self._places = _places(module)

    def after_update(self, run: Run, record: dict[str, Any]) -> None:  # noqa: ARG002
        """Take the weights of another epoch into the mean."""
        self.add()

    @contextmanager
    def evaluating(self, run: Run, problem: Problem) -> Iterator[None]:
        """Let the method predict with the mean.

        A mean of the running statistics of `BatchNorm` would be that of no network: a pass in training mode estimates
        them. A mean of weights need not keep a bound that each of them keeps, so that it is projected.
        """
        generator = Generator().manual_seed(len(run.history.epochs))
        with self.in_use():
            with torch.no_grad(), estimating(self.module):
                if batch_norms(self.module):
                    run.method.epoch(problem, generator, run.history.carry)
                run.method.project(run.inference)
            yield

    def add(self) -> None:
        """Take the present weights into the mean."""
        weights = self._weights()
        self.count += 1
        if self.count == 1:
            self.mean = {name: value.clone() for name, value in weights.items()}
        share = 1 / min(self.count, self.window)
        torch._foreach_lerp_(list(self.mean.values()), list(weights.values()), share)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Let the module have the mean for its weights until the context ends."""
        last = {name: value.clone() for name, value in self._weights().items()}
        self.module.load_state_dict(self.mean, strict=False)
        try:
            yield
        finally:
            self.module.load_state_dict(last, strict=False)

    def state(self) -> dict[str, Any]:
        """Return a copy of the mean."""
        return {"average": {"count": self.count, "mean": {name: value.clone() for name, value in self.mean.items()}}}

    def load(self, state: dict[str, Any], inference: Problem) -> None:  # noqa: ARG002
        """Restore what `state` returned; raise if it does not fit the weights."""
        state = {"count": 0, "mean": {}} | state.get("average", {})
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
