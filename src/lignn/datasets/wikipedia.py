"""Chameleon and Squirrel: Wikipedia pages by traffic, with the ten splits of Geom-GCN (Pei et al., 2020)."""

from __future__ import annotations

from pathlib import Path

from lignn.datasets.features import bag_of_words
from lignn.graph import Graph


def download(name: str, folder: Path) -> Graph:
    """The graph from PyG's `WikipediaNetwork` with Geom-GCN's preprocessing, whose edges and splits are the paper's."""
    from torch_geometric.datasets import WikipediaNetwork

    graph = Graph.from_pyg(WikipediaNetwork(str(folder), name, geom_gcn_preprocess=True)[0], name=name)
    return graph.replace(x=bag_of_words(graph))


def prepare(graph: Graph) -> Graph:
    """Without self-loops, both directions of every edge; a pair that links both ways is joined twice."""
    return graph.without_self_loops().to_undirected(coalesce=False)
