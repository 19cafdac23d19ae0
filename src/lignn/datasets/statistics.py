"""Statistics of a dataset: those in the upper part of the paper's Table 2, and pictures of its label transitions."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from lignn.atomic import whole_file
from lignn.errors import ConfigError
from lignn.graph import Graph, measures
from lignn.graph.pictures import draw_transitions

if TYPE_CHECKING:
    pass


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


def check_ending(path: str | PathLike[str]) -> str:
    """Return the format of a picture file by its ending, which is `.png`, `.svg` or `.pdf`."""
    ending = Path(path).suffix.lower()
    if ending not in (".png", ".svg", ".pdf"):
        raise ConfigError(f"{path}: no picture can be written with the ending {ending!r}; use .png, .svg or .pdf")
    return ending[1:]


def save_transitions(graph: Graph, path: str | PathLike[str]) -> None:
    """Draw the label transitions of `graph` into a `.png`, `.svg` or `.pdf` file."""
    from matplotlib.figure import Figure

    ending = check_ending(path)
    figure = Figure(figsize=(6.4, 5.4), dpi=150, layout="constrained")
    axes = figure.subplots()
    image = draw_transitions(axes, measures.label_transitions(graph).tolist(), graph.class_names)
    axes.set_title(f"{graph.name}: label transitions P(j | i, edge)")
    figure.colorbar(image, ax=axes, label="share of the edges out of label i (%)")
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=ending)
