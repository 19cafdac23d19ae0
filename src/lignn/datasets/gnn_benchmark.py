"""Amazon and Coauthor graphs of Shchur et al., "Pitfalls of graph neural network evaluation" (2018).

They have no public splits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from lignn.datasets.features import bag_of_words, binary
from lignn.graph import Graph


def download(name: str, folder: Path) -> Graph:
    """Download the graph through PyG's `Amazon` or `Coauthor`.

    PyG drops word counts, so the features are read from the raw file that PyG downloaded.
    """
    from torch_geometric.datasets import Amazon, Coauthor

    collection, part = name.split("_")
    dataset = {"amazon": Amazon, "coauthor": Coauthor}[collection](str(folder), part)
    with np.load(dataset.raw_paths[0]) as raw:
        x = sp.csr_array((raw["attr_data"], raw["attr_indices"], raw["attr_indptr"]), shape=tuple(raw["attr_shape"]))
    x.eliminate_zeros()
    return Graph.from_pyg(dataset[0], x=x, name=name)


def prepare(graph: Graph, *, raw_features: bool = False) -> Graph:
    """Return the graph undirected and coalesced, without self-loops.

    Features are word counts if `raw_features`, else 0/1.
    """
    x = bag_of_words(graph)
    return graph.replace(x=x if raw_features else binary(x)).without_self_loops().to_undirected()
