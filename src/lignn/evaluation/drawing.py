"""Colours and marks of lines, and the files of pictures."""

from __future__ import annotations

import io

import matplotlib
from matplotlib.figure import Figure

from lignn.notebook import BLACK, BLUE, GREEN, GREY, OLIVE, ORANGE, PURPLE, SKY_BLUE, VERMILION

__all__ = ["BLACK", "BLUE", "COLOURS", "GREEN", "GREY", "MARKS", "OLIVE", "ORANGE", "PURPLE", "SKY_BLUE", "VERMILION"]
__all__ += ["rendered"]

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
