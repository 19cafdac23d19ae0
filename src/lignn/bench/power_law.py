"""Synthetic learning problems of any size on graphs whose degrees follow a power law."""

from __future__ import annotations

import numpy as np

from lignn.bench.propagation import power_law_graph
from lignn.graph import Graph, Split


def power_law(edges: int, num_classes: int = 10, num_features: int = 100, seed: int = 0) -> Graph:
    """About `edges` undirected edges over a tenth as many nodes, with features, labels and a split.

    Labels have nothing to do with edges; features are noise around a direction of the class. The split has a hundredth
    of the nodes, at least two a class, for training, and as many for validation and for testing.
    """
    n = max(edges // 10, 10 * num_classes)
    y = np.arange(n) % num_classes
    x = np.random.default_rng(seed).standard_normal((n, num_features), dtype=np.float32)
    x[np.arange(n), y] += 1
    part = max(n // 100, 2 * num_classes)
    split = Split.from_indices(n, *np.split(np.arange(3 * part), 3))
    graph = power_law_graph(n, 2 * edges + n, seed=seed)
    return Graph(graph.edge_index, x=x, y=y, num_nodes=n, splits=[split], name=f"power law, {edges:.0e} edges")
