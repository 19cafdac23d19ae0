"""Places on a plane for the nodes of a graph, so that joined nodes are near each other."""

from __future__ import annotations

import numpy as np
import torch

from lignn.graph import Graph
from lignn.propagation import Adjacency

MOST_NODES = 5_000
MOST_LINKS = 8_000
_DIMENSIONS, _HOPS, _ROUNDS, _OTHERS = 16, 4, 120, 24
_SCALE = 1000.0
"""ECharts rounds the ends of lines to whole numbers."""


def sample(graph: Graph, most: int = MOST_NODES) -> np.ndarray:
    """Return the nodes to be drawn: all, or `most` of them by chance."""
    if graph.num_nodes <= most:
        return np.arange(graph.num_nodes)
    return np.sort(np.random.default_rng(0).choice(graph.num_nodes, most, replace=False))


def links_between(graph: Graph, nodes: np.ndarray) -> np.ndarray:
    """Return the edges between some nodes, each pair once, as places in `nodes`; a sample if there are many."""
    place = np.full(graph.num_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    ends = place[graph.edge_index.numpy()]
    ends = np.sort(ends[:, (ends >= 0).all(0) & (ends[0] != ends[1])], 0)
    links = np.unique(ends, axis=1).T
    if len(links) > MOST_LINKS:
        links = links[np.sort(np.random.default_rng(0).choice(len(links), MOST_LINKS, replace=False))]
    return links


def places(graph: Graph, nodes: np.ndarray, links: np.ndarray) -> np.ndarray:
    """Return a place for each of `nodes`.

    The start is the main plane of random features that were spread along the edges. Then links pull, and a few other
    nodes that are drawn by chance push, so that a round costs O(nodes + links).
    """
    generator = np.random.default_rng(0)
    noise = torch.from_numpy(generator.standard_normal((graph.num_nodes, _DIMENSIONS))).float()
    reach = Adjacency.normalized(graph, "row", True, torch.float32)
    for _ in range(_HOPS):
        noise = reach @ noise
    spread = noise.numpy()[nodes]
    spread = spread - spread.mean(0)
    plane = spread @ np.linalg.svd(spread, full_matrices=False)[2][:2].T
    at = plane / (np.abs(plane).max() + 1e-9) + 1e-3 * generator.standard_normal(plane.shape)
    ideal = 1.5 / np.sqrt(len(nodes))
    degree = np.maximum(np.bincount(links.ravel(), minlength=len(nodes)), 1)[:, None]
    for turn in range(_ROUNDS if len(nodes) > 1 else 0):
        pull = np.zeros_like(at)
        gap = at[links[:, 1]] - at[links[:, 0]]
        np.add.at(pull, links[:, 0], gap)
        np.add.at(pull, links[:, 1], -gap)
        others = generator.integers(len(nodes), size=(len(nodes), _OTHERS))
        away = at[:, None] - at[others]
        distance = (away**2).sum(2, keepdims=True) + 0.01 * ideal**2
        push = (away / distance).sum(1) * ideal**2 * len(nodes) / _OTHERS
        move = pull / degree + 0.05 * push - 0.01 * at
        length = np.linalg.norm(move, axis=1, keepdims=True)
        at = at + move / np.maximum(length, 1e-12) * np.minimum(length, 0.1 * (1 - turn / _ROUNDS))
    return _SCALE * at
