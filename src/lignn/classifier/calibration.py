"""Probabilities that mean what they say: a temperature and a doubt, chosen on predictions at held-out labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit
from torch import Tensor
from torch.nn.functional import logsigmoid

from lignn.graph import Graph
from lignn.labels import at_temperature, log_odds
from lignn.methods import Prediction

FEWEST = 10
"""Held-out nodes below which a temperature would be guesswork."""

_BINS = 15
_TINY = 1e-12
_RANGE = (-3.0, 3.0)
"""Of the temperature's logarithm."""
_DOUBT = -3.0
"""Log-odds of the doubt before any label is seen, if classes are equally frequent."""
_SPREADS = (0.5, 1.0)
"""Standard deviations of both logarithms before any label is seen; they decide where labels are few."""


@dataclass(frozen=True)
class Calibration:
    """`p ↦ (1 - w) σ(log p / T) + w / c`, and what it does on the labels it was chosen with, which no weight has seen.

    Neither number changes the order of classes. The temperature is that of Guo et al., ICML 2017. Mixing in the uniform
    distribution is part of the method of Zhang, Kailkhura and Han, ICML 2020.

    Attributes:
        temperature: T; above 1 makes probabilities less extreme.
        nodes: held-out nodes used.
        before: expected calibration error before calibration.
        after: the same after it.
        doubt: w, the share of the nodes of which the model knows nothing, however sure it is.
    """

    temperature: float
    nodes: int
    before: float
    after: float
    doubt: float = 0.0

    def of(self, probabilities: Tensor, multilabel: bool) -> Tensor:
        """Return the calibrated probabilities."""
        found = at_temperature(probabilities, self.temperature, multilabel)
        return found if self.doubt == 0 else (1 - self.doubt) * found + self.doubt / found.shape[1]

    def __str__(self) -> str:
        doubt = f" and doubt {self.doubt:.2g}" if self.doubt else ""
        return (
            f"temperature {self.temperature:.3g}{doubt} from {self.nodes} held-out nodes, "
            f"expected calibration error {self.before:.3f} before, {self.after:.3f} after"
        )


def calibrated(probabilities: Tensor, calibration: Calibration | None, multilabel: bool) -> Tensor:
    """Return the calibrated probabilities; unchanged ones without a calibration."""
    return probabilities if calibration is None else calibration.of(probabilities, multilabel)


def calibrate(probabilities: Tensor, truth: Tensor, doubts: bool = True) -> Calibration | None:
    """Return the most likely temperature and doubt given the held-out labels; None for too few of them.

    They maximise `Σ log p(y) - (log T)² / 2s² - (logit w - v)² / 2`. The last terms are priors: without them, what fits
    a few labels best is often worse than no calibration at all. `v` is lower where a class is rare: the uniform
    distribution would raise the probability of that class at all nodes.

    Args:
        probabilities: predicted ones of the held-out nodes, m×c.
        truth: their class numbers (m), or 0/1 rows (m×c) for multi-label tasks, which have no doubt.
        doubts: whether to look for a doubt too.
    """
    if len(truth) < FEWEST:
        return None
    before, multilabel = probabilities.double(), truth.ndim == 2
    odds, classes = log_odds(before, multilabel), before.shape[1]
    expected = [0.0] if multilabel or not doubts else [0.0, _DOUBT + math.log(_rarity(truth, classes))]
    mean, spread = torch.tensor(expected).double(), torch.tensor(_SPREADS[: len(expected)]).double()

    @torch.enable_grad()
    def surprise(point: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean loss with the priors at `(log T, logit w)`, and its gradient."""
        x = torch.from_numpy(point.copy()).requires_grad_()
        scaled = odds / x[0].exp()
        if multilabel:
            logs = logsigmoid(torch.where(truth > 0, scaled, -scaled))
        else:
            logs = scaled.log_softmax(1).gather(1, truth[:, None])
        if len(x) > 1:
            logs = torch.logaddexp(logs + logsigmoid(-x[1]), logsigmoid(x[1]) - math.log(classes))
        loss = -logs.mean() + ((x - mean) / spread).square().sum() / (2 * len(truth))
        (gradient,) = torch.autograd.grad(loss, x)
        return loss.item(), gradient.numpy()

    bounds = [_RANGE, (None, None)][: len(expected)]
    log_temperature, *doubt = minimize(surprise, expected, jac=True, bounds=bounds, tol=_TINY).x.tolist()
    found = Calibration(math.exp(log_temperature), len(truth), 0, 0, *(float(expit(each)) for each in doubt))
    errors = [calibration_error(each, truth) for each in (before, found.of(before, multilabel))]
    return replace(found, before=errors[0], after=errors[1])


def _rarity(truth: Tensor, num_classes: int) -> float:
    """Return the share of the rarest class in units of an equal share; one without a label counts as if it had one."""
    return min(1.0, num_classes * float(truth.bincount(minlength=num_classes).clamp(min=1).min() / len(truth)))


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

    @classmethod
    def together(cls, outcomes: Sequence[Outcome]) -> Outcome:
        """Return several outcomes as one."""
        parts = ("probabilities", "predicted", "truth")
        return cls(*(torch.cat([getattr(each, part) for each in outcomes]) for part in parts))

    @property
    def right(self) -> Tensor:
        """Mask of the nodes whose labels are all predicted."""
        return (self.predicted == self.truth).reshape(len(self.truth), -1).all(1)
