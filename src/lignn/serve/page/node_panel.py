"""The present node: prediction with bars, buttons to label it, features in words, why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nicegui import ui

from lignn.classifier.explain import Contribution
from lignn.serve.page import parts, pictures
from lignn.serve.page.desk import KEYS
from lignn.serve.page.parts import button, class_dot, heading, node_button
from lignn.serve.state import State

if TYPE_CHECKING:
    from lignn.serve.page.frame import Frame

_BARS = 8


class NodePanel:
    """The panel of the present node.

    Args:
        frame: the page.
        walk: goes to a node.
        press: takes the number of a class.
        make: labels with a class that was typed.
    """

    def __init__(
        self,
        frame: Frame,
        walk: Callable[[str], Awaitable[None]],
        press: Callable[[int], Awaitable[None]],
        make: Callable[[str], Awaitable[None]],
    ) -> None:
        self._frame, self._walk, self._press, self._make = frame, walk, press, make

    def build(self, save: Callable[[], Any], undo: Callable[[], Any], skip: Callable[[], Any]) -> None:
        """Make the elements; the arguments are what the buttons do."""
        self._save = save
        with ui.element("section").classes("card node"):
            self._node = ui.element("div").classes("node-card")
            self._told = ui.label("").classes("told").props('role="status" aria-live="polite"')
            self._buttons = ui.element("div").classes("label-buttons")
            if not self._frame.service.policy.read_only:
                with ui.row().classes("tool-row"):
                    button("Undo (u)", undo)
                    button("Skip (s)", skip)
                    self._new = ui.input(placeholder="New class ( + )").props(
                        'dense outlined maxlength=500 aria-label="New class"'
                    )
                    self._new.classes("new-class").on("keydown.enter", self._typed)
                    self._new.on("keydown.escape", js_handler="(e) => e.target.blur()")
                    button("Label", self._typed)
            self._features = ui.element("div")
            self._reasons = ui.element("div")

    def focus(self) -> None:
        """Put the cursor into the field of a new class."""
        if not self._frame.service.policy.read_only:
            self._new.run_method("focus")

    def tell(self, text: str) -> None:
        """Say what the last label did."""
        self._told.set_text(text)

    def show(self, node: str, state: State, chosen: set[str]) -> None:
        """Show the prediction of a node, and the buttons to label it."""
        record = state.record(state.numbers[node])
        self._node.clear()
        with self._node:
            ui.label(node).classes("node-id").props('role="heading" aria-level="2"')
            ui.label(_told(record, state.classes.multilabel))
            best = sorted(record["probabilities"].items(), key=lambda item: -item[1])[:_BARS]
            for name, share in best:
                self._bar(state.class_names.index(name), name, share)
        self._show_buttons(state, chosen)

    def nothing(self) -> None:
        """Say that the queue is empty."""
        for part in (self._node, self._buttons, self._features, self._reasons):
            part.clear()
        with self._node:
            ui.label("Nothing is left in this queue. Choose another one, or search for a node.")

    def show_features(self, told: Sequence[tuple[str, str, str]]) -> None:
        """Show features: name, value, comparison with other nodes."""
        self._features.clear()
        if not told:
            return
        with self._features:
            heading("Features")
            with ui.element("div").classes("feature-list"):
                for name, value, rank in told:
                    ui.label(name)
                    ui.label(value).classes("number")
                    ui.label(rank).classes("quiet")

    def show_reasons(self, found: Sequence[Contribution], state: State, otherwise: str = "") -> None:
        """Show the labels that count most."""
        self._reasons.clear()
        if state.fitted is None:
            return
        with self._reasons:
            heading("Why: the labels that count most")
            if found:
                ui.label("How much knowing each label adds to the predicted class.").classes("quiet")
            for one in found:
                with ui.row().classes("why-row"):
                    ui.label(f"{one.gain:+.3f}").classes("number")
                    names = state.class_names
                    class_dot(names.index(one.label) if one.label in names else None, self._frame.dark)
                    ui.label(parts.told(one.label, state.classes.multilabel))
                    node_button(one.id, self._walk)
            if not found:
                ui.label(otherwise or "No label counts: none is near.").classes("quiet")

    def _bar(self, number: int, name: str, share: float) -> None:
        with ui.element("div").classes("bar-row"):
            class_dot(number, self._frame.dark)
            ui.label(name).classes("bar-name")
            with ui.element("div").classes("bar-track"):
                fill = pictures.colour(number, self._frame.dark)
                ui.element("div").classes("bar-fill").style(f"width:{100 * share:.1f}%;background:{fill}")
            ui.label(f"{share:.0%}").classes("number")

    def _show_buttons(self, state: State, chosen: set[str]) -> None:
        self._buttons.clear()
        if self._frame.service.policy.read_only:
            return
        with self._buttons:
            for number, name in enumerate(state.class_names):
                pressed = name in chosen
                look = "unelevated" if pressed else "outline"
                with ui.button(
                    on_click=lambda _, to=number: self._press(to), color="primary" if pressed else None
                ).props(f"no-caps {look} aria-pressed={str(pressed).lower()}"):
                    if number < len(KEYS):
                        ui.label(KEYS[number]).classes("key")
                    class_dot(number, self._frame.dark)
                    ui.label(name)
            if state.classes.multilabel:
                button("Save (Enter)", self._save, main=True)
            if not state.class_names:
                ui.label("Type the name of the first class below ( + ).").classes("quiet")

    async def _typed(self) -> None:
        name = (self._new.value or "").strip()
        if name:
            self._new.set_value("")
            self._new.run_method("blur")
            await self._make(name)


def _told(record: Mapping[str, Any], multilabel: bool) -> str:
    """Return prediction, evidence and given label of a node in words."""
    label, given = (None if one is None else parts.told(one, multilabel) for one in (record["label"], record["given"]))
    if label is None:
        return f"Given: {given}." if given else "No model yet: label three nodes of each of two classes."
    evidence = "known labels reach it" if record["evidence"] else "no known label reaches it, features alone"
    found = f"Predicted: {label}, confidence {record['confidence']:.0%}; {evidence}."
    return f"{found} Given: {given}." if given else found
