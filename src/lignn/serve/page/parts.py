"""Small elements that views share, and features and changes in words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from nicegui import ui

from lignn.classifier import edits
from lignn.serve.page import pictures
from lignn.serve.state import State


def heading(text: str) -> None:
    """Add the title of a part."""
    ui.label(text).classes("part-title").props('role="heading" aria-level="3"')


def class_dot(number: int | None, dark: bool) -> None:
    """Add the colour and shape of a class; its name stands beside it."""
    fill = "transparent" if number is None else pictures.colour(number, dark)
    shape = "circle" if number is None else pictures.symbol(number)
    ui.element("span").classes(f"dot dot-{shape}").style(f"background:{fill}").props('aria-hidden="true"')


def button(text: str, do: Callable[[], Any], *, icon: str | None = None, main: bool = False) -> ui.button:
    """Add a button in the colours of the page, which have contrast in light and dark."""
    made = ui.button(text, on_click=do, icon=icon, color="primary" if main else None)
    return made.props("dense no-caps unelevated" if main else "dense no-caps outline")


def node_button(node: str, go: Callable[[str], Awaitable[None]]) -> None:
    """Add a button that goes to a node."""
    ui.button(node, on_click=lambda: go(node), color=None).props("flat dense no-caps").classes("node-button")


MOST_FEATURES = 12


def features(state: State, number: int) -> list[tuple[str, str, str]]:
    """Return name, value and a comparison with other nodes of the most telling features of a node."""
    graph = state.graph
    if graph.table is not None:
        return [_cell(name, graph.table[name], number) for name in graph.table.column_names[:MOST_FEATURES]]
    if graph.x is None:
        return []
    names = graph.feature_names or tuple(f"feature {i}" for i in range(graph.num_features))
    row = edits.feature_row(graph, number)
    if sp.issparse(graph.x):
        x: Any = graph.x
        columns = np.flatnonzero(row)
        columns = columns[np.argsort(-row[columns], kind="stable")][:MOST_FEATURES]
        shares = [float((x[:, [column]] != 0).sum()) / graph.num_nodes for column in columns]
        return [
            (names[c], f"{row[c]:.3g}", f"{share:.0%} of the nodes have it")
            for c, share in zip(columns, shares, strict=True)
        ]
    dense = np.asarray(graph.x)
    below = (dense < row).mean(0)
    columns = np.argsort(-np.abs(below - 0.5), kind="stable")[:MOST_FEATURES]
    return [(names[c], f"{row[c]:.3g}", _rank(float(below[c]))) for c in sorted(columns)]


def _cell(name: str, column: pa.ChunkedArray, number: int) -> tuple[str, str, str]:
    """Return name, value and comparison of a cell of a table; only numbers are compared."""
    value = column[number].as_py()
    if value is None:
        return name, "missing", ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return name, str(value), ""
    return name, f"{value:.3g}", _rank(pc.mean(pc.less(column, value)).as_py())


def _rank(below: float) -> str:
    if below >= 0.5:
        return f"more than {below:.0%} of the nodes"
    return f"less than {1 - below:.0%} of the nodes" if below < 0.25 else "about the middle"


def several(label: Sequence[str]) -> str:
    """Return the classes of a node that may have several."""
    return ", ".join(label) or "none of the classes"


def told(label: str, multilabel: bool) -> str:
    """Return a label of a prediction, whose classes are joined by `|` where a node may have several."""
    return several([name for name in label.split("|") if name]) if multilabel else label


def change(before: Any, after: Any) -> str:
    """Return a change of a label in words."""
    old, new = (several(value) if isinstance(value, list) else value for value in (before, after))
    if new is None:
        return f"withdrew {old}"
    return f"gave {new}" if old is None else f"changed {old} to {new}"
