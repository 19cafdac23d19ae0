"""Cora, Citeseer and Pubmed, with the public split of Yang et al. (2016)."""

from __future__ import annotations

from pathlib import Path

from lignn.datasets.features import bag_of_words, row_normalised
from lignn.graph import Graph

# The source only numbers its classes. The published class sizes tell which number has which name, except for Pubmed.
_CLASS_NAMES = {
    "cora": (
        "Theory",
        "Reinforcement_Learning",
        "Genetic_Algorithms",
        "Neural_Networks",
        "Probabilistic_Methods",
        "Case_Based",
        "Rule_Learning",
    ),
    "citeseer": ("AI", "ML", "IR", "DB", "Agents", "HCI"),
}


def download(name: str, folder: Path) -> Graph:
    """Download the graph through PyG's `Planetoid`."""
    from torch_geometric.datasets import Planetoid

    graph = Graph.from_pyg(Planetoid(str(folder), name)[0], name=name)
    return graph.replace(x=bag_of_words(graph))


def prepare(graph: Graph, *, raw_features: bool = False) -> Graph:
    """Return the graph undirected and coalesced, without self-loops; feature rows sum to one unless `raw_features`."""
    x = bag_of_words(graph)
    x = x if raw_features else row_normalised(x)
    names = graph.class_names or _CLASS_NAMES.get(graph.name)
    return graph.replace(x=x, class_names=names).without_self_loops().to_undirected()
