"""Real data that comes with the libraries we need anyway: nothing to download."""

from __future__ import annotations

import numpy as np

from lignn.graph import Graph


def digits(*, neighbours: int = 5) -> Graph:
    """scikit-learn's 1797 images of handwritten digits, each joined to its nearest `neighbours`, undirected.

    Features are the 8×8 grey values, scaled to [0, 1]; distances are Euclidean.
    """
    from sklearn.datasets import load_digits

    images = load_digits()
    x = (images.data / 16).astype(np.float32)
    return Graph.knn(x, neighbours, y=images.target, class_names=[str(d) for d in range(10)]).to_undirected()


def karate() -> Graph:
    """Zachary's karate club as in PyG: 34 members, one-hot features, the 4 communities found by modularity."""
    from torch_geometric.datasets import KarateClub

    return Graph.from_pyg(KarateClub()[0])
