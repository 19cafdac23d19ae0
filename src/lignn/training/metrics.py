"""Metrics that choose the epoch and score predictions, computed by scikit-learn; larger is better for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sklearn.metrics import average_precision_score, f1_score, log_loss, recall_score, roc_auc_score
from torch import Tensor

from lignn.declarations import DEFAULT_METRIC, METRICS, MetricDeclaration
from lignn.errors import ConfigError, InputError, unknown
from lignn.labels import KnownLabels

MAJORITY = 0.9
"""Share of one class in the training labels above which F1-macro is the default."""
_TINY = 1e-12
"""Smallest probability of a label in the log loss, so that it is finite."""


def f1_micro(predicted: Tensor, truth: Tensor) -> float:
    """Return the micro-averaged F1 score; with one label per node this is the accuracy."""
    if truth.ndim == 1:
        return (predicted == truth).sum().item() / len(truth)
    hits = (predicted & truth).sum().item()
    marked = (predicted.sum() + truth.sum()).item()
    return 2 * hits / marked if marked else 1.0


def log_losses(probabilities: Tensor, truth: Tensor) -> Tensor:
    """Return `-log p(label)` of every node; for multi-label tasks of every node and class."""
    p = probabilities.double().cpu()
    of_labels = p.gather(1, truth[:, None]) if truth.ndim == 1 else torch.where(truth > 0, p, 1 - p)
    return -of_labels.clamp(min=_TINY).log()


def mean_log_loss(probabilities: Tensor, truth: Tensor) -> float:
    """Return the mean of `log_losses`."""
    return log_losses(probabilities, truth).mean().item()


def predicts_one_class(predicted: Tensor, truth: Tensor) -> bool:
    """Return whether nodes of several classes are all predicted to be of one; never for multi-label tasks."""
    return truth.ndim == 1 and len(truth.unique()) > 1 and len(predicted.unique()) == 1


@dataclass(frozen=True)
class Metric:
    """A metric by name.

    ROC AUC and average precision are those of the rarer class if there are two classes. Otherwise they are the mean
    over the classes for which they are defined: some scored node has the class, and some has not.

    Attributes:
        name: one of `declarations.METRICS`.
        positive: of two classes, the one with fewer training labels; None if there are more, or several per node.
    """

    name: str = DEFAULT_METRIC
    positive: int | None = None

    @classmethod
    def of(cls, name: str | None, labels: KnownLabels) -> Metric:
        """Return the metric called `name`, None for the default, for these training labels."""
        if name is None:
            name = DEFAULT_METRIC if labels.multilabel or majority(labels) is None else "f1_macro"
        first, *others = labels.counts.tolist()
        two = len(others) == 1 and not labels.multilabel
        return cls(positive=int(first >= others[0]) if two else None).named(name, labels.multilabel)

    def named(self, name: str, multilabel: bool) -> Metric:
        """Return another metric for the same classes."""
        if name not in METRICS:
            raise unknown("metric", name, METRICS)
        if multilabel and not METRICS[name].several:
            fitting = ", ".join(each for each, declared in METRICS.items() if declared.several)
            raise ConfigError(f"metric: {name!r} needs one class per node, here a node may have several; use {fitting}")
        return replace(self, name=name)

    @cached_property
    def declared(self) -> MetricDeclaration:
        """Title and sign."""
        return METRICS[self.name]

    def shown(self, value: float) -> float:
        """Return a value with its usual sign."""
        return self.declared.sign * value

    def tie_breaker(self, truth: Tensor) -> Metric | None:
        """Return what decides between epochs of the same score before the log loss does; None for nothing.

        Few labels of a class make F1-macro and balanced accuracy the same for many epochs, the first of which are
        hardly trained. The average precision still tells how far above others the nodes of the class are.
        """
        finer = replace(self, name="average_precision")
        return finer if self.name in _OF_LABELS and finer.is_defined(truth) else None

    @property
    def is_of_labels(self) -> bool:
        """Whether it depends on predicted labels alone, and not on probabilities."""
        return self.name == DEFAULT_METRIC or self.name in _OF_LABELS

    def is_defined(self, truth: Tensor) -> bool:
        """Return whether nodes with these labels can be scored; ranks need nodes with and without a class."""
        return self.name not in _OF_RANKS or len(self._columns(_rows(truth, 2))) > 0

    def check(self, truth: Tensor, where: str) -> None:
        """Raise if the metric is not defined for nodes with these labels; `where` says which nodes they are."""
        if not self.is_defined(truth):
            raise InputError(
                f"metric: {self.declared.title} needs {where} labels of at least two classes; "
                "choose f1_macro, or a split with such labels"
            )

    def __call__(self, probabilities: Tensor, predicted: Tensor, truth: Tensor) -> float:
        """Return the score of predictions.

        Args:
            probabilities: m×c.
            predicted: class numbers (m), or 0/1 rows (m×c) for multi-label tasks.
            truth: as `predicted`.
        """
        if self.name == DEFAULT_METRIC:
            return f1_micro(predicted, truth)
        if self.name in _OF_RANKS:
            target, scores = _rows(truth, probabilities.shape[1]), probabilities.cpu().numpy()
            return float(np.mean([_OF_RANKS[self.name](target[:, c], scores[:, c]) for c in self._columns(target)]))
        if self.name == "log_loss":
            rows = probabilities.double().cpu().numpy()
            return -float(log_loss(truth.numpy(), rows / rows.sum(1, keepdims=True), labels=np.arange(rows.shape[1])))
        return float(_OF_LABELS[self.name](truth.numpy(), predicted.cpu().numpy()))

    def _columns(self, target: np.ndarray) -> np.ndarray:
        """Return the classes that a metric of ranks is the mean over."""
        count = target.sum(0, dtype=np.int64)
        defined = ((count > 0) & (count < len(target))).nonzero()[0]
        return defined if self.positive is None else defined[defined == self.positive]


def majority(labels: KnownLabels) -> tuple[int, float] | None:
    """Return the class that has nearly all labels, and its share; None if there is no such class."""
    counts = labels.counts.cpu()
    share = float(counts.max() / counts.sum())
    return (int(counts.argmax()), share) if share > MAJORITY else None


def _rows(truth: Tensor, num_classes: int) -> np.ndarray:
    """Return labels as rows of zeros and ones."""
    labels = truth.cpu().numpy()
    if labels.ndim == 2:
        return labels
    return (labels[:, None] == np.arange(max(num_classes, labels.max() + 1))).astype(np.int8)


def _f1_macro(truth: np.ndarray, predicted: np.ndarray) -> Any:
    return f1_score(truth, predicted, average="macro", zero_division=0.0)


def _balanced_accuracy(truth: np.ndarray, predicted: np.ndarray) -> Any:
    """Return the mean recall of the classes that there are; scikit-learn's own function warns about the others."""
    return recall_score(truth, predicted, labels=np.unique(truth), average="macro", zero_division=0.0)


_OF_RANKS: dict[str, Callable[..., Any]] = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}
_OF_LABELS: dict[str, Callable[..., Any]] = {"f1_macro": _f1_macro, "balanced_accuracy": _balanced_accuracy}
