"""How values show themselves in a notebook: tables as HTML, axes to draw on, and the colours of all pictures.

The colours are those of Okabe and Ito, which stay distinct without full colour vision; their yellow, too light for
lines on white, is replaced by olive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, VERMILION, GREEN, PURPLE, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"
SKY_BLUE, BLACK, OLIVE, GREY = "#56B4E9", "#000000", "#8C8C00", "#7F7F7F"

CLASSES = (BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY_BLUE, OLIVE, BLACK)
"""Colours of classes, in order; the labelling page has the same."""


def table(header: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "", below: str = "") -> str:
    """Return a table as HTML, with all texts escaped."""
    head = "".join(f"<th>{escape(str(cell))}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    parts = [
        f"<caption>{escape(caption)}</caption>" if caption else "",
        f"<thead><tr>{head}</tr></thead>" if head else "",
    ]
    parts.append(f"<tbody>{body}</tbody>")
    return f"<table>{''.join(parts)}</table>" + (f"<p>{escape(below)}</p>" if below else "")


def paragraphs(text: str) -> str:
    """Return the lines of a text as HTML."""
    return "".join(f"<p>{escape(line)}</p>" for line in text.splitlines())


def axes(ax: Axes | None) -> Axes:
    """Return `ax`, or the axes of a new figure."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def colour(number: int) -> str:
    """Return the colour of a class."""
    return CLASSES[number % len(CLASSES)]
