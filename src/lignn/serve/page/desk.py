"""The work of one person: a queue of nodes, the present one, labels given, undone and skipped."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Literal

import numpy as np

from lignn.errors import LignnError
from lignn.serve import insight
from lignn.serve.engine import Outcome, Request
from lignn.serve.service import Service, label_changes
from lignn.serve.state import State

Mode = Literal["suggest", "unsure", "contradict"]
MODES: dict[Mode, str] = {
    "suggest": "whose label helps most",
    "unsure": "least confident",
    "contradict": "given otherwise than predicted",
}
KEYS = "123456789abcdefghijklmnopqrtvwxyz"
"""One key a class; `s` and `u` have other meanings."""
QUEUE = 12
_FRESH = 5
"""Labels after which suggestions are computed again."""
_MOST_UNDO = 200
_MOST_FOUND = 8


@dataclass(frozen=True)
class Done:
    """A label that was given here, and what it changed.

    Attributes:
        node: whose label.
        old: the label before.
        new: the label given.
        changed: ids of the nodes whose prediction is another one since.
    """

    node: str
    old: Any
    new: Any
    changed: frozenset[str] = field(repr=False)


class Desk:
    """One person's queue and present node.

    Args:
        service: the service.
        crew: shared with other desks.
        key: name of the desk that no other has.
    """

    def __init__(self, service: Service, crew: Crew, key: str) -> None:
        self.service, self.key, self.name = service, key, "anonymous"
        self.mode: Mode = "suggest"
        self.queue: list[str] = []
        self.current: str | None = None
        self.done: deque[Done] = deque(maxlen=_MOST_UNDO)
        self.count = 0
        self._crew, self._skipped = crew, set[str]()
        self._since = 0
        self._busy = asyncio.Lock()

    @property
    def state(self) -> State:
        """The present state of the service."""
        return self.service.state

    async def refill(self) -> None:
        """Compute the queue anew."""
        state, mode = self.state, self.mode
        numbers = await self.service.compute(_candidates, state, mode, QUEUE + len(self._skipped))
        self.queue = [state.ids[number] for number in numbers if state.ids[number] not in self._skipped]
        self._since = 0

    async def advance(self) -> None:
        """Go to the next node of the queue that nobody else works on."""
        self.queue = [node for node in self.queue if node != self.current and self._wants(node)]
        if not self.queue or self._since >= _FRESH:
            await self.refill()
            self.queue = [node for node in self.queue if node != self.current and self._wants(node)]
        self.current = self._crew.take(self.key, self.queue)
        self.queue = [node for node in self.queue if node != self.current]

    def _wants(self, node: str) -> bool:
        """Return whether a node is still there and belongs into the queue."""
        if node not in self.state.numbers or node in self._skipped:
            return False
        return (self.state.label(node) is None) == (self.mode != "contradict")

    async def choose(self, mode: Mode) -> None:
        """Change the queue, and go to its first node."""
        self.mode, self.queue = mode, []
        self._skipped.clear()
        await self.refill()
        await self.advance()

    def go(self, node: str) -> None:
        """Look at a node."""
        self.state.number(node)
        self.current = node
        self._crew.leave(self.key)
        self._crew.hold(self.key, node)

    async def skip(self) -> None:
        """Leave the present node for later."""
        if self.current is not None:
            self._skipped.add(self.current)
        await self.advance()

    async def label(self, label: Any, new_class: bool = False) -> Done | None:
        """Give the present node a label and go on; one at a time, so that quick keys label one node each."""
        async with self._busy:
            node = self.current
            if node is None:
                return None
            done = self._note(node, await self._change(node, label, new_class))
            if done is not None:
                self.done.append(done)
                self.count += 1
            self._since += 1
            await self.advance()
            return done

    async def undo(self) -> Done | None:
        """Take the last label given here back, and look at its node again."""
        async with self._busy:
            while self.done:
                last = self.done.pop()
                if last.node not in self.state.numbers or self.state.label(last.node) != last.new:
                    continue  # somebody has changed it since
                done = self._note(last.node, await self._change(last.node, last.old, True))
                self.count -= 1
                self.go(last.node)
                return done
            return None

    async def _change(self, node: str, label: Any, new_class: bool) -> Outcome:
        if self.service.policy.read_only:
            raise LignnError("the service is read-only")
        return await self.service.change(Request(label_changes([(node, label)]), self.name, None, new_class))

    def _note(self, node: str, outcome: Outcome) -> Done | None:
        if not outcome.made:
            return None
        changed = outcome.state.changed_since(outcome.before)
        ids = frozenset(outcome.state.ids[number] for number in changed.tolist())
        return Done(node, outcome.made[0].old, outcome.made[0].new, ids)

    def find(self, text: str) -> list[str]:
        """Return ids that are, begin with, or contain a text."""
        state = self.state
        exact = [text] if text in state.numbers else []
        lower = text.casefold()
        begin: list[str] = []
        inside: list[str] = []
        for node in state.ids:
            place = node.casefold().find(lower)
            if place == 0:
                begin.append(node)
            elif place > 0 and len(inside) < _MOST_FOUND:
                inside.append(node)
            if len(begin) >= _MOST_FOUND:
                break
        return list(dict.fromkeys([*exact, *begin, *inside]))[:_MOST_FOUND]

    def leave(self) -> None:
        """Give the present node back."""
        self._crew.leave(self.key)


def _candidates(state: State, mode: Mode, count: int) -> list[int]:
    if mode == "unsure" and state.fitted is not None:
        return insight.least_confident(state, count)
    if mode == "contradict":
        return insight.contradicting(state, count)
    return insight.suggestions(state, min(count, insight.MOST_SUGGESTIONS))


def counts(state: State) -> dict[str, int]:
    """Return how many labels each class has."""
    onehot = np.asarray(state.draft.labels.onehot.sum(0).cpu())
    found = {name: int(count) for name, count in zip(state.classes.names, onehot, strict=True)}
    for label in state.waiting.values():
        for name in [label] if isinstance(label, str) else label:
            found[name] = found.get(name, 0) + 1
    return found


LEASE_SECONDS = 120.0
"""A node is kept for a person for so long; then it may be another's."""


class Crew:
    """Nodes that are being looked at, shared by all pages of a service; used in the event loop only."""

    def __init__(self) -> None:
        self._leases: dict[str, tuple[str, float]] = {}

    def take(self, desk: str, nodes: Iterable[str]) -> str | None:
        """Return the first of `nodes` that nobody else has, and keep it for a desk; its last one is given back."""
        self.leave(desk)
        for node in nodes:
            holder, until = self._leases.get(node, (desk, 0.0))
            if holder == desk or until < monotonic():
                self.hold(desk, node)
                return node
        return None

    def hold(self, desk: str, node: str) -> None:
        """Keep a node for a desk that looks at it."""
        self._leases[node] = (desk, monotonic() + LEASE_SECONDS)

    def leave(self, desk: str) -> None:
        """Give back what a desk has."""
        self._leases = {node: lease for node, lease in self._leases.items() if lease[0] != desk}
