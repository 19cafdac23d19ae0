"""A training in progress: everything that its next epoch depends on, and the updates of its weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from lignn.methods import Carry, Epoch, Method, Problem
from lignn.training.adam import Adam
from lignn.training.history import End, History, Scorer
from lignn.training.hooks import Hook
from lignn.training.settings import Training


@dataclass(eq=False)
class Run:
    """A training in progress.

    Attributes:
        method: the method that is trained; between evaluations it is in training mode.
        training: the problem of the loss.
        inference: the problem of the predictions.
        score: turns a prediction into numbers; None if the last epoch is kept.
        generator: draws the masks and dropout of all epochs.
        settings: how to train.
        hooks: what happens around the epochs.
        history: what happened so far.
        optimizer: changes the weights.
        best_weights: those of the best epoch so far; the first ones before any epoch.
    """

    method: Method
    training: Problem
    inference: Problem
    score: Scorer | None
    generator: Generator
    settings: Training
    hooks: Sequence[Hook]
    history: History
    optimizer: Adam = field(init=False)
    best_weights: dict[str, Tensor] = field(init=False)

    def __post_init__(self) -> None:
        self.optimizer = Adam(self.method.parameters(), self.settings.lr, self.settings.weight_decay)
        self.best_weights = self.weights()

    def updated(self, problem: Problem) -> Epoch:
        """Change the weights, once or once a batch of a store's parts, and return the epoch that did."""
        carry, batch_parts = self.history.carry, self.settings.batch_parts
        if batch_parts is None:
            epoch = self.method.epoch(problem, self.generator, carry)
            self._update(epoch)
            return epoch
        from lignn.methods.batches import epoch_of_batches  # needs what reads stores

        # The batches depend on the seed and the number of the epoch alone.
        drawn = np.random.SeedSequence((self.generator.initial_seed(), len(self.history.epochs)))
        order = Generator().manual_seed(int(drawn.generate_state(1, np.uint64)[0]) >> 1)
        return epoch_of_batches(self.method, problem, self.generator, carry, batch_parts, order, self._update)

    def _update(self, epoch: Epoch) -> None:
        """Change the weights by the gradient of a loss; one that is not finite has none."""
        if not math.isfinite(epoch.loss.item()):
            return
        self.optimizer.zero_grad()
        epoch.loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            self.method.project(self.inference)

    def weights(self) -> dict[str, Tensor]:
        """Return a copy of the present weights."""
        return {name: value.detach().clone() for name, value in self.method.state_dict().items()}

    def state(self) -> dict[str, Any]:
        """Return everything for a checkpoint; later epochs do not change it. All processes must call it together."""
        history = self.history
        state = {
            "weights": self.weights(),
            "best": self.best_weights,
            "optimizer": self.optimizer.state(),
            "generator": self.generator.get_state(),
            "carry": history.carry.plain(self.inference.processes),
            "history": {
                "epochs": [*history.epochs],
                "best": history.best,
                "end": history.end,
                "eligible": history.eligible,
            },
        }
        for hook in self.hooks:
            state |= hook.state()
        return state

    def fits(self, state: dict[str, Any]) -> bool:
        """Return whether a state has weights of the same shapes."""
        theirs, best, ours = (
            {name: value.shape for name, value in weights.items()}
            for weights in (state["weights"], state["best"], self.method.state_dict())
        )
        return theirs == best == ours

    def load(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned; raise if its parts do not fit together."""
        self.method.load_state_dict(state["weights"])
        self.best_weights = state["best"]
        self.optimizer.load_state(state.get("optimizer", {}))
        for hook in self.hooks:
            hook.load(state, self.inference)
        self.generator.set_state(state["generator"])
        history = state["history"]
        end = None if history["end"] is None else End(history["end"])
        if history["best"] not in range(-1, len(history["epochs"])) or any("loss" not in e for e in history["epochs"]):
            raise ValueError("its history is none")
        carry = Carry.of(state.get("carry", {}), self.inference)
        eligible = history.get("eligible", True)
        self.history = History(history["epochs"], history["best"], end, carry=carry, eligible=eligible)
