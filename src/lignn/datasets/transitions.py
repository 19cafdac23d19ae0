"""Plots of label transitions: the paper's Figure 1."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from lignn.atomic import whole_file
from lignn.errors import ConfigError
from lignn.graph import Graph, measures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

_MAX_WITH_NUMBERS = 10
"""Largest number of classes for which numbers fit into the cells."""


def draw(axes: Axes, graph: Graph) -> AxesImage:
    """Draw `P(label j | label i, edge)` of `graph` as a heat map, with percentages in the cells if they fit."""
    share = 100 * measures.label_transitions(graph).numpy()
    # A single hue is read by its lightness, which does not need colour vision.
    image = axes.imshow(share, cmap="Blues", vmin=0, vmax=100)
    c = len(share)
    names = graph.class_names or tuple(str(i) for i in range(c))
    step = 1 if c <= 2 * _MAX_WITH_NUMBERS else 5
    axes.set_xticks(range(0, c, step), names[::step])
    axes.set_yticks(range(0, c, step), names[::step])
    if max(len(name) for name in names) > 3:
        axes.tick_params(axis="x", rotation=45)
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    axes.set_xlabel("label j at the target")
    axes.set_ylabel("label i at the source")
    if c <= _MAX_WITH_NUMBERS:
        for (i, j), value in zip(((i, j) for i in range(c) for j in range(c)), share.flat, strict=True):
            axes.text(j, i, f"{value:.0f}", ha="center", va="center", color="white" if value > 50 else "black")
    return image


def check_ending(path: str | PathLike[str]) -> str:
    """Return the image format that the ending of `path` stands for; raise if it is not `.png`, `.svg` or `.pdf`."""
    ending = Path(path).suffix.lower()
    if ending not in (".png", ".svg", ".pdf"):
        raise ConfigError(f"{path}: no picture can be written with the ending {ending!r}; use .png, .svg or .pdf")
    return ending[1:]


def save(graph: Graph, path: str | PathLike[str]) -> None:
    """Write the plot of `graph` to a `.png`, `.svg` or `.pdf` file."""
    from matplotlib.figure import Figure

    ending = check_ending(path)
    figure = Figure(figsize=(6.4, 5.4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    image = draw(axes, graph)
    axes.set_title(f"{graph.name}: label transitions P(j | i, edge)")
    figure.colorbar(image, ax=axes, label="share of the edges out of label i (%)")
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=ending)
