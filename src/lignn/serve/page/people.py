"""The view of the people: who labelled what, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from lignn.serve.page import parts
from lignn.serve.page.parts import heading, node_button

if TYPE_CHECKING:
    from lignn.serve.page.frame import Frame

_SHOWN = 100


class People:
    """The third tab.

    Args:
        frame: the page.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def build(self) -> None:
        """Make the elements."""
        with ui.element("section").classes("card"):
            heading("Labels by person")
            self._counts = ui.element("div").classes("class-list")
        with ui.element("section").classes("card"):
            heading("The last labels")
            self._history = ui.element("div").classes("history")

    async def refresh(self) -> None:
        """Read the journal again."""
        service = self._frame.service
        journal = service.engine.journal
        counts = await service.compute(journal.counts)
        entries = await service.compute(lambda: journal.latest(_SHOWN))
        self._counts.clear()
        with self._counts:
            for who, count in counts.items():
                ui.element("span")
                ui.label(who)
                ui.label(str(count)).classes("number")
            if not counts:
                ui.label("Nobody has labelled yet.").classes("quiet")
        self._history.clear()
        with self._history:
            for entry in entries:
                ui.label(entry.time[:19].replace("T", " ")).classes("quiet")
                ui.label(entry.who)
                ui.label(parts.change(entry.change.old, entry.change.new))
                node_button(entry.change.key, self._go)

    async def _go(self, node: str) -> None:
        self._frame.show_labels()
        await self._frame.view.walk(node)
