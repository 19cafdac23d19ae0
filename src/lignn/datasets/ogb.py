"""ogbn-arxiv of Hu et al., "Open Graph Benchmark" (2020), with its split by year."""

from __future__ import annotations

from pathlib import Path

from lignn.errors import DatasetError
from lignn.graph import Graph, Split


def download(name: str, folder: Path) -> Graph:
    """Download the graph through OGB's `NodePropPredDataset`."""
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


def prepare(graph: Graph) -> Graph:
    """Return the graph without self-loops, with both directions of every edge.

    Repeated edges are kept, as in the paper's statistics.
    """
    return graph.without_self_loops().to_undirected(coalesce=False)
