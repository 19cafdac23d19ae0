"""Statistics of a dataset: those in the upper part of the paper's Table 2, and more."""

from __future__ import annotations

from dataclasses import dataclass

from lignn.graph import Graph, measures


@dataclass(frozen=True)
class Statistics:
    """Statistics of a graph with one label a node; those up to `intra_class_edges` are in the paper's Table 2."""

    nodes: int
    edges: int
    """Number of edges as the paper counts them: an undirected edge counts once, a repeated edge each time."""
    average_degree: float
    """Number of stored (directed) edges per node."""
    features: int
    classes: int
    intra_class_edges: float
    """Share of the edges that join equal labels."""
    pairs: int
    """Number of pairs of different nodes that are joined: undirected edges, coalesced."""
    feature_density: float
    """Share of the features that are not zero."""
    labelled: int
    node_homophily: float
    adjusted_homophily: float
    median_degree: float
    maximum_degree: int
    isolated: int
    """Number of nodes without edges, self-loops aside."""
    components: int
    unlabelled_components: float
    """Share of the weakly connected components without a labelled node."""
    public_splits: int


def statistics(graph: Graph) -> Statistics:
    """Return the statistics of `graph`, with its edges as stored."""
    degrees = measures.degrees(graph)
    nonzeros = 0 if graph.x is None else int(graph.x.count_nonzero())
    return Statistics(
        nodes=graph.num_nodes,
        edges=graph.num_edges // 2 if graph.is_undirected else graph.num_edges,
        average_degree=degrees.mean,
        features=graph.num_features,
        classes=graph.num_classes,
        intra_class_edges=measures.edge_homophily(graph),
        pairs=graph.without_self_loops().to_undirected().num_edges // 2,
        feature_density=nonzeros / max(1, graph.num_nodes * graph.num_features),
        labelled=int(graph.labelled.sum()),
        node_homophily=measures.node_homophily(graph),
        adjusted_homophily=measures.adjusted_homophily(graph),
        median_degree=degrees.median,
        maximum_degree=degrees.maximum,
        isolated=degrees.isolated,
        components=int(measures.components(graph).max()) + 1,
        unlabelled_components=measures.unlabelled_components(graph),
        public_splits=len(graph.splits),
    )
