"""Measures of a graph: label transitions, homophily, degrees, components, reach of labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import breadth_first_order, connected_components
from torch import Tensor

from lignn.errors import GraphError
from lignn.graph.graph import Graph

MANY = 0.05
"""Share of the nodes that is many."""


def label_transitions(graph: Graph) -> Tensor:
    """Return `P(label j | label i, edge)`, c×c: the share of edges out of class i that end in class j (Figure 1).

    Edges count as stored; those with an unlabelled end do not count. A class without edges has a row of zeros.
    """
    counts = _transition_counts(graph)
    return counts / counts.sum(1, keepdim=True).clamp(min=1)


def edge_homophily(graph: Graph) -> float:
    """Return the share of edges between labelled nodes that join equal labels (the paper's *intra-class edges*)."""
    return edge_share(_transition_counts(graph))


def edge_share(counts: Tensor) -> float:
    """Return edge homophily from the numbers of edges by the classes of their ends (c×c)."""
    return (counts.trace() / counts.sum()).item()


def node_homophily(graph: Graph) -> float:
    """Return the share of a node's labelled incoming neighbours that have its label, averaged over the nodes."""
    y, (source, target) = _labels_and_edges(graph)
    same = torch.zeros(graph.num_nodes, dtype=torch.float64).index_add_(0, target, (y[source] == y[target]).double())
    degree = torch.bincount(target, minlength=graph.num_nodes)
    return (same[degree > 0] / degree[degree > 0]).mean().item()


def adjusted_homophily(graph: Graph) -> float:
    """Return edge homophily corrected for chance, `(h - Σ p_k²) / (1 - Σ p_k²)`, p_k the share of edge ends in class k.

    Platonov et al., "Characterizing graph datasets for node classification", 2023.
    """
    adjusted = adjusted_share(_transition_counts(graph))
    if adjusted is None:
        raise GraphError(f"{graph.name}: adjusted homophily is not defined if all edges join nodes of one class")
    return adjusted


def adjusted_share(counts: Tensor) -> float | None:
    """Return adjusted homophily from the numbers of edges by the classes of their ends; None if it is not defined."""
    chance = ((counts.sum(0) + counts.sum(1)) / (2 * counts.sum())).square().sum().item()
    return None if chance == 1 else (edge_share(counts) - chance) / (1 - chance)


@dataclass(frozen=True)
class Degrees:
    """Statistics of the number of incoming edges, self-loops included."""

    mean: float
    median: float
    maximum: int
    isolated: int
    """Number of nodes without incoming or outgoing edges, self-loops aside."""


def degrees(graph: Graph) -> Degrees:
    """Return the degree statistics of the edges as stored."""
    source, target = graph.edge_index
    incoming = torch.bincount(target, minlength=graph.num_nodes)
    proper = source != target
    touched = torch.zeros(graph.num_nodes, dtype=torch.bool)
    touched[graph.edge_index[:, proper].flatten()] = True
    return Degrees(
        mean=incoming.double().mean().item(),
        median=incoming.double().quantile(0.5).item() if graph.num_nodes <= 2**24 else incoming.median().item(),
        maximum=int(incoming.max()),
        isolated=int((~touched).sum()),
    )


def components(graph: Graph) -> Tensor:
    """Return the number of each node's weakly connected component."""
    return torch.from_numpy(connected_components(graph.to_scipy(), directed=True, connection="weak")[1]).long()


def unlabelled_components(graph: Graph, known: Tensor | None = None) -> float:
    """Return the share of weakly connected components without a node in `known` (by default: without a label)."""
    component = components(graph)
    known = graph.labelled if known is None else known
    count = int(component.max()) + 1
    return 1 - len(component[known].unique()) / count


def reached(graph: Graph, known: Tensor) -> Tensor:
    """Return the mask of the nodes that a node in `known` (a mask) reaches along edges of non-zero weight."""
    # One extra node with edges to all known ones turns this into a single search.
    start = sp.csr_array(known.numpy()[None].astype(np.float32))
    links = graph.to_scipy()
    links.eliminate_zeros()
    whole = sp.block_array([[links, None], [start, sp.csr_array((1, 1))]])
    found = np.zeros(len(known) + 1, dtype=bool)
    found[breadth_first_order(whole.tocsr(), len(known), return_predecessors=False)] = True
    return torch.from_numpy(found[:-1])


@dataclass(frozen=True)
class OneWay:
    """What following the edges one way costs: numbers of nodes that no known label reaches; `str` is in words."""

    without: int
    """Along the edges as they are stored."""
    without_if_undirected: int
    """If every edge were used in both directions."""
    nodes: int

    @property
    def matters(self) -> bool:
        """Whether both directions would reach many more nodes."""
        return self.without - self.without_if_undirected > MANY * self.nodes

    def __str__(self) -> str:
        few = f"{self.without_if_undirected} would not be" if self.without_if_undirected else "all would be"
        return (
            f"{self.without} of {self.nodes} nodes are reached by no known label, since edges are followed one way; "
            f"with --undirected, {few}"
        )


def one_way(graph: Graph, known: Tensor) -> OneWay:
    """Return how many nodes no node in `known` (a mask) reaches, one way and both ways."""
    links = graph.to_scipy()
    links.eliminate_zeros()
    component = torch.from_numpy(connected_components(links, directed=True, connection="weak")[1])
    both = torch.isin(component, component[known].unique())
    return OneWay(int((~reached(graph, known)).sum()), int((~both).sum()), graph.num_nodes)


def _labels_and_edges(graph: Graph) -> tuple[Tensor, Tensor]:
    """Return the class numbers, and the edges between labelled nodes."""
    if graph.y is None or graph.is_multilabel:
        raise GraphError(f"{graph.name}: this measure is defined for graphs with one label per node")
    edges = graph.edge_index[:, graph.labelled[graph.edge_index].all(0)]
    if edges.shape[1] == 0:
        raise GraphError(f"{graph.name}: no edge joins two labelled nodes")
    return graph.y, edges


def _transition_counts(graph: Graph) -> Tensor:
    y, edges = _labels_and_edges(graph)
    c = graph.num_classes
    return torch.bincount(y[edges[0]] * c + y[edges[1]], minlength=c * c).view(c, c).double()
