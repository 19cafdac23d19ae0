"""Graphs that are drawn for studies: labels that follow features alone, and few frauds among many accounts."""

from __future__ import annotations

import numpy as np
import torch

from lignn.graph import Graph, Split

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
