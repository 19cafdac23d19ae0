"""The queue: which nodes come next, search, labels so far, the validation score over time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from nicegui import events, ui

from lignn.serve.page import pictures
from lignn.serve.page.desk import MODES, Desk, Mode, counts
from lignn.serve.page.parts import class_dot, heading, node_button

if TYPE_CHECKING:
    from lignn.serve.insight import Quality
    from lignn.serve.page.frame import Frame

_SHOWN = 8


class QueuePanel:
    """The panel of the queue.

    Args:
        frame: the page.
        walk: goes to a node.
        choose: changes the kind of queue.
    """

    def __init__(
        self, frame: Frame, walk: Callable[[str], Awaitable[None]], choose: Callable[[Mode], Awaitable[None]]
    ) -> None:
        self._frame, self._walk, self._choose = frame, walk, choose
        self._scoring = False
        self._quality: Quality | None = None

    @property
    def _desk(self) -> Desk:
        return self._frame.desk

    def build(self) -> None:
        """Make the elements."""
        with ui.element("section").classes("card queue"):
            heading("Next nodes")
            ui.select(
                dict(MODES),
                label="Which nodes come next",
                value="suggest",
                on_change=lambda event: self._choose(event.value),
            ).props("dense outlined options-dense").classes("wide")
            self._search = ui.input(placeholder="Search by id ( / )", on_change=self._find).props(
                'dense outlined clearable aria-label="Search by id"'
            )
            self._search.classes("wide search").on("keydown.enter", self._search_first)
            self._search.on("keydown.escape", js_handler="(e) => e.target.blur()")
            self._nodes = ui.element("div").classes("node-list")
            heading("Labels so far")
            self._counts = ui.element("div").classes("class-list")
            heading("Score on held-out labels")
            self._score = ui.label("").classes("quiet")
            # One chart for all scores: NiceGUI fails if one is removed before it is drawn, as quick keys may have it.
            self._course = ui.echart({}).classes("course-chart")
            self._course.set_visibility(False)

    def focus(self) -> None:
        """Put the cursor into the search."""
        self._search.run_method("focus")

    def show(self) -> None:
        """Show the next nodes and the labels so far."""
        if not self._search.value:
            self._list(
                [node for node in self._desk.queue[:_SHOWN] if node in self._desk.state.numbers], "Nothing is left."
            )
        state = self._desk.state
        self._counts.clear()
        with self._counts:
            for number, (name, count) in enumerate(counts(state).items()):
                class_dot(number, self._frame.dark)
                ui.label(name + (" (waits for a fit)" if name in state.new_classes else ""))
                ui.label(str(count)).classes("number")

    async def score(self) -> None:
        """Compute the score of the present state on held-out labels, unless that is under way."""
        if self._scoring:
            return
        self._scoring = True
        try:
            self._quality = await self._desk.service.quality(self._desk.state)
        finally:
            self._scoring = False
        self.show_score()

    def show_score(self) -> None:
        """Tell the score, and draw it over the labels."""
        scores = [(score.labels, score.score) for score in self._desk.service.scores]
        self._course.set_visibility(len(scores) > 1)
        if self._quality is None:
            self._score.set_text("No labels are held back for a score; Train on does it.")
            return
        self._score.set_text(f"{self._quality}.")
        self._course.options.clear()
        self._course.options.update(pictures.course(scores, self._frame.dark))
        self._course.update()

    def _list(self, nodes: list[str], otherwise: str) -> None:
        self._nodes.clear()
        with self._nodes:
            for node in nodes:
                node_button(node, self._walk)
            if not nodes:
                ui.label(otherwise).classes("quiet")

    def _find(self, event: events.ValueChangeEventArguments) -> None:
        if event.value:
            self._list(self._desk.find(event.value), "No id has this text.")
        else:
            self.show()

    async def _search_first(self) -> None:
        found = self._desk.find(self._search.value or "") if self._search.value else []
        if found:
            self._search.run_method("blur")
            self._search.set_value("")
            await self._walk(found[0])
