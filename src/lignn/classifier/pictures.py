"""Pictures of what a classifier says: confidence, reliability, the neighbourhood of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lignn import notebook

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lignn.classifier.decision import Decision
    from lignn.classifier.report import Report
    from lignn.graph import Graph

_BINS, _MOST_NODES, _MOST_NAMES = 20, 60, 25


def confidence(decision: Decision, ax: Axes | None = None) -> Axes:
    """Draw a histogram of the confidence in nodes without a known label, by predicted class."""
    ax = notebook.axes(ax)
    hidden = decision[~decision.known] if not decision.known.all() else decision
    bins = np.linspace(0, 1, _BINS + 1).tolist()
    if hidden.labels.ndim == 1:
        parts = [hidden.confidence[hidden.labels == number] for number in range(len(decision.class_names))]
        colours = [notebook.colour(number) for number in range(len(parts))]
        ax.hist(parts, bins, stacked=True, color=colours, label=list(decision.class_names))
        ax.legend(title="predicted")
    else:
        ax.hist(hidden.confidence, bins, color=notebook.BLUE)
    ax.set(xlabel="confidence", ylabel="nodes", xlim=(0, 1))
    return ax


def reliability(report: Report, ax: Axes | None = None) -> Axes:
    """Draw the share of right predictions against the mean confidence of each bin."""
    ax = notebook.axes(ax)
    sure, right = report.reliability
    ax.plot([0, 1], [0, 1], color=notebook.GREY, linestyle="--", label="as sure as right")
    ax.plot(sure, right, marker="o", color=notebook.BLUE, label=f"{report.nodes} nodes")
    ax.set(xlabel="confidence", ylabel="share of right predictions", xlim=(0, 1), ylim=(0, 1))
    ax.legend()
    return ax


def neighbourhood(decision: Decision, graph: Graph, node: int, hops: int = 1, ax: Axes | None = None) -> Axes:
    """Draw the nodes around one: colour = predicted class, ring = known label, faint = unsure."""
    ax = notebook.axes(ax)
    ends = graph.edge_index.numpy()
    places = _places(ends, node, hops)
    for source, target in {(s, t) for s, t in ends.T.tolist() if s in places and t in places and s != t}:
        ax.annotate("", places[target], places[source], arrowprops={"arrowstyle": "->", "color": notebook.GREY})
    number = {name: place for place, name in enumerate(decision.class_names)}
    for one, (x, y) in places.items():
        label, given = (number.get(str(names[one])) for names in (decision.names, decision.given))
        fill = notebook.GREY if label is None else notebook.colour(label)
        ring = "none" if given is None else notebook.colour(given)
        size = 300 if one == node else 160
        ax.scatter(x, y, size, color="white", zorder=2)
        ax.scatter(x, y, size, color=fill, alpha=0.25 + 0.75 * float(decision.confidence[one]), zorder=3)
        ax.scatter(x, y, 1.8 * size, facecolors="none", edgecolors=ring, linewidths=2.5, zorder=3)
        if len(places) <= _MOST_NAMES:
            ax.annotate(str(decision.node_ids[one]), (x, y), xytext=(0, 12), textcoords="offset points", ha="center")
    for name, place in number.items():
        ax.scatter([], [], color=notebook.colour(place), label=name)
    ax.legend(title="predicted; ring: known", loc="upper left", bbox_to_anchor=(1, 1))
    ax.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), xticks=[], yticks=[])
    ax.set_title(f"{decision.node_ids[node]}: {decision.names[node]}, confidence {decision.confidence[node]:.0%}")
    ax.set_aspect("equal")
    return ax


def _places(ends: np.ndarray, node: int, hops: int) -> dict[int, tuple[float, float]]:
    """Return the nodes within some hops with their places: the one in the middle, each hop on a circle around it."""
    places, shell = {node: (0.0, 0.0)}, [node]
    for hop in range(1, hops + 1):
        touched = np.isin(ends, shell).any(0)
        shell = [one for one in np.unique(ends[:, touched]).tolist() if one not in places][: _MOST_NODES - len(places)]
        angles = 2 * np.pi * (np.arange(len(shell)) + hop / 2) / max(len(shell), 1)
        places |= {
            one: (hop / hops * float(np.cos(angle)), hop / hops * float(np.sin(angle)))
            for one, angle in zip(shell, angles, strict=True)
        }
    return places
