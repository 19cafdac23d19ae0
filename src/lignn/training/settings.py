"""How a method is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lignn.declarations import POLICY
from lignn.errors import ConfigError


@dataclass(frozen=True)
class Training:
    """Settings of training.

    Attributes:
        lr: learning rate of Adam.
        weight_decay: weight decay of Adam.
        max_epochs: maximum number of epochs.
        patience: stop after this many epochs without a better validation score.
        first_epoch: first epoch that may be chosen; a network that has hardly been trained can be best by chance.
        input_dropout: probability that an entry of the features is set to zero in an epoch.
        averaged_epochs: number of epochs whose weights are averaged for predictions; 1 takes the last ones.
        evaluate_every: predict and score after every so many epochs, and after the last one. Without a scorer the
            last epoch alone is evaluated if this is above 1.
        batch_parts: number of parts of a store in a batch; None: an epoch is one update, on the whole graph.
        teaching: weight in the loss of what the model teaches itself, see `hooks.teaching`; 0 for nothing.
        learned: loss in units of a guess's below which the known labels count as learned: only then may it teach.
        sure: probability from which on a prediction teaches.
        goes_on: whether the weights were trained before; predictions may then teach after 10 epochs, not 50.
    """

    lr: float = 0.01
    weight_decay: float = 0.0
    max_epochs: int = 1000
    patience: int = 100
    first_epoch: int = 0
    input_dropout: float = 0.0
    averaged_epochs: int = 1
    evaluate_every: int = 1
    batch_parts: int | None = None
    teaching: float = 0.0
    learned: float = POLICY["learned"].default
    sure: float = POLICY["sure"].default
    goes_on: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.lr < math.inf:
            raise ConfigError(f"lr: a positive number is needed, got {self.lr}")
        if not 0 <= self.input_dropout < 1:
            raise ConfigError(f"input_dropout: a share from 0 to below 1 is needed, got {self.input_dropout}")
        if not 0 <= self.weight_decay < math.inf:
            raise ConfigError(f"weight_decay: a number of at least 0 is needed, got {self.weight_decay}")
        if not 0 <= self.teaching < math.inf:
            raise ConfigError(f"teaching: a number of at least 0 is needed, got {self.teaching}")
        for name in ("max_epochs", "patience", "averaged_epochs", "evaluate_every", "batch_parts"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name}: at least 1 is needed, got {value}")
        if not 0 <= self.first_epoch < self.max_epochs:
            raise ConfigError(f"first_epoch: 0 … {self.max_epochs - 1} is needed, got {self.first_epoch}")

    def evaluates(self, number: int, scored: bool) -> bool:
        """Return whether there are predictions after an epoch; `scored`: whether they are scored."""
        last, every = number + 1 >= self.max_epochs, self.evaluate_every
        return last or every == 1 or (scored and (number == 0 or (number + 1) % every == 0))
