"""The frame of the page: header, tabs, keys, the name of the person, help."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

from nicegui import Client, background_tasks, events, ui

from lignn.errors import LignnError
from lignn.serve.engine import Outcome
from lignn.serve.page.desk import KEYS, Crew, Desk
from lignn.serve.page.label_view import LabelView
from lignn.serve.page.overview import Overview
from lignn.serve.page.parts import button
from lignn.serve.page.people import People
from lignn.serve.service import Service

_HELP = (
    ("1 … 9, letters", "give the label beside the key, and go on"),
    ("u", "undo the last label"),
    ("s", "skip this node"),
    ("/", "search by id"),
    ("+", "type a new class"),
    ("Enter", "save, where a node may have several classes"),
    ("?", "this help"),
)
_READY_SECONDS = 0.3
ANSWER_SECONDS = 60.0
"""A browser on a busy machine may take long to answer for the first time; a page that gave up would stay empty."""
_TRAINING_SECONDS = 1.0
_PRIMARY = "#2474AB"
"""Contrast of 5 with white, and of 3 with a dark background."""
_POSITIVE, _NEGATIVE = "#1B7F37", "#B3261E"
"""Notices, on which texts are white: contrast above 5."""


class Frame:
    """One browser's page.

    Args:
        service: the service.
        crew: who works on which node.
        client: the browser.
    """

    def __init__(self, service: Service, crew: Crew, client: Client) -> None:
        self.service, self.client = service, client
        self.desk = Desk(service, crew, client.id)
        self.dark = False
        self._status = service.training.status
        self.view = LabelView(self)
        self.overview = Overview(self)
        self.people = People(self)

    def build(self) -> None:
        """Make the elements."""
        ui.colors(primary=_PRIMARY, positive=_POSITIVE, negative=_NEGATIVE)
        self._dark = ui.dark_mode()
        self._dark.auto()
        with ui.header().classes("frame-header"):
            self._title = ui.label("lignn").classes("frame-title").props('role="heading" aria-level="1"')
            with ui.tabs(on_change=self._changed_tab).classes("frame-tabs").props("dense no-caps") as self._tabs:
                for name in ("Label", "Overview", "People"):
                    ui.tab(name)
            with ui.row().classes("frame-tools"):
                self._training = ui.label("").classes("frame-training").props('role="status"')
                self._name = ui.button("", on_click=self.ask_name, icon="person", color=None).props(
                    'flat dense no-caps aria-label="Your name"'
                )
                ui.button(icon="contrast", on_click=self._toggle_dark, color=None).props(
                    'flat dense round aria-label="Light or dark"'
                )
                ui.button(icon="help_outline", on_click=self._show_help, color=None).props(
                    'flat dense round aria-label="Help"'
                )
        # A panel that is kept while it is hidden has no size, for which ECharts cannot draw a graph.
        with ui.tab_panels(self._tabs, value="Label", animated=False, keep_alive=False).classes("frame-panels"):
            with ui.tab_panel("Label"):
                self.view.build()
            with ui.tab_panel("Overview"):
                self.overview.build()
            with ui.tab_panel("People"):
                self.people.build()
        with ui.dialog() as self._help, ui.card().classes("dialog"):
            ui.label("Keys").props('role="heading" aria-level="2"').classes("part-title")
            for key, meaning in _HELP:
                with ui.row().classes("help-row"):
                    ui.label(key).classes("key")
                    ui.label(meaning)
            button("Close", self._help.close)
        self._build_name_dialog()
        ui.timer(_TRAINING_SECONDS, self._follow_training)
        ui.keyboard(on_key=self._pressed, repeating=False, ignore=["input", "select", "textarea"])

    def _build_name_dialog(self) -> None:
        with ui.dialog().props("persistent") as self._naming, ui.card().classes("dialog"):
            ui.label("Who are you?").props('role="heading" aria-level="2"').classes("part-title")
            ui.label("Your name is kept with the labels that you give.")
            field = ui.input("Name").props("autofocus maxlength=100").classes("wide")

            async def take() -> None:
                await self._named(field.value or "anonymous")
                self._naming.close()

            field.on("keydown.enter", take)
            button("Begin", take, main=True)
        self._field = field

    async def open(self) -> None:
        """Fill the page once the browser is connected and the service is ready."""
        engine = self.service.engine
        while not engine.ready:
            self._title.set_text(engine.failure or "lignn: starting …")
            await asyncio.sleep(_READY_SECONDS)
        script = "[localStorage.getItem('lignn-name'), window.matchMedia('(prefers-color-scheme: dark)').matches]"
        name, self.dark = await self.client.run_javascript(f"return {script}", timeout=ANSWER_SECONDS)
        self._title.set_text(self.desk.state.graph.name)
        self.service.listeners.add(self._follow)
        if name:
            await self._named(name)
        elif not self.service.policy.read_only:
            self._naming.open()
        await self.guarded(self.view.start())

    def leave(self) -> None:
        """Give back what this page has."""
        self.service.listeners.discard(self._follow)
        self.desk.leave()

    async def _named(self, name: str) -> None:
        self.desk.name = " ".join(name.split())[:100] or "anonymous"
        self._name.set_text(self.desk.name)
        self.client.run_javascript(f"localStorage.setItem('lignn-name', {json.dumps(self.desk.name)})")

    def ask_name(self) -> None:
        """Ask for another name."""
        self._field.value = self.desk.name
        self._naming.open()

    def _show_help(self) -> None:
        self._help.open()

    async def _toggle_dark(self) -> None:
        self.dark = not self.dark
        self._dark.set_value(self.dark)
        self.view.redraw()
        if self._tabs.value == "Overview":
            await self.guarded(self.overview.refresh())

    async def _changed_tab(self) -> None:
        if self._tabs.value == "Overview":
            await self.guarded(self.overview.refresh())
        elif self._tabs.value == "People":
            await self.guarded(self.people.refresh())

    def _follow_training(self) -> None:
        """Say in every view that a model is being trained, since that may begin by itself; and why it failed."""
        status, before = self.service.training.status, self._status
        self._status = status
        share = status.epoch / status.epochs if status.epochs else 0
        self._training.set_text(f"training {share:.0%}" if status.state == "running" else "")
        if status.state == "failed" and before.state == "running":
            ui.notify(status.message, type="negative", multi_line=True, close_button="Close")

    def show_labels(self) -> None:
        """Go to the first tab."""
        self._tabs.set_value("Label")

    def _follow(self, outcome: Outcome) -> None:
        """Take notice of a new state, which anybody may have made."""
        with self.client:
            self.view.follow()
            replaced = outcome.before.fitted is not outcome.state.fitted and not outcome.made
            if replaced:
                ui.notify("A new model has taken over.", type="positive")
            if replaced or self._tabs.value == "People":
                background_tasks.create(self._changed_tab())

    async def guarded(self, work: Any) -> None:
        """Wait for some work; an error becomes a notice, and one that is a fault goes on to the log."""
        try:
            await work
        except LignnError as error:
            self._complain(str(error))
        except Exception as error:
            self._complain(f"The service has a fault, its log says more: {error!r}")
            raise

    def _complain(self, text: str) -> None:
        with self.client:
            ui.notify(text, type="negative", multi_line=True, close_button="Close")

    def _pressed(self, event: events.KeyEventArguments) -> Awaitable[None] | None:
        """Return what a key does. It is decided when the key arrives: a click behind it may go to another view."""
        held = event.modifiers
        if not event.action.keydown or held.ctrl or held.alt or held.meta or self._naming.value:
            return None
        key = str(event.key)
        if key == "?":
            self._help.open()
        elif self._tabs.value != "Label" or self._help.value:
            return None
        elif key in ("u", "s"):
            return self.guarded(self.view.undo() if key == "u" else self.view.skip())
        elif key in ("/", "+"):
            (self.view.queue if key == "/" else self.view.node).focus()
        elif key == "Enter":
            return self.guarded(self.view.save())
        elif key in KEYS:
            return self.guarded(self.view.press(KEYS.index(key)))
        return None
