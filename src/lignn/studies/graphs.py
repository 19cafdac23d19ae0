"""The graphs of the studies and their splits: those of the catalogue, and some that only studies use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from lignn import datasets
from lignn.datasets import places
from lignn.errors import ConfigError, DatasetError
from lignn.graph import Graph, Split, splits
from lignn.studies import drawn, payments, tables

OWN: dict[str, Callable[[int], Graph]] = {
    drawn.TABULAR: lambda _: drawn.tabular(),
    drawn.FRAUD: drawn.frauds,
    payments.NAME: lambda _: payments.graph(),
    tables.LINKED: lambda _: tables.linked(),
    tables.ACCOUNTS: lambda _: tables.accounts(),
    "wine": lambda _: tables.of_sklearn("wine"),
    "breast_cancer": lambda _: tables.of_sklearn("breast_cancer"),
    "digits-table": lambda _: tables.of_sklearn("digits"),
}
"""Graphs that are not in the catalogue, by the seed of the run."""


def load(name: str, seed: int = 0) -> Graph:
    """Return a graph by its name; the seed is that of the run, and matters to graphs that are drawn for each."""
    return OWN[name](seed) if name in OWN else datasets.load(name)


def is_here(name: str) -> bool:
    """Return whether one of the own graphs can be made."""
    return name not in (payments.NAME, tables.LINKED, tables.ACCOUNTS) or payments.find() is not None


def choose_split(graph: Graph, split: Mapping[str, Any]) -> tuple[int, Split]:
    """Return number and split that `RunConfig.split` describes; public splits are reused if there are too few."""
    number, kind = split["number"], split["kind"]
    if kind == "per_class":
        sizes = split["labels"], split.get("val", 0), split.get("test", 0)
        one = splits.per_class(graph, *sizes, split["seed"], number + 1)[number]
        return number, one if "test" in split else Split(one.train, one.val, graph.labelled & ~(one.train | one.val))
    if kind == "random":
        return number, payments.published_split(graph, split["states"][number])
    if kind == "by_time":
        kept = 0.8**number  # all but the test parts of the splits before
        return number, splits.by_time(graph, (0.8 * kept, 0.0, 0.2 * kept))
    if kind == "paper":
        return number, splits.per_class(graph, seed=splits.PAPER_SEED, runs=number + 1)[number]
    if kind == "stratified":
        return number, splits.stratified(graph, split["fractions"], seed=split.get("seed", number))
    if kind == "published":
        return 0, _published_split(graph)
    if not graph.splits:
        raise ConfigError(f"{graph.name} has no public split; choose another kind")
    number %= len(graph.splits)
    return number, graph.splits[number]


def _published_split(graph: Graph) -> Split:
    """Return the split behind "Classic GNNs are strong baselines", from a file beside the datasets."""
    file = places.find("splits_60_20_20")
    with np.load(file) if file else nullcontext({}) as arrays:
        if f"{graph.name}/train" not in arrays:
            where = " or ".join(map(str, places.folders()))
            raise DatasetError(f"{graph.name}: there is no published split in a splits_60_20_20.npz in {where}")
        parts = [torch.from_numpy(arrays[f"{graph.name}/{part}"]) for part in ("train", "val", "test")]
    return Split(*(torch.zeros(graph.num_nodes, dtype=torch.bool).index_fill(0, part, True) for part in parts))
