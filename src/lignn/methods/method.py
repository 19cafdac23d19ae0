"""The small protocol behind which every method of the family stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from torch import Generator, Tensor, nn

from lignn.methods.problem import Prediction, Problem

Score = Callable[[Prediction], float]
"""The validation score of a prediction: all that a method may learn of validation labels."""


class Method(nn.Module, ABC):
    """A loss for an epoch and a prediction; the loop over epochs is not its business.

    A method without parameters has nothing to train and needs no loss.
    """

    @abstractmethod
    def predict(self, problem: Problem) -> Prediction:
        """Predictions with all known labels of `problem`, without randomness or gradients."""

    def loss(self, problem: Problem, generator: Generator) -> Tensor:  # noqa: ARG002
        """The taped loss of one epoch; randomness comes from `generator` alone."""
        raise AssertionError(f"{type(self).__name__} has nothing to train")

    def after_update(self) -> None:
        """Called after every update of the weights, e.g. to project them."""

    def second_stage(self, problem: Problem, score: Score | None) -> None:
        """Called once after training, with the best weights; what it chooses, `predict` uses.

        Without validation labels there is no score, and nothing to choose by.
        """

    def account(self) -> dict[str, Any]:
        """What the last epoch's solves were like, as plain values for the history."""
        return {}

    def extra_state(self) -> dict[str, Any]:
        """Tensors and plain values beside the weights that the next epoch depends on, for checkpoints."""
        return {}

    def load_extra_state(self, state: dict[str, Any]) -> None:
        """Take up what `extra_state` gave."""
