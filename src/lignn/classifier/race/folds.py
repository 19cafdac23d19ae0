"""Folds of the labels that may choose a model: what a model is fitted with, and which labels score it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lignn.classifier.suspects import fold_of_each
from lignn.graph import Graph, Split, splits
from lignn.labels import Classes


@dataclass(frozen=True, eq=False)
class Fold:
    """A split to fit with, and the nodes whose labels score the fit; they are in its test part.

    Attributes:
        split: the split.
        scored: mask of the nodes.
    """

    split: Split
    scored: Tensor

    def visible(self, graph: Graph) -> Graph:
        """Return the graph with the labels of the training and validation part only."""
        assert graph.y is not None
        seen = self.split.train | self.split.val
        y = torch.where(seen[:, None] if graph.is_multilabel else seen, graph.y, -1)
        return graph.replace(y=y, class_names=Classes.of(graph).names, splits=())


def folds(graph: Graph, split: Split, count: int, seed: int) -> list[Fold]:
    """Return the folds of a graph; the labels of the split's test part are in none.

    If the split has validation labels, these are divided: a fit is given all training labels, chooses its epoch by the
    validation labels of the other folds, and is scored on those of its own. They are never trained on. Otherwise the
    training labels are divided, and a fit holds some of the others back by itself.

    Labels are divided class by class; by whole groups if the graph has groups. If it has times, there is one fold, the
    latest labels. A label that is the only one of its class is in no fold.
    """
    train, val = split.train & graph.labelled, split.val & graph.labelled
    divided = val if val.any() else train
    number = _number_of_fold(graph, divided, count, seed)
    found = []
    for fold in range(count):
        scored = divided & (number == fold)
        rest = divided & ~scored
        if not scored.any() or not (rest.any() and _two_classes(graph, rest | train & ~scored)):
            continue
        nothing = torch.zeros_like(train)
        known = Split(train, rest, ~(train | rest)) if val.any() else Split(rest, nothing, ~rest)
        found.append(Fold(known, scored))
    return found


def _number_of_fold(graph: Graph, divided: Tensor, count: int, seed: int) -> Tensor:
    assert graph.y is not None
    nodes = divided.nonzero().flatten()
    if splits.has_known(graph, "time"):
        latest = splits.held_back(graph, nodes, 1 / count, seed)
        number = torch.full((graph.num_nodes,), -1)
        number[nodes if latest is None else latest] = 0
        return number
    if graph.group is not None and splits.has_known(graph, "group"):
        groups = torch.from_numpy(np.unique(graph.group[nodes.numpy()], return_inverse=True)[1])
        order = torch.randperm(int(groups.max()) + 1, generator=torch.Generator().manual_seed(seed))
        number = torch.full((graph.num_nodes,), -1)
        number[nodes] = order[groups] % count
        return number
    classes = torch.zeros(graph.num_nodes, dtype=torch.int64) if graph.is_multilabel else graph.y
    number = fold_of_each(classes, divided, count, seed)
    if not graph.is_multilabel:
        only = (classes[nodes].bincount(minlength=graph.num_classes) == 1).nonzero().flatten()
        number[divided & torch.isin(classes, only)] = -1
    return number


def _two_classes(graph: Graph, nodes: Tensor) -> bool:
    assert graph.y is not None
    return graph.is_multilabel or len(graph.y[nodes].unique()) > 1
