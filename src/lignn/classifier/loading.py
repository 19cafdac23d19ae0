"""`lignn.load`: a saved classifier, as it was."""

from __future__ import annotations

from os import PathLike
from typing import Any

from lignn.classifier import saving
from lignn.classifier.node import NodeClassifier
from lignn.methods import Method


def load(folder: str | PathLike[str], method: Method | None = None, backbone: Any = None) -> NodeClassifier:
    """A classifier that `NodeClassifier.save` wrote.

    Args:
        folder: it was saved to.
        method: the method, if the model was made with an object of your own.
        backbone: likewise.
    """
    parameters, fitted = saving.read(folder, {"method": method, "backbone": backbone})
    classifier = NodeClassifier(**parameters)
    classifier._take(fitted)
    fitted.live.warn_if_unsolved()
    return classifier
