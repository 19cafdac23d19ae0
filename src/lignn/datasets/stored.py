"""Stored datasets: the download of each family through PyG or OGB, and the paper's convention for its graphs.

A download is kept unchanged. Every load converts it to the convention behind the paper's statistics.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from lignn.datasets.catalogue import FAMILIES
from lignn.errors import DatasetError
from lignn.graph import Graph, Split, files


def planetoid(name: str, folder: Path) -> Graph:
    """Download Cora, Citeseer or Pubmed, with the public split of Yang et al. (2016)."""
    from torch_geometric.datasets import Planetoid

    graph = Graph.from_pyg(Planetoid(str(folder), name)[0], name=name)
    return graph.replace(x=bag_of_words(graph))


def wikipedia(name: str, folder: Path) -> Graph:
    """Download Chameleon or Squirrel as preprocessed by Geom-GCN (Pei et al., 2020), with its ten splits."""
    from torch_geometric.datasets import WikipediaNetwork

    graph = Graph.from_pyg(WikipediaNetwork(str(folder), name, geom_gcn_preprocess=True)[0], name=name)
    return graph.replace(x=bag_of_words(graph))


def gnn_benchmark(name: str, folder: Path) -> Graph:
    """Download a graph of Shchur et al., "Pitfalls of graph neural network evaluation" (2018); it has no splits.

    PyG drops word counts, so the features are read from the raw file that PyG downloaded.
    """
    from torch_geometric.datasets import Amazon, Coauthor

    collection, part = name.split("_")
    dataset = {"amazon": Amazon, "coauthor": Coauthor}[collection](str(folder), part)
    arrays = files.read_npz(Path(dataset.raw_paths[0]), ("attr_data", "attr_indices", "attr_indptr", "attr_shape"))
    parts = {key.removeprefix("attr_"): array for key, array in arrays.items()}
    x = files.sparse_matrix("csr", parts, parts["shape"].tolist())
    x.eliminate_zeros()
    return Graph.from_pyg(dataset[0], x=x, name=name)


def flickr(name: str, folder: Path) -> Graph:
    """Download the graph of photos of Zeng et al. (GraphSAINT, 2020), with its public split."""
    from torch_geometric.datasets import Flickr

    return Graph.from_pyg(Flickr(str(folder))[0], name=name)


def heterophilous(name: str, folder: Path) -> Graph:
    """Download a graph of Platonov et al., "A critical look at the evaluation of GNNs under heterophily" (2023).

    It has ten splits.
    """
    from torch_geometric.datasets import HeterophilousGraphDataset

    return Graph.from_pyg(HeterophilousGraphDataset(str(folder), name)[0], name=name)


def ogb(name: str, folder: Path) -> Graph:
    """Download ogbn-arxiv of Hu et al., "Open Graph Benchmark" (2020), with its split by year."""
    try:
        from ogb.nodeproppred import NodePropPredDataset
    except ModuleNotFoundError as error:
        raise DatasetError(f"{name} is downloaded by OGB, which is not installed; pip install 'lignn[ogb]'") from error
    dataset = NodePropPredDataset(name.replace("_", "-"), root=str(folder))
    graph, labels = dataset[0]
    index = dataset.get_idx_split()
    n = graph["num_nodes"]
    split = Split.from_indices(n, index["train"], index["valid"], index["test"])
    return Graph(graph["edge_index"], x=graph["node_feat"], y=labels[:, 0], num_nodes=n, splits=[split], name=name)


def undirected(graph: Graph) -> Graph:
    """Return the graph undirected and coalesced, without self-loops."""
    return graph.without_self_loops().to_undirected()


def both_directions(graph: Graph) -> Graph:
    """Return the graph without self-loops, with both directions of every edge.

    Repeated edges are kept, as in the paper's statistics: two pages that link to each other are joined twice.
    """
    return graph.without_self_loops().to_undirected(coalesce=False)


def citations(graph: Graph, *, raw_features: bool = False) -> Graph:
    """Return the graph undirected; feature rows sum to one unless `raw_features`."""
    x = bag_of_words(graph)
    names = graph.class_names or FAMILIES["planetoid"]["class_names"].get(graph.name)
    return undirected(graph.replace(x=x if raw_features else row_normalised(x), class_names=names))


def word_counts(graph: Graph, *, raw_features: bool = False) -> Graph:
    """Return the graph undirected; features are word counts if `raw_features`, else 0/1."""
    x = bag_of_words(graph)
    return undirected(graph.replace(x=x if raw_features else binary(x)))


def bag_of_words(graph: Graph) -> sp.csr_array:
    """Return the features of `graph` as a sparse matrix."""
    if graph.x is None:
        raise DatasetError(f"the file of {graph.name} has no features; download it again or name another folder")
    return graph.x if isinstance(graph.x, sp.csr_array) else sp.csr_array(graph.x.numpy())


def row_normalised(x: sp.csr_array) -> sp.csr_array:
    """Return `x` with every row divided by its sum; rows that sum to zero become zero."""
    total = x.sum(1, dtype=np.float64)
    scale = np.divide(1, total, out=np.zeros_like(total), where=total != 0)
    data = x.data * np.repeat(scale, np.diff(x.indptr))
    return sp.csr_array((data.astype(x.dtype), x.indices, x.indptr), shape=x.shape)


def binary(x: sp.csr_array) -> sp.csr_array:
    """Return `x` with every positive count replaced by one."""
    return sp.csr_array(((x.data > 0).astype(x.dtype), x.indices, x.indptr), shape=x.shape)
