"""How good predictions are: a score beside that of a guess, and precision and recall of every class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix, precision_recall_curve, precision_recall_fscore_support
from torch import Tensor

from lignn.classifier import imbalance, scoring
from lignn.classifier.model import Fitted
from lignn.declarations import METRICS
from lignn.graph import Graph
from lignn.labels import Classes
from lignn.training import Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SCORED = {
    "test": "test nodes",
    "val": "validation nodes",
    "train": "training nodes",
    scoring.HELD_OUT: "held-out labels",
}
_BINS, _POINTS, _CURVES, _ROWS = 10, 200, 8, 20
"""Bins of a reliability diagram, points and number of precision-recall curves, and classes that `str` shows."""


@dataclass(frozen=True)
class ClassScore:
    """Scores of one class.

    Attributes:
        name: name of the class.
        precision: share of the nodes predicted to have the class that have it; 0 if there are none.
        recall: share of the nodes with the class that are predicted to have it; 0 if there are none.
        support: number of nodes with the class.
        predicted: number of nodes that are predicted to have it.
    """

    name: str
    precision: float
    recall: float
    support: int
    predicted: int


@dataclass(frozen=True, eq=False)
class Report:
    """Scores of predictions on some nodes; `str` of it is in words.

    Attributes:
        metric: name of the metric.
        score: its value, with its usual sign; NaN if it is not defined on these nodes.
        baseline: its value for always answering `majority`, with the shares of the known labels as probabilities.
        majority: the most frequent known label.
        nodes: number of nodes that were scored.
        classes: scores of each class.
        confusion: c×c numbers of nodes by true class (row) and predicted class; None for multi-label tasks.
        reliability: 2×b: mean confidence in the predicted class, and share of right predictions, by bin of confidence.
        curves: recall and precision (2×k) of up to 8 of the rarest classes, by class name.
        note: a sentence if one class only is predicted.
        roc_auc: ROC AUC of the rarer of two classes; None if there are more, or if it is not defined on these nodes.
        part: "test", "val", "train", "held_out" for the labels that `fit` held back, or empty for other nodes.
        seen_since: whether the model was trained on these labels after the predictions that are scored here.
    """

    metric: str
    score: float
    baseline: float
    majority: str
    nodes: int
    classes: tuple[ClassScore, ...]
    confusion: np.ndarray | None = field(repr=False)
    reliability: np.ndarray = field(repr=False)
    curves: Mapping[str, np.ndarray] = field(repr=False)
    note: str | None = None
    roc_auc: float | None = None
    part: str = ""
    seen_since: bool = False

    @property
    def headline(self) -> str:
        """The score beside that of a guess."""
        scored = f"{self.nodes} {_SCORED.get(self.part, 'nodes')}"
        if math.isnan(self.score):
            return f"{METRICS[self.metric].title} is not defined on these {scored}, which lack a class"
        ranks = "" if self.roc_auc is None or self.metric == "roc_auc" else f", ROC AUC {self.roc_auc:.4f}"
        guess = f"always {self.majority!r} scores {self.baseline:.4f}"
        return f"{METRICS[self.metric].title} {self.score:.4f}{ranks} on {scored}; {guess}"

    @property
    def title(self) -> str:
        """What was scored, as a heading."""
        return _SCORED.get(self.part, "nodes").capitalize()

    @property
    def basis(self) -> str:
        """What the scored labels were used for, in a sentence; empty if nothing is to be said."""
        if self.part == "train":
            return "The model was trained on these labels: the score says nothing of other nodes."
        if self.part not in ("val", "held_out"):
            return ""
        if self.seen_since:
            return "These labels were held back for this score; the final model has since been trained on them too."
        return "These labels chose the epoch; the model was not trained on them."

    def rows(self, limit: int = _ROWS) -> list[tuple[str, str, str, str]]:
        """Return name, precision, recall and support as texts; of many classes only those with the lowest recall."""
        shown = list(self.classes)
        if len(shown) > limit:
            shown = sorted((one for one in shown if one.support), key=lambda one: one.recall)[:limit]
        return [(one.name, f"{one.precision:.3f}", f"{one.recall:.3f}", str(one.support)) for one in shown]

    def __str__(self) -> str:
        table = [("class", "precision", "recall", "support"), *self.rows()]
        width = max(len(row[0]) for row in table)
        lines = [f"{row[0]:<{width}}" + "".join(f"  {cell:>9}" for cell in row[1:]) for row in table]
        left = len(self.classes) - len(table) + 1
        more = [f"and {left} more classes"] if left else []
        said = [sentence for sentence in (self.basis, self.note) if sentence]
        return "\n".join([self.headline, *lines, *more, *said])

    def plot_reliability(self, ax: Axes | None = None) -> Axes:
        """Draw the share of right predictions against their confidence, and return the axes."""
        from lignn.classifier import pictures

        return pictures.reliability(self, ax)

    def plain(self) -> dict[str, Any]:
        """Return scores, classes and confusion matrix as plain values."""
        names = ("part", "metric", "score", "roc_auc", "baseline", "majority", "nodes", "seen_since", "note")
        values = {name: getattr(self, name) for name in names}
        confusion = None if self.confusion is None else self.confusion.tolist()
        return values | {"classes": [asdict(one) for one in self.classes], "confusion": confusion}


def about_fit(fitted: Fitted) -> str | None:
    """Say that a model predicts one class only, or is no better than a guess on held-out labels; None if neither."""
    one_class = imbalance.about_predictions(fitted.prediction, fitted.split, fitted.classes)
    held_out = fitted.held_out
    if one_class or held_out is None or len(held_out.truth) < imbalance.FEWEST or len(held_out.truth.unique(dim=0)) < 2:
        return one_class
    found = report(fitted, scoring.HELD_OUT, None)
    if not METRICS[found.metric].sign * (found.score - found.baseline) <= 0:  # or undefined, NaN
        return None
    return (
        f"the model is no better than a guess: {found.headline}; try another method or backbone "
        "(--method auto tries several), features that tell more, or more labels"
    )


def report(fitted: Fitted, nodes: Any, graph: Graph | None, known: Any = None, metric: str | None = None) -> Report:
    """Score predictions as `scoring.score` does, and every class."""
    measure = scoring.metric_named(fitted, metric)
    if nodes is None:
        nodes = "test" if scoring.elsewhere(fitted, graph) is not None else scoring.held_out_part(fitted)
    scored = scoring.scored(fitted, nodes, graph, known)
    part = nodes if isinstance(nodes, str) else ""
    shares = _shares(fitted)
    guess, majority = _guess(shares, fitted.classes)
    count = len(scored.truth)
    constant = shares.expand(count, -1), guess.expand(count, *guess.shape)
    score, baseline = float("nan"), float("nan")
    if measure.is_defined(scored.truth):
        score = measure.shown(measure(scored.probabilities, scored.predicted, scored.truth))
        baseline = measure.shown(measure(*constant, scored.truth))
    return Report(
        measure.name,
        score,
        baseline,
        majority,
        count,
        *_of_classes(scored, measure, fitted.classes),
        imbalance.about_labels(scored.predicted, fitted.classes),
        _roc_auc(scored, measure),
        part,
        part == scoring.HELD_OUT and fitted.has_seen_held_out,
    )


def _roc_auc(scored: scoring.Scored, measure: Metric) -> float | None:
    """Return the ROC AUC of the rarer of two classes, None if it is not defined."""
    if measure.positive is None:
        return None
    ranks = measure.named("roc_auc", multilabel=False)
    return ranks(scored.probabilities, scored.predicted, scored.truth) if ranks.is_defined(scored.truth) else None


def _shares(fitted: Fitted) -> Tensor:
    """Return the share of each class in the training labels that are known by now."""
    labels = fitted.prediction.problem.labels.to("cpu")
    training = labels.mask & fitted.split.train
    return labels.onehot[training if training.any() else labels.mask].double().mean(0)


def _guess(shares: Tensor, classes: Classes) -> tuple[Tensor, str]:
    """Return the label that a guess always gives, and its name."""
    if classes.multilabel:
        guess = (shares > 0.5).to(torch.int8)
        return guess, "|".join(name for name, there in zip(classes.names, guess, strict=True) if there) or "no class"
    return shares.argmax(), classes.names[int(shares.argmax())]


def _of_classes(
    scored: scoring.Scored, measure: Metric, classes: Classes
) -> tuple[tuple[ClassScore, ...], np.ndarray | None, np.ndarray, dict[str, np.ndarray]]:
    """Return the scores of the classes, the confusion matrix, the reliability and the curves."""
    truth, predicted, p = (part.cpu().numpy() for part in (scored.truth, scored.predicted, scored.probabilities))
    numbers = np.arange(len(classes))
    precision, recall, _, support = precision_recall_fscore_support(truth, predicted, labels=numbers, zero_division=0.0)
    marked = predicted if classes.multilabel else predicted[:, None] == numbers
    there = truth if classes.multilabel else truth[:, None] == numbers
    rows = zip(classes.names, precision, recall, support, marked.sum(0), strict=True)
    scores = tuple(ClassScore(name, float(p), float(r), int(s), int(m)) for name, p, r, s, m in rows)
    right = marked == there if classes.multilabel else predicted == truth
    confidence = np.maximum(p, 1 - p) if classes.multilabel else p.max(1)
    share, mean = calibration_curve(right.ravel(), confidence.clip(0, 1).ravel(), n_bins=_BINS)
    rarest = [c for c in np.argsort(support, kind="stable") if 0 < support[c] < len(truth)][:_CURVES]
    if measure.positive is not None and measure.positive in rarest:
        rarest = [measure.positive]  # of two classes, the curve of the other one says little
    curves = {classes.names[c]: _curve(there[:, c], p[:, c]) for c in rarest}
    confusion = None if classes.multilabel else confusion_matrix(truth, predicted, labels=numbers)
    return scores, confusion, np.stack([mean, share]), curves


def _curve(truth: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return recall and precision at up to `_POINTS` thresholds."""
    precision, recall, _ = precision_recall_curve(truth, scores, drop_intermediate=True)
    chosen = np.unique(np.linspace(0, len(recall) - 1, _POINTS).round().astype(int))
    return np.stack([recall[chosen], precision[chosen]])
