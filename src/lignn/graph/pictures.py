"""A graph as a table of facts, and its label transitions as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lignn import notebook
from lignn.errors import GraphError
from lignn.graph import measures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lignn.graph.graph import Graph

_NUMBERS = 12
"""Maximum number of classes for which cells have room for numbers."""


def facts(graph: Graph) -> str:
    """Return what there is in a graph as HTML."""
    rows: list[tuple[str, str]] = [("nodes", f"{graph.num_nodes:,}"), ("edges", f"{graph.num_edges:,}")]
    columns = graph.num_features if graph.table is None else graph.table.num_columns
    rows += [("features" if graph.table is None else "columns", f"{columns:,}")] * bool(columns)
    if graph.y is not None:
        names = graph.class_names or [str(number) for number in range(graph.num_classes)]
        shown = ", ".join(names[:_NUMBERS]) + (", …" if len(names) > _NUMBERS else "")
        rows += [("classes", f"{graph.num_classes}: {shown}"), ("labelled", f"{int(graph.labelled.sum()):,}")]
    rows += [("types of edges", ", ".join(graph.edge_types or ()))] * (graph.edge_types is not None)
    rows += [("splits", str(len(graph.splits)))] * bool(graph.splits)
    return notebook.table((), rows, caption=f"Graph {graph.name!r}")


def transitions(graph: Graph, ax: Axes | None = None) -> Axes:
    """Draw `P(label j | label i, edge)` in percent."""
    if graph.y is None or graph.is_multilabel:
        raise GraphError(f"{graph.name}: label transitions need one label a node")
    shares = 100 * measures.label_transitions(graph).numpy()
    ax = notebook.axes(ax)
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=100)
    names = graph.class_names or [str(number) for number in range(graph.num_classes)]
    ticks = np.arange(len(names))
    ax.set_xticks(ticks, names, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(ticks, names)
    if len(names) <= _NUMBERS:
        for i, j in np.ndindex(*shares.shape):
            ax.text(
                j, i, f"{shares[i, j]:.0f}", ha="center", va="center", color="white" if shares[i, j] > 55 else "black"
            )
    ax.set(xlabel="label of the target", ylabel="label of the source", title=f"{graph.name}: edges by label (%)")
    return ax
