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
from lignn.studies import payments, tables

TABULAR, FRAUD = "tabular", "fraud"
_FEATURES, _DEGREE = 12, 4
_NODES = 2000

_ACCOUNTS, _FRAUDS = 6000, 204
_KNOWN = 2806, 4
"""Known labels of other accounts and of frauds."""
_TELLING, _SHIFT = 3, 1.5
"""Number of features that tell a fraud, and how far their mean is from that of others, in standard deviations."""
_PAYMENTS, _RING = 6, 6
"""Mean number of edges at an account to random ones, and of further edges at a fraud to other frauds."""


def tabular() -> Graph:
    """Return a graph whose labels follow products of features; its edges are random."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(_NODES, _FEATURES))
    y = 2 * (x[:, 0] * x[:, 1] > 0) + (x[:, 2] > 0)
    edges = rng.integers(_NODES, size=(2, _DEGREE * _NODES // 2))
    edges = edges[:, edges[0] != edges[1]]
    return Graph(edges, x=torch.from_numpy(x).float(), y=y.astype(np.int64), name=TABULAR).to_undirected()


def frauds(seed: int) -> Graph:
    """Return a graph with all labels; its split trains on few, and all others are for the test."""
    rng = np.random.default_rng(seed)
    y = np.zeros(_ACCOUNTS, np.int64)
    drawn = rng.choice(_ACCOUNTS, _FRAUDS, replace=False)
    y[drawn] = 1
    x = rng.normal(size=(_ACCOUNTS, _FEATURES))
    x[drawn, :_TELLING] += _SHIFT
    anywhere = rng.integers(_ACCOUNTS, size=(2, _PAYMENTS * _ACCOUNTS // 2))
    among = rng.choice(drawn, size=(2, _RING * _FRAUDS // 2))
    edges = np.concatenate([anywhere, among], axis=1)
    train = torch.zeros(_ACCOUNTS, dtype=torch.bool)
    for c, count in enumerate(_KNOWN):
        train[rng.choice(np.flatnonzero(y == c), count, replace=False)] = True
    features, names = torch.from_numpy(x).float(), ("normal", "fraud")
    split = Split(train, torch.zeros_like(train), ~train)
    edges = edges[:, edges[0] != edges[1]]
    return Graph(edges, x=features, y=y, class_names=names, name=FRAUD, splits=[split]).to_undirected()


OWN: dict[str, Callable[[int], Graph]] = {
    TABULAR: lambda _: tabular(),
    FRAUD: frauds,
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
    """Return number and split that `StudyCase.split` describes; public splits are reused if there are too few."""
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
