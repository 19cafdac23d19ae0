"""Small elements that views share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nicegui import ui

from lignn.serve.page import pictures


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
