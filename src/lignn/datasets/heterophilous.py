"""The five heterophilous graphs of Platonov et al., with ten splits each.

"A critical look at the evaluation of GNNs under heterophily: are we really making progress?", 2023.
"""

from __future__ import annotations

from pathlib import Path

from lignn.graph import Graph


def download(name: str, folder: Path) -> Graph:
    """Download the graph through PyG's `HeterophilousGraphDataset`."""
    from torch_geometric.datasets import HeterophilousGraphDataset

    return Graph.from_pyg(HeterophilousGraphDataset(str(folder), name)[0], name=name)


def prepare(graph: Graph) -> Graph:
    """Return the graph undirected and coalesced, without self-loops."""
    return graph.without_self_loops().to_undirected()
