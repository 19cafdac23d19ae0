"""Flickr, the graph of photos of Zeng et al. (GraphSAINT, 2020), with its public split."""

from __future__ import annotations

from pathlib import Path

from lignn.graph import Graph


def download(name: str, folder: Path) -> Graph:
    """Download the graph through PyG's `Flickr`."""
    from torch_geometric.datasets import Flickr

    return Graph.from_pyg(Flickr(str(folder))[0], name=name)


def prepare(graph: Graph) -> Graph:
    """Return the graph undirected and coalesced, without self-loops."""
    return graph.without_self_loops().to_undirected()
