"""Small random files in the formats of the real sources."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import scipy.sparse as sp


def npz(**arrays: Any) -> bytes:
    """Return the bytes of an `.npz` file."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def words(n: int, d: int, seed: int = 0, most: int = 1) -> sp.csr_array:
    """Return random word counts between 1 and `most` in 30 % of the cells; the first row is empty."""
    random = np.random.default_rng(seed)
    counts = random.integers(1, most + 1, (n, d)) * (random.random((n, d)) < 0.3)
    counts[0] = 0
    return sp.csr_array(counts.astype(np.float32))


def labels(n: int, c: int, seed: int = 0) -> np.ndarray:
    """Return random class numbers; every class occurs at least once."""
    y = np.random.default_rng(seed).integers(0, c, n)
    y[:c] = np.arange(c)
    return y


EDGES = np.array([[0, 1], [1, 0], [1, 2], [2, 3], [3, 3], [4, 0], [5, 4], [5, 2]])
"""Directed edges, one per row, of a graph of 6 or more nodes; one edge has a reverse, one is a self-loop."""

UNDIRECTED = {(0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (2, 5)}
"""The pairs that `EDGES` joins."""


def pairs(edge_index: Any) -> list[tuple[int, int]]:
    """Return the directed edges, sorted."""
    return sorted(map(tuple, np.asarray(edge_index).T.tolist()))


def both_ways(undirected: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return both directions of every pair, sorted."""
    return sorted(undirected | {(j, i) for i, j in undirected})


def ten_masks(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return the masks of ten random splits into equal thirds, n×10."""
    part = np.stack([np.random.default_rng(seed + run).permutation(n) % 3 for run in range(10)], 1)
    return {"train": part == 0, "val": part == 1, "test": part == 2}
