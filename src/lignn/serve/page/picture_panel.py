"""The neighbourhood of the present node as a picture; a click, or a button below it, walks to a node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from nicegui import events, ui

from lignn.serve.page import neighbourhood
from lignn.serve.page.parts import class_dot, heading, node_button

if TYPE_CHECKING:
    from lignn.serve.page.frame import Frame

_NOTHING: dict[str, Any] = {"id": "", "nodes": [], "edges": [], "undirected": True, "truncated": False}
_BUTTONS = 12


class PicturePanel:
    """The panel of the neighbourhood.

    Args:
        frame: the page.
        walk: goes to a node.
        redo: shows the node with another number of hops.
    """

    def __init__(
        self, frame: Frame, walk: Callable[[str], Awaitable[None]], redo: Callable[[], Awaitable[None]]
    ) -> None:
        self._frame, self._walk, self._redo = frame, walk, redo
        self.hops = 1
        self.around: Mapping[str, Any] = _NOTHING
        self.why: Mapping[str, float] = {}

    def build(self) -> None:
        """Make the elements."""
        with ui.element("section").classes("card picture"):
            with ui.row().classes("tool-row spread"):
                heading("Neighbourhood")
                ui.toggle({1: "1 hop", 2: "2 hops"}, value=1, on_change=self._change_hops).props("dense no-caps")
            self._chart = ui.echart(
                neighbourhood.draw(_NOTHING, (), why={}), on_point_click=self._clicked, renderer="canvas"
            ).classes("graph-chart")
            self._legend = ui.element("div").classes("legend")
            self._buttons = ui.element("div").classes("chips")

    @property
    def nodes(self) -> list[str]:
        """Ids of the nodes in view."""
        return [record["id"] for record in self.around["nodes"]]

    def clear(self) -> None:
        """Show no node."""
        self.around, self.why = _NOTHING, {}
        self.draw()

    def draw(self, blinking: frozenset[str] = frozenset()) -> None:
        """Draw what is around, and the reasons."""
        names, dark = self._frame.desk.state.class_names, self._frame.dark
        option = neighbourhood.draw(self.around, names, why=self.why, blinking=blinking, dark=dark)
        self._chart.options.clear()
        self._chart.options.update(option)
        self._chart.update()
        self._legend.clear()
        with self._legend:
            for name in dict.fromkeys(neighbourhood.class_of(record, names) for record in self.around["nodes"]):
                if name is not None:
                    class_dot(names.index(name), dark)
                    ui.label(name)
            for name, line in neighbourhood.edge_types(self.around).items():
                ui.element("span").classes("line").style(f"border-top-style:{line}").props('aria-hidden="true"')
                ui.label(name)
            more = "; more nodes are near" if self.around["truncated"] else ""
            ui.label(f"disc: predicted, faint: unsure, ring: given, dashed red: why{more}").classes("quiet")
        self._buttons.clear()
        with self._buttons:
            for node in self.nodes[1 : _BUTTONS + 1]:
                node_button(node, self._walk)

    async def _clicked(self, event: events.EChartPointClickEventArguments) -> None:
        if event.data_type == "node":
            await self._walk(event.name)

    async def _change_hops(self, event: events.ValueChangeEventArguments) -> None:
        self.hops = event.value
        await self._redo()
