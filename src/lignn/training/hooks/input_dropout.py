"""Dropout of the features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lignn.training.hooks.hook import Hook

if TYPE_CHECKING:
    from lignn.methods import Problem
    from lignn.training.run import Run


class InputDropout(Hook):
    """Sets entries of the features to zero, others in every epoch.

    Args:
        rate: probability of an entry.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def before_epoch(self, run: Run, problem: Problem) -> Problem:
        """Return the problem with some entries dropped."""
        return problem.drop_features(self.rate, run.generator)
