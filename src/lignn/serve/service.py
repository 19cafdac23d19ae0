"""The parts of a running service, and what routes and page share."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool

from lignn.classifier.certificate import Certificate
from lignn.serve import insight
from lignn.serve.changes import feature_columns
from lignn.serve.engine import Engine, Outcome, OverloadedError, Request
from lignn.serve.journal import Change
from lignn.serve.opening import Place
from lignn.serve.security import Policy
from lignn.serve.state import State
from lignn.serve.training import Training

T = TypeVar("T")

MOST_COMPUTING = 2
"""Explanations and the like that are computed at the same time."""
MOST_WAITING = 64
MOST_SCORES = 1000
SHOWN = 100
"""Nodes that an answer to a change tells of."""


@dataclass(frozen=True)
class Score:
    """A validation score in the course of labelling.

    Attributes:
        version: of the state.
        labels: number of labels given by then.
        score: see `insight.Quality`.
    """

    version: int
    labels: int
    score: float


class Service:
    """Engine, training, and caches of what is costly to compute.

    Args:
        place: model or graph, and journal.
        policy: what is allowed.
    """

    def __init__(self, place: Place, policy: Policy) -> None:
        self.policy = policy
        self.engine = Engine(place, self._follow)
        self.training = Training(self.engine)
        self.scores: deque[Score] = deque(maxlen=MOST_SCORES)
        self.listeners: set[Callable[[Outcome], None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._computing: asyncio.Semaphore | None = None
        self._waiting = 0
        self._cache: dict[str, tuple[Any, Any]] = {}

    def start(self) -> None:
        """Begin to open the model; to be called in the event loop."""
        self._loop, self._computing = asyncio.get_running_loop(), asyncio.Semaphore(MOST_COMPUTING)
        self.engine.start()
        self._first = self._loop.create_task(self._fit_if_due())

    async def _fit_if_due(self) -> None:
        """Begin to train if a graph, or the journal, has labels enough for that from the start."""
        await run_in_threadpool(self.engine.opened.wait)
        if self.engine.ready and not self.policy.read_only:
            self.training.start_if_due()

    async def stop(self) -> None:
        """Finish what waits."""
        await run_in_threadpool(self.training.close)
        await run_in_threadpool(self.engine.close)

    @property
    def state(self) -> State:
        """The present state."""
        return self.engine.state

    async def change(self, request: Request) -> Outcome:
        """Make changes; returns when they are on the disk and solved."""
        return await asyncio.wrap_future(self.engine.submit(request))

    def _follow(self, outcome: Outcome) -> None:
        """Tell the event loop of a new state; called by the solver's thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell, outcome)

    def _tell(self, outcome: Outcome) -> None:
        for listener in tuple(self.listeners):
            listener(outcome)
        if outcome.state.waiting and not self.policy.read_only:
            self.training.start_if_due()

    async def compute(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run something costly in a thread, few of them at the same time."""
        assert self._computing is not None
        if self._waiting >= MOST_WAITING:
            raise OverloadedError("too many explanations and overviews are being computed; try again in a second")
        self._waiting += 1
        try:
            async with self._computing:
                return await run_in_threadpool(function, *arguments)
        finally:
            self._waiting -= 1

    async def once(self, name: str, of: Any, function: Callable[..., T], *arguments: Any) -> T:
        """Return `function(*arguments)`, computed once for each object `of`; the last one is kept."""
        kept = self._cache.get(name)
        if kept is not None and kept[0] is of:
            return kept[1]
        value = await self.compute(function, *arguments)
        self._cache[name] = of, value
        return value

    async def neighbours(self, state: State) -> insight.Neighbours:
        """Return the edges by their ends."""
        return await self.once("neighbours", state.graph, insight.Neighbours, state.graph)

    async def certificate(self, state: State) -> Certificate:
        """Return the certificate of a state."""
        return await self.once("certificate", state.fitted, insight.certificate, state)

    async def quality(self, state: State) -> insight.Quality | None:
        """Return the quality on held-out labels, and keep the score for its course over time.

        A score of before a training on these labels stays the same with further labels: it is kept once.
        """
        found = await self.once("quality", state.fitted, insight.quality, state)
        if found is None:
            return None
        last = self.scores[-1] if self.scores else None
        if last is not None and (last.version >= state.version or (found.seen_since and found.score == last.score)):
            return found
        labels = int(state.draft.labels.mask.sum()) + len(state.waiting)
        self.scores.append(Score(state.version, labels, found.score))
        return found

    async def facts(self) -> dict[str, Any]:
        """Return what the service serves."""
        state, engine = self.state, self.engine
        quality = await self.quality(state)
        measured = ("nodes", "score", "roc_auc", "seen_since")
        graph, fitted = state.graph, state.fitted
        values = {} if fitted is None else {name: _plain(value) for name, value in fitted.spec.values.items()}
        calibration = None if fitted is None or fitted.calibration is None else asdict(fitted.calibration)
        return {
            "version": state.version,
            "model": None if fitted is None else {"method": fitted.spec.name, "settings": values},
            "replaced": engine.place.identity() != engine.identity,
            "graph": {
                "name": graph.name,
                "nodes": graph.num_nodes,
                "edges": graph.num_edges,
                "features": len(feature_columns(graph)) if graph.table is not None else graph.num_features,
                "feature_names": list(feature_columns(graph)) if graph.table is not None or graph.feature_names else [],
                "undirected": graph.is_undirected,
                "edge_types": list(graph.edge_types or ()),
                "weights": graph.edge_weight is not None,
                "edge_columns": [] if graph.edge_table is None else graph.edge_table.rows.column_names,
            },
            "classes": list(state.class_names),
            "new_classes": list(state.new_classes),
            "multilabel": state.classes.multilabel,
            "labels": int(state.draft.labels.mask.sum()) + len(state.waiting),
            "calibration": calibration,
            "held_out": None if quality is None else {name: getattr(quality, name) for name in measured},
            "skipped": list(engine.skipped[:SHOWN]),
            "read_only": self.policy.read_only,
        }


def told(outcome: Outcome, nodes: Sequence[str]) -> dict[str, Any]:
    """Return the answer to a change of some nodes."""
    state = outcome.state
    changed = state.changed_since(outcome.before)
    shown = [state.numbers[node] for node in nodes[:SHOWN] if node in state.numbers]
    return {
        "version": state.version,
        "changes": len(outcome.made),
        "changed": len(changed),
        "changed_ids": [state.ids[number] for number in changed[:SHOWN]],
        "predictions": [state.record(number) for number in shown],
    }


def label_changes(labels: Sequence[tuple[str, Any]]) -> list[Change]:
    """Return the changes of labels by id; None removes one."""
    return [Change("label", node, label) for node, label in labels]


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)
