"""Datasets that need no download: the paper's two synthetic tasks, one with types of edges, and two of libraries."""

from __future__ import annotations

import numpy as np

from lignn.errors import DatasetError
from lignn.graph import Graph, Split

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def weekday() -> Graph:
    """Return the 14 610 days from 1980-01-01 to 2019-12-31, labelled by weekday (the paper's Figure 3).

    Features are the 8 digits of YYYYMMDD. A directed edge leads from each day to its 4 nearest days in Euclidean
    distance. Most days have more than four neighbours at distance 1; like the paper's graph, this one keeps those that
    `torch.topk` selects.
    """
    days = np.arange("1980-01-01", "2020-01-01", dtype="datetime64[D]")
    x = np.array([list(str(day).replace("-", "")) for day in days], np.float32)
    y = (days.astype(np.int64) + 3) % 7  # 1970-01-01, day 0, was a Thursday
    return Graph.knn(x, 4, y=y, node_ids=days.astype(str), class_names=_WEEKDAYS)


def chains(
    length: int,
    *,
    num_classes: int = 10,
    chains_per_class: int = 20,
    num_features: int = 100,
    noise: float = 0.0,
    heterophilic: bool = False,
    seed: int = 42,
) -> Graph:
    """Return undirected chains whose class is written, one-hot, on their first node only (the paper's Figure 4).

    One NumPy `RandomState(seed)` first draws the noise of all features (even if `noise` is zero) and then shuffles all
    nodes for the split: as many training nodes as there are chains (200 in the paper), the next tenth of all nodes for
    validation, and the rest for testing.

    Args:
        length: number of nodes in a chain.
        num_classes: number of classes, c.
        chains_per_class: number of chains of each class.
        num_features: number of features, at least `num_classes`.
        noise: bound of the uniform noise from [-noise, noise] that is added to the features.
        heterophilic: let the class advance by one (mod c) at each hop. Then neighbours never share a label, and a label
            has to be transformed, not copied, along the chain. By default all nodes of a chain have the same class.
        seed: seed of the noise and the split.
    """
    _check_chains(length, num_classes, chains_per_class, num_features, noise)
    random = np.random.RandomState(seed)
    x = random.uniform(-noise, noise, (num_classes, chains_per_class, length, num_features))
    x[:, :, 0, :num_classes] += np.eye(num_classes)[:, None]
    first = np.arange(num_classes)[:, None, None]
    hops = np.arange(length) if heterophilic else np.zeros(length, np.int64)
    y = np.broadcast_to((first + hops) % num_classes, x.shape[:3]).flatten()

    n = len(y)
    nodes = np.arange(n).reshape(-1, length)
    edges = np.stack([nodes[:, :-1].flatten(), nodes[:, 1:].flatten()])
    cuts = np.cumsum([num_classes * chains_per_class, n // 10])
    split = Split.from_indices(n, *np.split(random.permutation(n), cuts))
    return Graph(edges, x=x.reshape(n, -1).astype(np.float32), y=y, splits=[split]).to_undirected()


def _check_chains(length: int, num_classes: int, chains_per_class: int, num_features: int, noise: float) -> None:
    least = {"length": (length, 2), "num_classes": (num_classes, 2), "chains_per_class": (chains_per_class, 1)}
    least |= {"num_features": (num_features, num_classes)}
    for option, (value, bound) in least.items():
        if value < bound:
            raise DatasetError(f"chains: {option} must be at least {bound}, got {value}")
    if not 0 <= noise < np.inf:
        raise DatasetError(f"chains: noise must be finite and not negative, got {noise}")


def typed(
    *,
    num_nodes: int = 2000,
    num_classes: int = 4,
    edges_per_type: int = 2,
    num_features: int = 16,
    signal: float = 1.0,
    seed: int = 42,
) -> Graph:
    """Return a directed graph in which only the types of edges tell what the class of a neighbour means.

    There are as many types as classes. An edge of type r leads from a node of class `y - r` to one of class y (mod c),
    and every node has the same number of incoming edges of each type. So without the types, the neighbourhoods of all
    nodes look alike: each has as many sources of every class. With the types, one source of known class is enough.

    Features are normal noise of variance 1, with `signal` added to the feature of the node's class.

    Args:
        num_nodes: number of nodes, a multiple of `num_classes`.
        num_classes: number of classes and of types, c.
        edges_per_type: number of incoming edges of each type at each node; their sources are drawn at random.
        num_features: number of features, at least `num_classes`.
        signal: what features say of the class; 0 for nothing, so that labels are the only evidence.
        seed: seed of classes, edges and noise.
    """
    if num_classes < 2 or num_nodes < num_classes or num_nodes % num_classes:
        raise DatasetError(f"typed: num_nodes must be a multiple of num_classes ≥ 2, got {num_nodes} and {num_classes}")
    if edges_per_type < 1 or num_features < num_classes or not 0 <= signal < np.inf:
        got = f"{edges_per_type}, {num_features} and {signal}"
        raise DatasetError(
            f"typed: edges_per_type ≥ 1, num_features ≥ num_classes and signal ≥ 0 are needed, got {got}"
        )
    random = np.random.RandomState(seed)
    y = random.permutation(np.arange(num_nodes) % num_classes)
    members = np.argsort(y, kind="stable").reshape(num_classes, -1)
    kind, target = (part.flatten() for part in np.indices((num_classes, num_nodes * edges_per_type)))
    target //= edges_per_type
    source = members[(y[target] - kind) % num_classes, random.randint(members.shape[1], size=len(kind))]
    x = random.standard_normal((num_nodes, num_features))
    x[np.arange(num_nodes), y] += signal
    names = [f"shift-{number}" for number in range(num_classes)]
    return Graph(np.stack([source, target]), x=x.astype(np.float32), y=y, edge_type=kind, edge_types=names)


def digits(*, neighbours: int = 5) -> Graph:
    """Return scikit-learn's 1797 images of handwritten digits, each joined to its nearest `neighbours`, undirected.

    Features are the 8×8 grey values, scaled to [0, 1]. Distances are Euclidean.
    """
    from sklearn.datasets import load_digits

    images = load_digits()
    x = (images.data / 16).astype(np.float32)
    return Graph.knn(x, neighbours, y=images.target, class_names=[str(d) for d in range(10)]).to_undirected()


def karate() -> Graph:
    """Return Zachary's karate club as in PyG: 34 members, one-hot features, 4 communities found by modularity."""
    from torch_geometric.datasets import KarateClub

    return Graph.from_pyg(KarateClub()[0])
