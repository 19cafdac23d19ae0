"""A small graph that can be learnt, and classifiers fitted on it once for all tests."""

from functools import cache

import torch

from lignn import Graph, NodeClassifier, Split


@cache
def small_graph(n=90, num_classes=3, noise=1.0, seed=0):
    """Noisy class centres as features; four edges a node, three of them within its class."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % num_classes
    centres = torch.randn(num_classes, 6, generator=generator, dtype=torch.float64)
    x = centres[y] + noise * torch.randn(n, 6, generator=generator, dtype=torch.float64)
    source = torch.arange(n).repeat_interleave(4)
    same = num_classes * torch.randint(1, n // num_classes, (4 * n,), generator=generator)
    step = torch.where(torch.arange(4 * n) % 4 < 3, same, torch.randint(1, n, (4 * n,), generator=generator))
    edges = torch.stack([source, (source + step) % n])
    names = tuple("abcdefgh"[:num_classes])
    ids = [f"node{i}" for i in range(n)]
    return Graph(edges, x=x, y=y, node_ids=ids, class_names=names, name="small").to_undirected()


@cache
def small_split(n=90, seed=0):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    return Split.from_indices(n, order[: n // 3], order[n // 3 : 2 * n // 3], order[2 * n // 3 :])


def first_nodes(graph, n):
    """The first nodes of a graph with the edges between them, and the mask of all its other edges."""
    inner = (graph.edge_index < n).all(0)
    parts = {name: getattr(graph, name)[:n] for name in ("x", "y", "node_ids")}
    parts |= {name: getattr(graph, name) for name in ("class_names", "edge_types")}
    kinds = None if graph.edge_type is None else graph.edge_type[inner]
    return Graph(graph.edge_index[:, inner], edge_type=kinds, **parts), ~inner


def fitted(method="lignn", graph=None, split=None, **options):
    """A classifier after a few epochs, in double precision."""
    graph = small_graph() if graph is None else graph
    split = small_split(graph.num_nodes) if split is None else split
    defaults = {"max_epochs": 20, "precision": "float64", "hidden": None if method == "eignn" else 16}
    return NodeClassifier(method, **(defaults | options)).fit(graph, split)
