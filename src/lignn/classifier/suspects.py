"""Given labels that predictions contradict: each is judged by a classifier that has not seen it."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from lignn.classifier import fit, scoring
from lignn.classifier.calibration import calibrated
from lignn.classifier.model import Fitted
from lignn.errors import ConfigError, ConvergenceWarning, ImbalanceWarning, InputError
from lignn.graph import Graph, Split


@dataclass(frozen=True)
class Suspect:
    """A given label, and what the node is predicted to be without it.

    Attributes:
        node: number of the node.
        id: its id; its number as text for a graph without ids.
        given: the given label.
        predicted: the predicted label.
        confidence: calibrated probability of the predicted label.
        doubt: how much more probable the predicted label is than the given one.
    """

    node: int
    id: str
    given: str
    predicted: str
    confidence: float
    doubt: float


@dataclass(frozen=True)
class Suspects:
    """The labels that are contradicted most, first; `str` is in words.

    Attributes:
        found: the suspects.
        contradicted: number of labels that are predicted otherwise, of which `found` are the first.
        judged: number of labels that were judged; those without another label of their class in training were not.
        folds: number of fits.
    """

    found: tuple[Suspect, ...]
    contradicted: int
    judged: int
    folds: int

    @property
    def headline(self) -> str:
        """How many labels are contradicted, in words."""
        return f"{self.contradicted} of {self.judged} given labels are predicted otherwise without them"

    def __str__(self) -> str:
        lines = [
            f"{one.id}: given {one.given!r}, predicted {one.predicted!r} (confidence {one.confidence:.2f})"
            for one in self.found
        ]
        more = f"; the most doubtful {len(lines)}:" if lines else ""
        return "\n".join([self.headline + more, *lines])

    def plain(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


def suspects(fitted: Fitted, k: int = 10, folds: int = 5) -> Suspects:
    """Return the `k` most doubtful known labels of a fitted classifier; see `NodeClassifier.suspects`."""
    for name, value, least in (("k", k, 1), ("folds", folds, 2)):
        if not isinstance(value, Integral) or value < least:
            raise ConfigError(f"{name}: a whole number of at least {least} is needed, got {value!r}")
    if fitted.classes.multilabel:
        raise InputError("suspects: a node may have several classes here; only labels of one class per node are judged")
    graph, known = scoring.labels_by_now(fitted), fitted.prediction.problem.labels.mask
    assert graph.y is not None
    fold = fold_of_each(graph.y, known, int(folds), fitted.spec.values["seed"])
    probabilities = torch.full((graph.num_nodes, len(fitted.classes)), float("nan"), dtype=fitted.spec.dtype)
    for number in range(int(folds)):
        judged = _judgeable(graph.y, fold, number)
        if judged.any():
            probabilities[judged] = _without(fitted, graph, known, fold == number)[judged]
    return _ranked(fitted, graph.y, probabilities, int(k), int(folds))


def fold_of_each(y: Tensor, known: Tensor, folds: int, seed: int) -> Tensor:
    """Return the number of the fold of each known label, -1 for other nodes; every class is spread over the folds."""
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    order = order[known[order]]
    order = order[y[order].argsort(stable=True)]
    fold = torch.full_like(y, -1)
    fold[order] = torch.arange(len(order)) % folds
    return fold


def _judgeable(y: Tensor, fold: Tensor, number: int) -> Tensor:
    """Return the nodes of a fold whose class has a label in another fold."""
    mine, others = fold == number, (fold >= 0) & (fold != number)
    return mine & torch.isin(y, y[others].unique())


def _without(fitted: Fitted, graph: Graph, known: Tensor, fold: Tensor) -> Tensor:
    """Return the probabilities of all nodes by a classifier that is fitted on a graph without the labels of a fold."""
    assert graph.y is not None
    hidden = graph.replace(y=torch.where(known & ~fold, graph.y, -1), splits=())
    split = Split(known & ~fold, torch.zeros_like(fold), ~known | fold)
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, ImbalanceWarning):
            warnings.simplefilter("ignore", kind)
        again = fit.fit(fitted.spec, hidden, split, None, None)
    return calibrated(again.prediction.probabilities.cpu(), again.calibration, multilabel=False)


def _ranked(fitted: Fitted, y: Tensor, probabilities: Tensor, k: int, folds: int) -> Suspects:
    nodes = (~probabilities[:, 0].isnan()).nonzero().flatten()
    rows = probabilities[nodes]
    confidence, predicted = rows.max(1)
    doubt = confidence - rows.gather(1, y[nodes, None]).flatten()
    contradicted = (predicted != y[nodes]).nonzero().flatten()
    worst = contradicted[doubt[contradicted].argsort(descending=True, stable=True)][:k]
    ids, names = fitted.graph.node_ids, fitted.classes.names
    found = tuple(
        Suspect(
            node := int(nodes[i]),
            str(node) if ids is None else str(ids[node]),
            names[int(y[node])],
            names[int(predicted[i])],
            float(confidence[i]),
            float(doubt[i]),
        )
        for i in worst
    )
    return Suspects(found, len(contradicted), len(nodes), folds)
