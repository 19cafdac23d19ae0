"""The palette of all pictures, and their files.

The colours are those of Okabe and Ito, which stay distinct without full colour vision; their yellow, too light for
lines on white, is replaced by olive.
"""

from __future__ import annotations

import io

import matplotlib
from matplotlib.figure import Figure

BLUE, VERMILION, GREEN, PURPLE, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"
SKY_BLUE, BLACK, OLIVE, GREY = "#56B4E9", "#000000", "#8C8C00", "#7F7F7F"

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY_BLUE, BLACK, OLIVE)
"""Colours of lines, in order."""
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Markers of lines, in order."""


def rendered(figure: Figure, file_format: str) -> bytes:
    """Return the content of the figure's file; it has no date and no random ids."""
    buffer = io.BytesIO()
    metadata = {"Date": None} if file_format == "svg" else {"Software": None}
    with matplotlib.rc_context({"svg.hashsalt": "lignn"}):
        figure.savefig(buffer, format=file_format, dpi=150, metadata=metadata)
    return buffer.getvalue()
