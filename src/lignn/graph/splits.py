"""Random splits, each determined by its seed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lignn.errors import SplitError
from lignn.graph.graph import Graph
from lignn.graph.split import PARTS, Split

PAPER_SEED = 42
"""Seed of `per_class` that gives, with its default sizes, the splits behind the paper's accuracy table."""


def per_class(
    graph: Graph, train: int = 10, val: int = 500, test: int = 1000, seed: int = 0, runs: int = 10
) -> list[Split]:
    """Draw `runs` splits with `train` nodes of each class, and `val` and `test` of the remaining labelled nodes.

    All runs share one random generator. With `PAPER_SEED` and the default sizes these are the splits of the paper's
    accuracy table.
    """
    y = _class_numbers(graph)
    generator = torch.Generator().manual_seed(seed)
    classes = _by_class(y, graph.num_classes)
    for c, nodes in enumerate(classes):
        if len(nodes) < train:
            raise SplitError(f"class {_name(graph, c)} has {len(nodes)} labelled nodes, training needs {train}")
    left = int(graph.labelled.sum()) - train * len(classes)
    if left < val + test:
        raise SplitError(f"{left} labelled nodes are left after training, {val} + {test} are needed; lower val or test")

    def draw(nodes: Tensor, size: int) -> Tensor:
        return nodes[torch.randperm(len(nodes), generator=generator)[:size]]

    splits = []
    for _ in range(runs):
        taken = torch.cat([draw(nodes, train) for nodes in classes])
        free = graph.labelled.clone()
        free[taken] = False
        validation = draw(free.nonzero().flatten(), val)
        free[validation] = False
        splits.append(Split.from_indices(graph.num_nodes, taken, validation, draw(free.nonzero().flatten(), test)))
    return splits


def stratified(graph: Graph, fractions: Sequence[float] = (0.6, 0.2, 0.2), seed: int = 0) -> Split:
    """Draw one split of the labelled nodes with the given shares within every class.

    Each class is shuffled and cut at the rounded cumulative shares. Shares that sum to less than one leave nodes out.
    The nodes of a multi-label graph are treated as one class.
    """
    if len(fractions) != len(PARTS) or min(fractions) < 0 or sum(fractions) > 1 + 1e-9:
        raise SplitError(f"three non-negative shares that sum to at most 1 are needed, got {tuple(fractions)}")
    generator = torch.Generator().manual_seed(seed)
    if graph.is_multilabel:
        strata = [graph.labelled.nonzero().flatten()]
    else:
        strata = _by_class(_class_numbers(graph), graph.num_classes)
    parts: list[list[Tensor]] = [[], [], []]
    for nodes in strata:
        nodes = nodes[torch.randperm(len(nodes), generator=generator)]
        start = 0
        for part, end in zip(parts, torch.tensor(fractions, dtype=torch.float64).cumsum(0).tolist(), strict=True):
            stop = round(end * len(nodes))
            part.append(nodes[start:stop])
            start = stop
    return Split.from_indices(graph.num_nodes, *(torch.cat(part) for part in parts))


def _class_numbers(graph: Graph) -> Tensor:
    if graph.y is None:
        raise SplitError(f"{graph.name} has no labels to split")
    if graph.is_multilabel:
        raise SplitError("a split per class needs one label per node; use splits.stratified for multi-label graphs")
    return graph.y


def _by_class(y: Tensor, num_classes: int) -> list[Tensor]:
    """Return the nodes of each class in order; in one pass, as there may be many classes."""
    nodes = (y >= 0).nonzero().flatten()
    nodes = nodes[y[nodes].argsort(stable=True)]
    return list(nodes.split(y[nodes].bincount(minlength=num_classes).tolist()))


def _name(graph: Graph, c: int) -> str:
    return repr(graph.class_names[c]) if graph.class_names else str(c)
