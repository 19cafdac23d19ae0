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
    softmax,
)

__all__ = [
    "Classes",
    "DiagonalSoftmax",
    "HiddenLabels",
    "KnownLabels",
    "LabelInput",
    "LossOf",
    "SoftmaxJacobian",
    "at_temperature",
    "softmax",
]
