"""Chameleon and Squirrel: Wikipedia pages by traffic, with the ten splits of Geom-GCN (Pei et al., 2020)."""

from __future__ import annotations

from pathlib import Path

from lignn.datasets.features import bag_of_words
from lignn.graph import Graph


def download(name: str, folder: Path) -> Graph:
    """Download the graph through PyG's `WikipediaNetwork`, with Geom-GCN's preprocessing as in the paper."""
    from torch_geometric.datasets import WikipediaNetwork

    graph = Graph.from_pyg(WikipediaNetwork(str(folder), name, geom_gcn_preprocess=True)[0], name=name)
    return graph.replace(x=bag_of_words(graph))


def prepare(graph: Graph) -> Graph:
    """Return the graph without self-loops, with both directions of every edge.

    Two pages that link to each other are joined twice in each direction, as in the paper.
    """
    return graph.without_self_loops().to_undirected(coalesce=False)
