"""A graph as a table of facts, and its label transitions as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lignn import notebook
from lignn.errors import GraphError
from lignn.graph import measures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

    from lignn.graph.graph import Graph

_NAMES = 12
"""Classes that are named in the table of facts."""
_MOST_NUMBERS = 10
"""Maximum number of classes for which a cell is wide enough for a number."""


def facts(graph: Graph) -> str:
    """Return what there is in a graph as HTML."""
    rows: list[tuple[str, str]] = [("nodes", f"{graph.num_nodes:,}"), ("edges", f"{graph.num_edges:,}")]
    columns = graph.num_features if graph.table is None else graph.table.num_columns
    rows += [("features" if graph.table is None else "columns", f"{columns:,}")] * bool(columns)
    if graph.y is not None:
        names = graph.class_names or [str(number) for number in range(graph.num_classes)]
        shown = ", ".join(names[:_NAMES]) + (", …" if len(names) > _NAMES else "")
        rows += [("classes", f"{graph.num_classes}: {shown}"), ("labelled", f"{int(graph.labelled.sum()):,}")]
    rows += [("types of edges", ", ".join(graph.edge_types or ()))] * (graph.edge_types is not None)
    rows += [("splits", str(len(graph.splits)))] * bool(graph.splits)
    return notebook.table((), rows, caption=f"Graph {graph.name!r}")


def transitions(graph: Graph, ax: Axes | None = None) -> Axes:
    """Draw `P(label j | label i, edge)` in percent."""
    if graph.y is None or graph.is_multilabel:
        raise GraphError(f"{graph.name}: label transitions need one label a node")
    ax = notebook.axes(ax)
    draw_transitions(ax, measures.label_transitions(graph).tolist(), graph.class_names)
    ax.set_title(f"{graph.name}: edges by label (%)")
    return ax


def draw_transitions(
    axes: Axes, matrix: Sequence[Sequence[float]], names: Sequence[str] | None = None, fontsize: float | None = None
) -> AxesImage:
    """Draw label transitions as a matrix of shades, with percentages if there is room.

    Args:
        axes: where to draw.
        matrix: `P(label j | label i, edge)`, see `measures.label_transitions`.
        names: names of the classes; by default their numbers.
        fontsize: size of the percentages.
    """
    # One hue from light to dark is read by its lightness, so it needs no colour vision.
    image = axes.imshow(100 * np.asarray(matrix), cmap="Blues", vmin=0, vmax=100)
    c = len(matrix)
    names = names or [str(i) for i in range(c)]
    step = 1 if c <= 2 * _MOST_NUMBERS else 5
    tilt: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if max(map(len, names)) > 3 else {}
    axes.set_xticks(range(0, c, step), names[::step], **tilt)
    axes.set_yticks(range(0, c, step), names[::step])
    axes.set(xlabel="label j at the target", ylabel="label i at the source")
    if c <= _MOST_NUMBERS:
        for (i, j), share in np.ndenumerate(matrix):
            colour = "white" if share > 0.5 else "black"
            axes.text(j, i, f"{100 * share:.0f}", ha="center", va="center", color=colour, fontsize=fontsize)
    return image
