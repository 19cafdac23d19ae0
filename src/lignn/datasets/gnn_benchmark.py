"""Amazon and Coauthor graphs of Shchur et al., "Pitfalls of graph neural network evaluation" (2018).

They have no public splits.
"""

from __future__ import annotations

from pathlib import Path

from lignn.datasets.features import bag_of_words, binary
from lignn.graph import Graph, files

_FEATURES = ("attr_data", "attr_indices", "attr_indptr", "attr_shape")


def download(name: str, folder: Path) -> Graph:
    """Download the graph through PyG's `Amazon` or `Coauthor`.

    PyG drops word counts, so the features are read from the raw file that PyG downloaded.
    """
    from torch_geometric.datasets import Amazon, Coauthor

    collection, part = name.split("_")
    dataset = {"amazon": Amazon, "coauthor": Coauthor}[collection](str(folder), part)
    arrays = files.read_npz(Path(dataset.raw_paths[0]), _FEATURES)
    parts = {key.removeprefix("attr_"): array for key, array in arrays.items()}
    x = files.sparse_matrix("csr", parts, parts["shape"].tolist())
    x.eliminate_zeros()
    return Graph.from_pyg(dataset[0], x=x, name=name)


def prepare(graph: Graph, *, raw_features: bool = False) -> Graph:
    """Return the graph undirected and coalesced, without self-loops.

    Features are word counts if `raw_features`, else 0/1.
    """
    x = bag_of_words(graph)
    return graph.replace(x=x if raw_features else binary(x)).without_self_loops().to_undirected()
