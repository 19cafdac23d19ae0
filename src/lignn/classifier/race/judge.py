"""The score of predictions on folds, and whether a model is better than another beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lignn.classifier.race.fold_fits import Setup
from lignn.training import Metric
from lignn.training.metrics import log_losses, mean_log_loss

_FOR_AN_INTERVAL, _FOR_AN_ERROR = 200, 50
"""Numbers of resamples."""
_FEWEST = 20
"""The fewest resamples on which a metric must be defined to give an interval."""
_INTERVAL = (2.5, 97.5)
_LITTLE = 0.03
"""Gain that is called none where it cannot be excluded."""


@dataclass(frozen=True, eq=False)
class Judge:
    """The score of predictions of the scored nodes of some folds, which are pooled.

    Attributes:
        metric: the metric.
        truth: the labels of the scored nodes of every fold.
    """

    metric: Metric
    truth: tuple[Tensor, ...]

    @classmethod
    def of(cls, setup: Setup) -> Judge:
        """Return the judge of a setup; raise if its metric is not defined for the labels that score."""
        y = setup.graph.y
        assert y is not None
        truth = tuple(y[fold.scored] for fold in setup.folds)
        setup.metric.check(torch.cat(truth), "scored")
        return cls(setup.metric, truth)

    def score(self, probabilities: Sequence[Tensor], folds: Sequence[int]) -> float:
        """Return the score of predictions of these folds; larger is better."""
        return self.of_nodes(torch.cat(list(probabilities)), torch.cat([self.truth[fold] for fold in folds]))

    def rank(self, probabilities: Sequence[Tensor], folds: Sequence[int]) -> tuple[float, float]:
        """Return what orders models, larger is better: the score, and among equal scores the log loss."""
        rows, truth = torch.cat(list(probabilities)), torch.cat([self.truth[fold] for fold in folds])
        return self.of_nodes(rows, truth), -mean_log_loss(rows, truth)

    def is_behind(
        self, leader: Sequence[Tensor], other: Sequence[Tensor], folds: Sequence[int], errors: float = 1.0
    ) -> bool:
        """Return whether a model's log loss is higher than the leader's by more errors of the difference."""
        truth = torch.cat([self.truth[fold] for fold in folds])
        ours, theirs = (log_losses(torch.cat(list(each)), truth).reshape(len(truth), -1) for each in (leader, other))
        more = (theirs - ours).mean(1)
        return bool(more.mean() > errors * more.std() / len(more) ** 0.5)

    def of_nodes(self, probabilities: Tensor, truth: Tensor) -> float:
        """Return the score of predictions of some nodes."""
        return self.metric(probabilities, decided(probabilities, truth.ndim == 2), truth)


def decided(probabilities: Tensor, multilabel: bool) -> Tensor:
    """Return the labels that probabilities decide for."""
    return (probabilities > 0.5).to(torch.int8) if multilabel else probabilities.argmax(1)


@dataclass(frozen=True)
class Gap:
    """The difference of two models on the same labels, as tables show scores.

    Attributes:
        mean: the difference.
        low, high: 95 % interval from resampled nodes; None if it is not known.
        little: gain that is called none where it cannot be excluded.
    """

    mean: float
    low: float | None
    high: float | None
    little: float = 100 * _LITTLE

    @property
    def sign(self) -> int:
        """1 if the interval lies above 0, -1 if it lies below, otherwise 0."""
        if self.low is None or self.high is None:
            return 0
        return 1 if self.low > 0 else -1 if self.high < 0 else 0

    @property
    def beyond_its_error(self) -> bool:
        """Whether the difference is above its standard error, about a quarter of the interval."""
        return self.low is not None and self.high is not None and self.mean > (self.high - self.low) / 4

    @property
    def none(self) -> bool:
        """Whether the interval excludes all but a little gain."""
        return self.high is not None and self.high <= self.little

    def __str__(self) -> str:
        interval = "" if self.low is None else f" [{self.low:+.2f}, {self.high:+.2f}]"
        return f"{self.mean:+.2f}{interval}"


def error_of(judge: Judge, folds: Sequence[int], model: Sequence[Tensor]) -> float | None:
    """Return the standard error of the score of a model; None if it is not known."""
    found = _resampled(judge, folds, [model], _FOR_AN_ERROR)
    return None if found is None else judge.metric.declared.factor * float(found[:, 0].std())


def _resampled(judge: Judge, folds: Sequence[int], models: Sequence[Sequence[Tensor]], count: int) -> np.ndarray | None:
    """Return the scores of models on resampled nodes (the bootstrap), one row a resample, one column a model.

    The result is None if the metric is hardly ever defined.
    """
    truth = torch.cat([judge.truth[fold] for fold in folds])
    pooled = [torch.cat(list(each)) for each in models]
    generator = torch.Generator().manual_seed(0)
    found = []
    for _ in range(count):
        nodes = torch.randint(len(truth), (len(truth),), generator=generator)
        if judge.metric.is_defined(truth[nodes]):
            found.append([judge.of_nodes(each[nodes], truth[nodes]) for each in pooled])
    return np.array(found) if len(found) >= _FEWEST else None


def gap(judge: Judge, folds: Sequence[int], one: Sequence[Tensor], other: Sequence[Tensor]) -> Gap:
    """Return how much better `one` is than `other`; positive is better, whatever the metric."""
    factor = judge.metric.declared.factor
    mean = factor * (judge.score(one, folds) - judge.score(other, folds))
    found = _resampled(judge, folds, [one, other], _FOR_AN_INTERVAL)
    if found is None:
        return Gap(mean, None, None, _LITTLE * factor)
    low, high = np.percentile(factor * (found[:, 0] - found[:, 1]), _INTERVAL)
    return Gap(mean, float(low), float(high), _LITTLE * factor)
