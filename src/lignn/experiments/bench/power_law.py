"""Synthetic graphs of any size whose degrees follow a power law."""

from __future__ import annotations

import numpy as np

from lignn.graph import Graph, Split


def power_law(
    edges: int, num_classes: int = 10, num_features: int = 100, exponent: float = 2.5, seed: int = 0
) -> Graph:
    """An undirected graph of `edges` edges over a tenth as many nodes, both directions stored.

    The ends of an edge are drawn independently, a node with a probability that makes the degrees follow `P(k) ~
    k^-exponent` (Chung and Lu, PNAS 2002); self-loops and edges drawn twice are drawn again. Node numbers say nothing
    of degree or neighbourhood. Features are noise around a direction of the class. The split has a hundredth of the
    nodes, at least two a class, for training, as many for validation, the rest for testing.
    """
    random = np.random.default_rng(seed)
    n = max(edges // 10, 10 * num_classes)
    y = random.permutation(np.arange(n) % num_classes)
    x = random.standard_normal((n, num_features), dtype=np.float32)
    x[np.arange(n), y % num_features] += 1
    pairs = _pairs(edges, random.permutation(np.arange(1, n + 1)) ** (-1 / (exponent - 1)), random)
    part = max(n // 100, 2 * num_classes)
    split = Split.from_indices(n, *np.split(np.arange(n), [part, 2 * part]))
    return Graph(np.hstack([pairs, pairs[::-1]]), x=x, y=y, num_nodes=n, splits=[split], name=f"power_law({edges})")


def _pairs(count: int, weight: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """That many different pairs i < j, 2×count, each end drawn with a probability proportional to its weight."""
    n = len(weight)
    upto = np.cumsum(weight / weight.sum())
    codes = np.empty(0, dtype=np.int64)
    while len(codes) < count:
        ends = np.searchsorted(upto, random.random((2, 2 * (count - len(codes)))) * upto[-1], side="right")
        low, high = ends.min(0), ends.max(0)
        codes = np.union1d(codes, (low * n + high)[low < high])
    return np.stack(np.divmod(random.choice(codes, count, replace=False, shuffle=False), n))
