"""Splits: at random, each determined by its seed, by time, and by group."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from lignn.errors import DataWarning, SplitError
from lignn.graph import validate
from lignn.graph.graph import Graph
from lignn.graph.split import PARTS, Split

PAPER_SEED = 42
"""Seed of `per_class` that gives, with its default sizes, the splits behind the paper's accuracy table."""


def own(graph: Graph) -> Split | None:
    """Return the graph's first split with validation labels, else its first split; None if it has none."""
    complete = (split for split in graph.splits if (split.val & graph.labelled).any())
    return next(chain(complete, graph.splits), None)


def only(graph: Graph, level: int) -> Split | None:
    """Return the graph's only split; None if it has none, or several, of which a warning tells.

    Args:
        graph: the graph.
        level: number of calls between this function and the user's.
    """
    if len(graph.splits) > 1:
        warnings.warn(
            f"{graph.name} has {len(graph.splits)} splits and none was given: all known labels are learned from, those "
            "of test nodes too; give one, e.g. split=graph.splits[0]",
            DataWarning,
            stacklevel=level + 2,
        )
    return graph.splits[0] if len(graph.splits) == 1 else None


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
    shares = _cumulative(fractions)
    generator = torch.Generator().manual_seed(seed)
    if graph.is_multilabel:
        strata = [graph.labelled.nonzero().flatten()]
    else:
        strata = _by_class(_class_numbers(graph), graph.num_classes)
    parts: list[list[Tensor]] = [[], [], []]
    for nodes in strata:
        nodes = nodes[torch.randperm(len(nodes), generator=generator)]
        start = 0
        for part, end in zip(parts, shares, strict=True):
            stop = round(end * len(nodes))
            part.append(nodes[start:stop])
            start = stop
    return Split.from_indices(graph.num_nodes, *(torch.cat(part) for part in parts))


def by_time(graph: Graph, fractions: Sequence[float] = (0.6, 0.2, 0.2), time: Any = None) -> Split:
    """Split the labelled nodes by time: train on the earliest, choose on later ones, test on the latest.

    Nodes of the same time are in the same part, so the shares are those of the nearest cut. Labelled nodes without a
    time are in no part.

    Args:
        graph: the graph.
        fractions: shares of the labelled nodes with a time; if they sum to less than one, the latest are left out.
        time: one number per node, NaN = unknown; default: those of the graph.
    """
    shares = _cumulative(fractions)
    labelled = np.flatnonzero(graph.labelled.numpy())
    parts = _cut(*_in_time(_per_node(graph, "time", time, np.float64)[labelled], labelled), shares)
    _check_parts(graph, parts, fractions, "time")
    return Split.from_indices(graph.num_nodes, *parts)


def grouped(graph: Graph, fractions: Sequence[float] = (0.6, 0.2, 0.2), group: Any = None, seed: int = 0) -> Split:
    """Split the labelled nodes at random so that no group is in two parts.

    The shares are those of the nearest division between groups. A node without a group is a group of its own.

    Args:
        graph: the graph.
        fractions: shares of the labelled nodes; if they sum to less than one, some groups are left out.
        group: one number per node, -1 = unknown; default: those of the graph.
        seed: draws the order of the groups.
    """
    shares = _cumulative(fractions)
    labelled = np.flatnonzero(graph.labelled.numpy())
    parts = _cut(*_shuffled_groups(_per_node(graph, "group", group, np.int64)[labelled], labelled, seed), shares)
    _check_parts(graph, parts, fractions, "group")
    return Split.from_indices(graph.num_nodes, *parts)


def held_back(graph: Graph, known: Tensor, share: float, seed: int) -> Tensor | None:
    """Return which of the nodes `known` (indices) to hold back for validation, by the time or groups of the graph.

    These are the latest ones or, without times, whole groups drawn at random. Nodes of a class that training would lose
    altogether, with their groups, stay in training. The result is None if neither times nor groups tell nodes apart.
    """
    nodes = known.numpy()
    if graph.time is not None and has_known(graph, "time"):
        nodes, starts = _in_time(graph.time[nodes], nodes)
    elif graph.group is not None and has_known(graph, "group"):
        nodes, starts = _shuffled_groups(graph.group[nodes], nodes, seed)
    else:
        return None
    _, latest = _cut(nodes, starts, [1 - share, 1.0])
    chosen = _without_last_of_class(graph, known.numpy(), latest)
    return torch.from_numpy(chosen) if len(chosen) else None


def has_known(graph: Graph, what: Literal["time", "group"]) -> bool:
    """Return whether some labelled node of the graph has a time, or a group."""
    values = getattr(graph, what)
    if values is None:
        return False
    there = values[graph.labelled.numpy()]
    return bool((~np.isnan(there) if what == "time" else there >= 0).any())


def _without_last_of_class(graph: Graph, known: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return `chosen` without the nodes, and their groups, of classes that no other node of `known` has."""
    if graph.is_multilabel or graph.y is None:
        return chosen
    y = graph.y.numpy()
    lost = ~np.isin(y[chosen], y[np.setdiff1d(known, chosen)])
    if graph.group is not None and not has_known(graph, "time"):
        groups = graph.group[chosen]
        lost |= (groups >= 0) & np.isin(groups, groups[lost])
    return chosen[~lost]


def _in_time(times: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return those of `nodes` that have a time, the earliest first, and where each time starts."""
    order = times.argsort(kind="stable")
    order = order[~np.isnan(times[order])]
    return nodes[order], np.flatnonzero(np.diff(times[order], prepend=-np.inf))


def _shuffled_groups(groups: np.ndarray, nodes: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `nodes` group by group in random order, and where each group starts."""
    own = np.where(groups < 0, groups.max(initial=0) + 1 + np.arange(len(nodes)), groups)
    _, number = np.unique(own, return_inverse=True)
    place = torch.randperm(number.max(initial=-1) + 1, generator=torch.Generator().manual_seed(seed)).numpy()
    order = place[number].argsort(kind="stable")
    return nodes[order], np.flatnonzero(np.diff(place[number][order], prepend=-1))


def _cut(nodes: np.ndarray, starts: np.ndarray, shares: Sequence[float]) -> list[np.ndarray]:
    """Cut `nodes` at the cumulative shares, each moved to the nearest of `starts` or the end."""
    places = np.append(starts, len(nodes))
    ends = [int(places[np.abs(places - share * len(nodes)).argmin()]) for share in shares]
    return [nodes[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _per_node(graph: Graph, name: str, given: Any, dtype: type) -> np.ndarray:
    if given is None:
        given = getattr(graph, name)
    if given is None:
        raise SplitError(f"{graph.name} has no {name} of its nodes; give {name}=, one number per node")
    return validate.node_values(name, given, graph.num_nodes, dtype)


def _check_parts(graph: Graph, parts: list[np.ndarray], fractions: Sequence[float], what: str) -> None:
    for part, nodes, share in zip(PARTS, parts, fractions, strict=True):
        if share > 0 and not len(nodes):
            raise SplitError(
                f"{graph.name}: no labelled node is left for {part}, too many have the same {what} or none; "
                f"choose other fractions, or use splits.stratified"
            )


def _cumulative(fractions: Sequence[float]) -> list[float]:
    if len(fractions) != len(PARTS) or min(fractions) < 0 or sum(fractions) > 1 + 1e-9:
        raise SplitError(f"three non-negative shares that sum to at most 1 are needed, got {tuple(fractions)}")
    return torch.tensor(fractions, dtype=torch.float64).cumsum(0).tolist()


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
