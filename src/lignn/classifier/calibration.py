"""Probabilities that mean what they say: one temperature, chosen on predictions at held-out labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from lignn.graph import Graph
from lignn.labels import at_temperature
from lignn.methods import Prediction
from lignn.training import Metric

FEWEST = 10
"""Held-out nodes below which a temperature would be guesswork."""

_BINS = 15
_TINY = 1e-12
_RANGE = (-3.0, 3.0)
"""Of the temperature's logarithm."""
_SPREAD = 0.5
"""Standard deviation of the temperature's logarithm before any label is seen; it decides where labels are few."""


@dataclass(frozen=True)
class Calibration:
    """A temperature and what it does on the labels it was chosen with, which no weight has seen.

    Attributes:
        temperature: T; above 1 makes probabilities less extreme.
        nodes: held-out nodes used.
        before: expected calibration error without it.
        after: with it.
    """

    temperature: float
    nodes: int
    before: float
    after: float

    def __str__(self) -> str:
        return (
            f"temperature {self.temperature:.3g} from {self.nodes} held-out nodes, "
            f"expected calibration error {self.before:.3f} before, {self.after:.3f} after"
        )


def calibrate(probabilities: Tensor, truth: Tensor) -> Calibration | None:
    """The most likely temperature given the held-out labels (Guo et al., ICML 2017); None for too few of them.

    It maximises `Σ log p_T(y) - (log T)² / 2s²`. The last term is a prior: without it, the temperature of a few labels
    is often further from the best one than no temperature at all.

    Args:
        probabilities: predicted ones of the held-out nodes, m×c.
        truth: their class numbers (m), or 0/1 rows (m×c) for multi-label tasks.
    """
    if len(truth) < FEWEST:
        return None
    before = probabilities.double()

    def at(log_temperature: float) -> Tensor:
        return at_temperature(before, math.exp(log_temperature), truth.ndim == 2)

    def surprise(t: float) -> float:
        return _surprise(at(t), truth) + t**2 / (2 * _SPREAD**2 * len(truth))

    best = float(minimize_scalar(surprise, bounds=_RANGE, method="bounded").x)
    errors = (calibration_error(before, truth), calibration_error(at(best), truth))
    return Calibration(math.exp(best), len(truth), *errors)


def calibration_error(probabilities: Tensor, truth: Tensor) -> float:
    """Expected calibration error: the mean distance of confidence and accuracy over 15 bins of confidence.

    For multi-label tasks each class of each node is a decision of its own.
    """
    if truth.ndim == 2:
        confidence = torch.maximum(probabilities, 1 - probabilities).flatten()
        right = ((probabilities > 0.5) == (truth > 0)).flatten()
    else:
        confidence, decided = probabilities.max(1)
        right = decided == truth
    bins = (confidence * _BINS).long().clamp(max=_BINS - 1)
    gap = torch.zeros(_BINS, dtype=torch.float64).index_add_(0, bins, confidence.double() - right.double())
    return float(gap.abs().sum() / len(right.flatten()))


def _surprise(probabilities: Tensor, truth: Tensor) -> float:
    """Mean negative log-likelihood."""
    if truth.ndim == 2:
        likelihood = torch.where(truth > 0, probabilities, 1 - probabilities)
    else:
        likelihood = probabilities.gather(1, truth[:, None])
    return float(-likelihood.clamp(min=_TINY).log().mean())


@dataclass(frozen=True, eq=False)
class Outcome:
    """Predictions at nodes whose labels were held back.

    Attributes:
        probabilities: of these nodes, m×c.
        predicted: their predicted labels.
        truth: their labels.
    """

    probabilities: Tensor
    predicted: Tensor
    truth: Tensor

    @classmethod
    def of(cls, prediction: Prediction, graph: Graph, nodes: Tensor) -> Outcome:
        """Return the predictions at the labelled ones of `nodes` (a mask), whose labels were no input."""
        assert graph.y is not None
        nodes = nodes & graph.labelled
        all_rows = prediction.problem.space.all_rows
        parts = prediction.probabilities.cpu(), prediction.labels.cpu(), graph.y
        return cls(*(all_rows(part[nodes]) for part in parts))

    @property
    def right(self) -> Tensor:
        """Mask of the nodes whose labels are all predicted."""
        return (self.predicted == self.truth).reshape(len(self.truth), -1).all(1)


def pooled(outcomes: Sequence[Outcome]) -> Calibration | None:
    """Fit the temperature to all held-back labels together, which were no input; None if there are too few."""
    return calibrate(*(torch.cat([getattr(each, part) for each in outcomes]) for part in ("probabilities", "truth")))


def score_of(outcomes: Sequence[Outcome], metric: Metric) -> float:
    """Return the score on all held-back labels together."""
    parts = ("probabilities", "predicted", "truth")
    return metric(*(torch.cat([getattr(each, part) for each in outcomes]) for part in parts))
