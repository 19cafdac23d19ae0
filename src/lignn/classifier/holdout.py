"""The part of the known labels that a classifier holds back by itself, to choose the epoch and to calibrate."""

from __future__ import annotations

import torch
from torch import Tensor

from lignn.errors import InputError, SplitError
from lignn.graph import Graph, Split, headers

SHARE = 0.2
"""Of each class's labels, held back."""


def own_split(graph: Graph, seed: int) -> Split:
    """Known labels divided into training and validation; all unlabelled nodes are `test`, to be predicted."""
    require_labels(graph)
    return hold_back(graph, Split(graph.labelled, torch.zeros_like(graph.labelled), ~graph.labelled), seed)


def hold_back(graph: Graph, split: Split, seed: int) -> Split:
    """`split` with labels of its training part as the validation part; its test part is left alone.

    A fifth of each class is held back, at least one label of a class with two or more, and at least one label of each
    class is left for training. With one label a class nothing can be held back, and validation is empty.
    """
    assert graph.y is not None
    generator = torch.Generator().manual_seed(seed)
    known = (split.train & graph.labelled).nonzero().flatten()
    strata = [known] if graph.is_multilabel else [known[graph.y[known] == c] for c in range(graph.num_classes)]
    validation = torch.zeros_like(split.train)
    for nodes in strata:
        count = min(max(round(SHARE * len(nodes)), 1), len(nodes) - 1)
        if count > 0:
            validation[nodes[torch.randperm(len(nodes), generator=generator)[:count]]] = True
    return Split(split.train & ~validation, validation, split.test)


def checked_split(graph: Graph, split: Split) -> Split:
    """`split` if it fits the graph and has labels to train with."""
    if not isinstance(split, Split):
        raise SplitError(f"split: a lignn.Split is needed, got {type(split).__name__}")
    if split.num_nodes != graph.num_nodes:
        raise SplitError(f"the split is over {split.num_nodes} nodes, the graph has {graph.num_nodes}")
    require_labels(graph, split.train)
    return split


def require_labels(graph: Graph, among: Tensor | None = None) -> None:
    """There must be labels of at least two classes (among some nodes)."""
    where = "" if among is None else " among the training nodes"
    known = graph.labelled if among is None else graph.labelled & among
    if not known.any():
        column = headers.likely("label", graph.feature_names or ()) if graph.y is None else None
        hint = f"; if {column!r} holds the labels, rename it to 'label'" if column else ""
        raise InputError(f"{graph.name}: no node has a label{where}; at least two classes need one{hint}")
    if graph.is_multilabel:
        return
    assert graph.y is not None
    present = graph.y[known].unique()
    if len(present) < 2:
        only = int(present[0])
        name = repr(graph.class_names[only]) if graph.class_names else only
        raise InputError(f"{graph.name}: all labels{where} are of class {name}; at least two classes need one")
