"""Small problems with known answers, shared by the tests."""

from __future__ import annotations

import torch
from torch import Tensor

from lignn import Graph, Split


def chain_operator(n: int = 10) -> Tensor:
    """`D^-1/2 (A+I) D^-1/2` of a path of n nodes, dense, float64."""
    a = torch.eye(n, dtype=torch.float64)
    a[range(n - 1), range(1, n)] = 1
    a[range(1, n), range(n - 1)] = 1
    scale = a.sum(1).rsqrt()
    return scale[:, None] * a * scale


def random_graph(
    n: int = 30,
    num_classes: int = 3,
    num_features: int = 5,
    seed: int = 0,
    directed: bool = False,
    weighted: bool = False,
    multilabel: bool = False,
    edge_types: tuple[str, ...] | None = None,
) -> Graph:
    """A connected random graph (a ring with chords), float64 features, all nodes labelled."""
    generator = torch.Generator().manual_seed(seed)
    ring = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
    chords = torch.randint(n, (2, 2 * n), generator=generator)
    edges = torch.cat([ring, chords[:, chords[0] != chords[1]]], 1)
    weight = torch.rand(edges.shape[1], generator=generator, dtype=torch.float64) + 0.1 if weighted else None
    y = torch.randint(num_classes, (n,), generator=generator)
    y[:num_classes] = torch.arange(num_classes)
    if multilabel:
        y = (torch.rand(n, num_classes, generator=generator) < 0.4).to(torch.int8)
    x = torch.randn(n, num_features, generator=generator, dtype=torch.float64)
    kinds = None if edge_types is None else torch.randint(len(edge_types), edges[0].shape, generator=generator)
    parts = {"x": x, "y": y, "edge_weight": weight, "edge_type": kinds, "edge_types": edge_types}
    graph = Graph(edges, num_nodes=n, name="random", **parts)
    return graph.coalesced() if directed else graph.to_undirected()


def half_split(n: int, seed: int = 0) -> Split:
    """Half of the nodes for training, the rest shared by validation and test."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    return Split.from_indices(n, order[: n // 2], order[n // 2 : 3 * n // 4], order[3 * n // 4 :])
