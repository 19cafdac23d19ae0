"""`NodeClassifier`, the scikit-learn-style front: fitting, live labels, explanations, saved models."""

from lignn.classifier.calibration import Calibration
from lignn.classifier.certificate import Certificate
from lignn.classifier.decision import Decision
from lignn.classifier.explain import Explanation
from lignn.classifier.node import AutoClassifier, NodeClassifier
from lignn.classifier.report import Report
from lignn.classifier.saving import load
from lignn.classifier.tabular import TabularClassifier
from lignn.classifier.update import Update

__all__ = [
    "AutoClassifier",
    "Calibration",
    "Certificate",
    "Decision",
    "Explanation",
    "NodeClassifier",
    "Report",
    "TabularClassifier",
    "Update",
    "load",
]
