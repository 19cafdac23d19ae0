"""Synthetic graphs of any size whose degrees follow a power law."""

from __future__ import annotations

import numpy as np
import torch

from lignn.graph import Graph, Split

COMMUNITY = 1000
"""Nodes of a community."""
INSIDE = 0.8
"""Share of the edges that stay inside a community."""


def power_law(
    edges: int, num_classes: int = 10, num_features: int = 100, seed: int = 0, communities: bool = False
) -> Graph:
    """Return a learning problem with about `edges` undirected edges and a tenth as many nodes.

    The edges do not depend on the labels. The features are Gaussian noise, plus 1 in the column of the class. A
    hundredth of the nodes, but at least two a class, are for training, as many for validation, as many for testing.
    """
    n = max(edges // 10, 10 * num_classes)
    y = np.arange(n) % num_classes
    x = np.random.default_rng(seed).standard_normal((n, num_features), dtype=np.float32)
    x[np.arange(n), y] += 1
    part = max(n // 100, 2 * num_classes)
    split = Split.from_indices(n, *np.split(np.arange(3 * part), 3))
    graph = (graph_with_communities if communities else power_law_graph)(n, 2 * edges + n, seed=seed)
    return Graph(graph.edge_index, x=x, y=y, num_nodes=n, splits=[split], name=f"power law, {edges:.0e} edges")


def power_law_graph(nodes: int, entries: int, exponent: float = 2.5, seed: int = 0) -> Graph:
    """Return an undirected graph with nodes in random order and about `entries` non-zeros in A + I."""
    generator = np.random.default_rng(seed)
    weight = (np.arange(nodes) + 10.0) ** (-1 / (exponent - 1))
    ends = generator.choice(nodes, size=(2, (entries - nodes) // 2), p=weight / weight.sum())
    edges = torch.from_numpy(generator.permutation(nodes)[ends])
    return Graph(edges, num_nodes=nodes).without_self_loops().to_undirected()


def graph_with_communities(nodes: int, entries: int, exponent: float = 2.5, seed: int = 0) -> Graph:
    """Return such a graph with communities, as social and citation networks have them; nodes in random order.

    Both ends of an edge are drawn in proportion to their weights: the first among all nodes, the second with
    probability `INSIDE` only among those of the first one's community.
    """
    generator = np.random.default_rng(seed)
    weight = generator.permutation((np.arange(nodes) + 10.0) ** (-1 / (exponent - 1)))
    below = np.concatenate([[0.0], weight.cumsum()]) / weight.sum()
    count = (entries - nodes) // 2
    first = _drawn(below, generator.random(count))
    start = first // COMMUNITY * COMMUNITY
    inside = generator.random(count) < INSIDE
    low = np.where(inside, below[start], 0.0)
    high = np.where(inside, below[np.minimum(start + COMMUNITY, nodes)], 1.0)
    second = _drawn(below, low + (high - low) * generator.random(count))
    edges = torch.from_numpy(generator.permutation(nodes)[np.stack([first, second])])
    return Graph(edges, num_nodes=nodes).without_self_loops().to_undirected()


def _drawn(below: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return the nodes at places between 0 and 1, where `below` has the share of all weight before each node."""
    return np.minimum(np.searchsorted(below, place, side="right") - 1, len(below) - 2)
