"""Chains: long-range dependence in its simplest form."""

from __future__ import annotations

import numpy as np

from lignn.errors import DatasetError
from lignn.graph import Graph, Split


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
    """Undirected chains whose class is written, one-hot, on their first node only (the paper's Figure 4).

    One NumPy `RandomState(seed)` draws the noise of all features, also when it is zero, and then shuffles all nodes for
    the split: as many training nodes as there are chains (the paper's 200), the next tenth of all nodes for validation,
    the rest for testing.

    Args:
        length: nodes a chain.
        num_classes: classes c.
        chains_per_class: chains of each class.
        num_features: width of the features, at least `num_classes`.
        noise: features get uniform noise from [-noise, noise].
        heterophilic: the class advances by one (mod c) at each hop, so that neighbours never share a label and a label
            has to be transformed, not copied, on its way along the chain. Else all nodes of a chain have its class.
        seed: of the noise and the split.
    """
    _check(length, num_classes, chains_per_class, num_features, noise)
    random = np.random.RandomState(seed)
    x = random.uniform(-noise, noise, (num_classes, chains_per_class, length, num_features))
    x[:, :, 0, :num_classes] += np.eye(num_classes)[:, None]
    first = np.arange(num_classes)[:, None, None]
    hops = np.arange(length) if heterophilic else np.zeros(length, np.int64)
    y = np.broadcast_to((first + hops) % num_classes, x.shape[:3]).flatten()

    n = len(y)
    nodes = np.arange(n).reshape(-1, length)
    edges = np.stack([nodes[:, :-1].flatten(), nodes[:, 1:].flatten()])
    order = np.arange(n)
    random.shuffle(order)
    cuts = np.cumsum([num_classes * chains_per_class, n // 10])
    split = Split.from_indices(n, *np.split(order, cuts))
    return Graph(edges, x=x.reshape(n, -1).astype(np.float32), y=y, splits=[split]).to_undirected()


def _check(length: int, num_classes: int, chains_per_class: int, num_features: int, noise: float) -> None:
    least = {"length": (length, 2), "num_classes": (num_classes, 2), "chains_per_class": (chains_per_class, 1)}
    least |= {"num_features": (num_features, num_classes)}
    for option, (value, bound) in least.items():
        if value < bound:
            raise DatasetError(f"chains: {option} must be at least {bound}, got {value}")
    if not 0 <= noise < np.inf:
        raise DatasetError(f"chains: noise must be finite and not negative, got {noise}")
