"""Classes of very different size: weights of classes in the loss, the metric by default, and words about both."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import torch
from sklearn.utils.class_weight import compute_class_weight
from torch import Tensor

from lignn.classifier.spec import Spec
from lignn.declarations import DEFAULT_METRIC, METRICS, OF_LOSS
from lignn.errors import ConfigError, ImbalanceWarning, InputError
from lignn.graph import Split
from lignn.labels import Classes, KnownLabels
from lignn.methods import Prediction
from lignn.training import Metric
from lignn.training.metrics import majority

FEWEST = 10
"""Number of nodes below which predictions of one class only, or a score beside a guess, say nothing."""


def weighted(spec: Spec, classes: Classes, known: KnownLabels) -> KnownLabels:
    """Return the labels to train on with the weights of their classes; the weights follow from these labels alone."""
    wanted = spec.values.get(OF_LOSS)
    if wanted is None:
        return known
    if known.multilabel:
        raise ConfigError("class_weight: a node may have several classes here, so it has no weight; leave it out")
    y = np.repeat(np.arange(len(classes)), known.counts.cpu().numpy().astype(np.int64))
    weights = wanted if isinstance(wanted, str) else _by_number(classes, wanted)
    present = np.unique(y)  # other classes have no node in the loss
    weight = np.ones(len(classes))
    weight[present] = compute_class_weight(
        weights if isinstance(weights, str) else {int(c): weights.get(int(c), 1.0) for c in present},
        classes=present,
        y=y,
    )
    return replace(known, class_weight=torch.from_numpy(weight).to(known.onehot))


def by_name(classes: Classes, wanted: Any) -> Any:
    """Return the parameter `class_weight` with names instead of numbers, as a file can have it."""
    if not isinstance(wanted, Mapping):
        return wanted
    return {classes.names[number]: weight for number, weight in _by_number(classes, wanted).items()}


def _by_number(classes: Classes, weights: Mapping[Any, Any]) -> dict[int, float]:
    """Return weights by class number from those by name or number."""
    found = {}
    for label, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 < float(weight) < math.inf:
            raise ConfigError(f"class_weight: a positive number is needed for class {label!r}, got {weight!r}")
        try:
            found[classes.number(label)] = float(weight)
        except InputError as error:
            raise ConfigError(f"class_weight: {error}") from error
    return found


def metric_of(spec: Spec, known: KnownLabels) -> Metric:
    """Return the metric that chooses the epoch, by the labels to train on if none is given."""
    given = spec.values.get("metric")
    return Metric.of(DEFAULT_METRIC if given is None and spec.values["preset"] == "paper" else given, known)


def about_metric(spec: Spec, metric: Metric, known: KnownLabels, classes: Classes) -> str | None:
    """Say that another metric than F1-micro was chosen, and why; None if it was not."""
    uneven = majority(known)
    if uneven is None or "metric" in spec.values or metric.name == DEFAULT_METRIC:
        return None
    return (
        f"class {classes.names[uneven[0]]!r} has {uneven[1]:.1%} of the training labels, so {metric.declared.title} "
        f"chooses the epoch and not {METRICS[DEFAULT_METRIC].title}; metric= (--metric) chooses another"
    )


def about_predictions(prediction: Prediction, split: Split, classes: Classes) -> str | None:
    """Say that all nodes without a training label are predicted to be of one class; None if they are not, or few."""
    return about_labels(prediction.labels.cpu()[~split.train], classes)


def about_labels(labels: Tensor, classes: Classes) -> str | None:
    """Say that predicted labels are all of one class; None if they are not, or few."""
    if classes.multilabel or len(labels) < FEWEST or len(labels.unique()) > 1:
        return None
    return (
        f"the model predicts one class only, {classes.names[int(labels[0])]!r}: it is no better than a guess; "
        "try class_weight='balanced', another metric, more epochs, or more labels of the other classes"
    )


def warn(note: str | None, level: int) -> None:
    """Give a note as a warning; `level` is the number of calls between this function and the user's."""
    if note is not None:
        warnings.warn(note, ImbalanceWarning, stacklevel=level + 2)
