"""Which labels a fit holds back by itself, to choose the epoch and to calibrate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lignn.declarations import POLICY
from lignn.errors import InputError, SplitError
from lignn.graph import Graph, Split, headers
from lignn.graph.splits import has_known, held_back
from lignn.store import in_source_order

SHARE = 0.2
"""Share of the labels, or of each class's, that is held back."""

ENOUGH = 500
"""Number of held-back labels beyond which labels are better used for training."""

HALF = 0.5
"""Share of the labels that such a fold holds back: the calibration gains more by them than the fold's network loses."""


@dataclass(frozen=True)
class Holdout:
    """The split of a fit, and the folds that are held back besides.

    Attributes:
        split: the split to fit with.
        own: True if `fit` held the validation labels back; only then may predictions use them, and may it train on
            them without `refit=True`.
        folds: the same labels divided otherwise: other ones are held back.
    """

    split: Split
    own: bool
    folds: tuple[Split, ...] = ()

    @classmethod
    def of(
        cls, graph: Graph, given: Split | None, seed: int, most_folds: int = 1, pooled: float = POLICY["pooled"].default
    ) -> Holdout:
        """Hold back labels of `graph` if the given split has no validation labels.

        Args:
            graph: the graph.
            given: the user's split; None for all known labels.
            seed: draws what is held back.
            most_folds: largest number of folds. With one, a fifth of the labels is held back. With several, a fifth but
                at most `ENOUGH`, and if these are few, the two halves in turn, the one without that fifth first, until
                `pooled` labels have been held back in all.
            pooled: that number.
        """
        split = own_split(graph, seed) if given is None else checked_split(graph, given)
        if given is not None and (split.val & graph.labelled).any():
            return cls(split, own=False)
        whole = Split(split.train | split.val, torch.zeros_like(split.val), split.test)
        if most_folds == 1:
            return cls(hold_back(graph, whole, seed), own=True)
        known = int((whole.train & graph.labelled).sum())
        share = min(SHARE, ENOUGH / max(known, 1))
        split = hold_back(graph, whole, seed, share)
        held = int((split.val & graph.labelled).sum())
        ordered = has_known(graph, "time") or has_known(graph, "group")
        wanted = 0 if ordered or not held else math.ceil((pooled - held) / (HALF * known))
        folds = range(1, 1 + min(wanted, most_folds - 1))
        return cls(split, True, tuple(hold_back(graph, whole, seed, HALF, fold) for fold in folds))


def own_split(graph: Graph, seed: int) -> Split:
    """Divide the known labels into training and validation; all unlabelled nodes are `test`, to be predicted."""
    require_labels(graph)
    return hold_back(graph, Split(graph.labelled, torch.zeros_like(graph.labelled), ~graph.labelled), seed)


def hold_back(graph: Graph, split: Split, seed: int, share: float = SHARE, fold: int = 0) -> Split:
    """Return `split` with some labels of its training part as the validation part; its test part is unchanged.

    If times or groups of the nodes are known, these are the latest labels or whole groups (`splits.held_back`).
    Otherwise a fifth of each class is held back, but at least one label of a class with two or more, and at least one
    label of each class is left for training. With one label a class nothing can be held back: validation is empty.

    Args:
        graph: the graph.
        split: its training part is divided.
        seed: draws what is held back.
        share: share of each class that is held back.
        fold: other labels are held back for another fold, until all of a class have been.
    """
    assert graph.y is not None
    generator = torch.Generator().manual_seed(seed)
    known = in_source_order(graph, (split.train & graph.labelled).nonzero().flatten())
    validation = torch.zeros_like(split.train)
    chosen = held_back(graph, known, share, seed)
    if chosen is not None:
        validation[chosen] = True
        return Split(split.train & ~validation, validation, split.test)
    strata = [known] if graph.is_multilabel else [known[graph.y[known] == c] for c in range(graph.num_classes)]
    for nodes in strata:
        count = min(max(round(share * len(nodes)), 1), len(nodes) - 1)
        if count > 0:
            order = torch.randperm(len(nodes), generator=generator)
            validation[nodes[order.roll(-fold * count)[:count]]] = True
    return Split(split.train & ~validation, validation, split.test)


def checked_split(graph: Graph, split: Split) -> Split:
    """Return `split` if it fits the graph and has labels to train with."""
    if not isinstance(split, Split):
        raise SplitError(f"split: a lignn.Split is needed, got {type(split).__name__}")
    if split.num_nodes != graph.num_nodes:
        raise SplitError(f"the split is over {split.num_nodes} nodes, the graph has {graph.num_nodes}")
    require_labels(graph, split.train)
    return split


def _unnamed(graph: Graph) -> str:
    """Return what to do about tables of which no column is the label; empty if one is, or there are no tables."""
    read = None if graph.reading is None else graph.reading.nodes
    if read is None or {"label", "labels"}.intersection(dict(read.roles)):
        return ""
    return f"; say which column of {read.file} holds the labels: --column label=NAME"


def require_labels(graph: Graph, among: Tensor | None = None) -> None:
    """Raise unless there are labels of at least two classes (among some nodes)."""
    where = "" if among is None else " among the training nodes"
    known = graph.labelled if among is None else graph.labelled & among
    if not known.any():
        column = headers.likely("label", graph.feature_names or ()) if graph.y is None else None
        hint = f"; if {column!r} holds the labels, rename it to 'label'" if column else _unnamed(graph)
        raise InputError(f"{graph.name}: no node has a label{where}; at least two classes need one{hint}")
    if graph.is_multilabel:
        return
    assert graph.y is not None
    present = graph.y[known].unique()
    if len(present) < 2:
        only = int(present[0])
        name = repr(graph.class_names[only]) if graph.class_names else only
        raise InputError(f"{graph.name}: all labels{where} are of class {name}; at least two classes need one")
