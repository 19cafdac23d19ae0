"""The view that labels: queue, present node and neighbourhood together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from nicegui import ui

from lignn.errors import InputError
from lignn.serve import insight
from lignn.serve.page import parts
from lignn.serve.page.desk import Desk, Done, Mode
from lignn.serve.page.node_panel import NodePanel
from lignn.serve.page.picture_panel import PicturePanel
from lignn.serve.page.queue_panel import QueuePanel

if TYPE_CHECKING:
    from lignn.serve.page.frame import Frame

_WHY = 5
"""Labels that are shown as reasons."""
_LEAST = 5e-4
"""Gain below which a label is no reason."""
_AROUND = 60
"""Nodes in the picture."""
_BLINK_SECONDS = 1.5
_NAMED = 5
"""Changed nodes that are named."""


class LabelView:
    """What a person sees who labels.

    Args:
        frame: the page.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._chosen: set[str] = set()
        self._shown: str | None = None
        self.queue = QueuePanel(frame, self.walk, self._choose)
        self.node = NodePanel(frame, self.walk, self._guarded(self.press), self._guarded(self._make))
        self.picture = PicturePanel(frame, self.walk, self._guarded(self.show))

    @property
    def _desk(self) -> Desk:
        return self._frame.desk

    def _guarded(self, work: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., Coroutine[Any, Any, None]]:
        async def guarded(*arguments: Any) -> None:
            await self._frame.guarded(work(*arguments))

        return guarded

    def build(self) -> None:
        """Make the elements."""
        with ui.element("div").classes("label-grid"):
            self.queue.build()
            self.node.build(self._guarded(self.save), self._guarded(self.undo), self._guarded(self.skip))
            self.picture.build()

    async def start(self) -> None:
        """Show the first node."""
        await self._desk.refill()
        await self._desk.advance()
        await self.show()
        await self.queue.score()

    async def press(self, number: int) -> None:
        """Take the key of a class: label with it, or choose it where a node may have several classes."""
        state = self._desk.state
        if number >= len(state.class_names):
            return
        name = state.class_names[number]
        if state.classes.multilabel:
            self._chosen ^= {name}
            self._show_node()
        else:
            await self.label(name)

    async def save(self) -> None:
        """Label with the chosen classes, where a node may have several."""
        if self._desk.state.classes.multilabel:
            await self.label(sorted(self._chosen))

    async def _make(self, name: str) -> None:
        several = self._desk.state.classes.multilabel
        await self.label([*sorted(self._chosen), name] if several else name, new_class=True)

    async def label(self, label: Any, new_class: bool = False) -> None:
        """Label the present node, and show the next one."""
        done = await self._desk.label(label, new_class)
        self._shown = None
        await self._after(done, "")

    async def undo(self) -> None:
        """Take the last label back."""
        done = await self._desk.undo()
        if done is None:
            self.node.tell("There is nothing to undo.")
        else:
            await self._after(done, "undone, ")

    async def skip(self) -> None:
        """Leave the present node for later."""
        await self._desk.skip()
        await self.show()

    async def walk(self, node: str) -> None:
        """Go to a node."""

        async def work() -> None:
            self._desk.go(node)
            await self.show()

        await self._frame.guarded(work())

    async def _choose(self, mode: Mode) -> None:
        async def work() -> None:
            await self._desk.choose(mode)
            await self.show()

        await self._frame.guarded(work())

    async def _after(self, done: Done | None, what: str) -> None:
        """Show the next node, and say what a label did."""
        changed = frozenset() if done is None else done.changed
        if done is not None:
            count = "1 prediction" if len(changed) == 1 else f"{len(changed)} predictions"
            told = f"{done.node}: {what}{parts.change(done.old, done.new)}. {count} changed"
            self.node.tell(f"{told}.")
        await self.show(changed, "" if done is None else told)
        await self.queue.score()

    async def show(self, blinking: frozenset[str] = frozenset(), told: str = "") -> None:
        """Show the present node: first what is at hand, then its neighbourhood, then why."""
        desk = self._desk
        node, state, service = desk.current, desk.state, desk.service
        if node != self._shown:
            self._chosen, self._shown = set(), node
        self.queue.show()
        if node is None or node not in state.numbers:
            self.node.nothing()
            self.picture.clear()
            return
        self._show_node()
        neighbours = await service.neighbours(state)
        hops = self.picture.hops
        around = await service.compute(insight.neighbourhood, state, neighbours, node, hops, _AROUND)
        features = await service.compute(parts.features, state, state.numbers[node])
        if desk.current != node:
            return
        self.picture.around, self.picture.why = around, {}
        self.node.show_features(features)
        seen = [record["id"] for record in around["nodes"] if record["id"] in blinking]
        if seen:
            more = " …" if len(seen) > _NAMED else ""
            self.node.tell(f"{told}, in view: {', '.join(seen[:_NAMED])}{more}.")
        await self._explain(node)
        if desk.current == node:
            self.picture.draw(blinking)
            if seen:
                await asyncio.sleep(_BLINK_SECONDS)
                self.picture.draw()

    def _show_node(self) -> None:
        node, state = self._desk.current, self._desk.state
        if node is not None and node in state.numbers:
            self.node.show(node, state, self._chosen)

    async def _explain(self, node: str) -> None:
        """Show which labels count most, and add them to the picture."""
        state = self._desk.state
        self.node.show_reasons((), state, "…")
        if state.fitted is None or node not in state.numbers:
            return
        try:
            found = await self._desk.service.compute(insight.explanation, state, state.numbers[node], _WHY)
        except InputError as error:
            self.node.show_reasons((), state, str(error))
            return
        if self._desk.current != node:
            return
        reasons = [one for one in found.contributions if one.id in state.numbers and abs(one.gain) >= _LEAST]
        picture = self.picture
        picture.why = {one.id: one.gain for one in reasons if one.id != node}
        extra = [state.record(state.numbers[one]) for one in picture.why if one not in picture.nodes]
        picture.around = {**picture.around, "nodes": [*picture.around["nodes"], *extra]}
        self.node.show_reasons(reasons, state)

    def redraw(self) -> None:
        """Draw everything again, in other colours."""
        self.queue.show()
        self.queue.show_score()
        self._show_node()
        self.picture.draw()

    def follow(self) -> None:
        """Show what anybody has changed."""
        self.queue.show()
        self._show_node()
