"""Known labels, and the classes they belong to."""

from lignn.labels.classes import Classes
from lignn.labels.known import (
    DiagonalSoftmax,
    HiddenLabels,
    KnownLabels,
    LabelInput,
    LossOf,
    SoftmaxJacobian,
    at_temperature,
    log_odds,
    softmax,
)
from lignn.labels.taught import Taught

__all__ = [
    "Classes",
    "DiagonalSoftmax",
    "HiddenLabels",
    "KnownLabels",
    "LabelInput",
    "LossOf",
    "SoftmaxJacobian",
    "Taught",
    "at_temperature",
    "log_odds",
    "softmax",
]
