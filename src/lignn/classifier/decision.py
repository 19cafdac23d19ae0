"""What a classifier says of every node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lignn import notebook

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROWS = 10
"""Nodes that a notebook shows."""
_TEXTS = np.dtypes.StringDType()


@dataclass(frozen=True, eq=False)
class Decision:
    """Predictions with all that is needed to act on them; row i is node i.

    Attributes:
        node_ids: names of the nodes, their numbers as text for a graph without names.
        labels: class numbers (n), or 0/1 rows (n×c) for multi-label tasks.
        names: the predicted class's name, for multi-label tasks the names joined by `|`; a lone `|` is none of them.
        confidence: calibrated probability of the predicted class, for multi-label tasks the least certain class's.
        evidence: whether a known label reaches the node along the edges; if not, its features alone speak.
        known: whether the node's own label was known, and so part of the input.
        given: the name of that label, which need not be the predicted one; empty where none was known.
        probabilities: calibrated, n×c.
        class_names: of the columns of `probabilities`.
    """

    node_ids: np.ndarray
    labels: np.ndarray
    names: np.ndarray
    confidence: np.ndarray
    evidence: np.ndarray
    known: np.ndarray
    given: np.ndarray
    probabilities: np.ndarray
    class_names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        probabilities: np.ndarray,
        labels: np.ndarray,
        evidence: np.ndarray,
        known: np.ndarray,
        given: np.ndarray,
        node_ids: np.ndarray | None,
        class_names: tuple[str, ...],
    ) -> Decision:
        """A decision from its independent parts; `given` as `labels`, anything where none is known."""
        ids = np.arange(len(labels)).astype(_TEXTS) if node_ids is None else node_ids
        classes = np.array(class_names, dtype=_TEXTS)
        if labels.ndim == 1:
            confidence = probabilities[np.arange(len(labels)), labels]
        else:
            confidence = np.maximum(probabilities, 1 - probabilities).min(1)
        names, told = _names(labels, classes), np.where(known, _names(given, classes), "")
        return cls(ids, labels, names, confidence, evidence, known, told, probabilities, class_names)

    def __getitem__(self, nodes: np.ndarray | slice) -> Decision:
        """The rows of some nodes."""
        rows = {name: part[nodes] for name, part in vars(self).items() if name != "class_names"}
        return Decision(**rows, class_names=self.class_names)

    def __len__(self) -> int:
        return len(self.labels)

    def plot_confidence(self, ax: Axes | None = None) -> Axes:
        """Draw how sure the model is of the nodes without a known label, by predicted class; return the axes."""
        from lignn.classifier import pictures

        return pictures.confidence(self, ax)

    def _repr_html_(self) -> str:
        header = ("id", "label", "confidence", "evidence", "given")
        columns = (self.node_ids, self.names, self.confidence, self.evidence, self.given)
        rows = [(i, name, f"{p:.2f}", e, g) for i, name, p, e, g in zip(*(c[:_ROWS] for c in columns), strict=True)]
        below = f"{_ROWS} of {len(self)} nodes" if len(self) > _ROWS else ""
        return notebook.table(header, rows, below=below)


def _names(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    if labels.ndim == 1:
        return classes[labels]
    return np.array(["|".join(classes[row > 0]) or "|" for row in labels], dtype=_TEXTS)
