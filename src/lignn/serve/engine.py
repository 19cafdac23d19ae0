"""The solver: one thread owns the equilibrium, applies changes in bursts, and publishes whole states.

A burst is checked, then solved and written to the journal at the same time. Its state is published, and its requests
are answered, after both. If either fails, the old state stays and the requests are told why.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any

from lignn.classifier.update import why_cold
from lignn.errors import ConflictError, InputError, LignnError
from lignn.serve.changes import Work
from lignn.serve.journal import Change, Entry, Journal
from lignn.serve.opening import Place
from lignn.serve.state import State

MOST_WAITING = 1000
"""Requests that may wait for the solver; more are refused."""


class OverloadedError(LignnError):
    """More changes than the solver can take."""


class StartingError(LignnError):
    """A service that is not ready yet."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of a request.

    Attributes:
        state: the state after it, and after the others of its burst.
        before: the state before.
        made: the changes that it made.
    """

    state: State
    before: State
    made: Sequence[Change]


@dataclass(frozen=True, eq=False)
class Request:
    """Changes by one person, all or none.

    Attributes:
        changes: in order.
        who: who wants them.
        expected: refuse them if one of the things was changed after this version.
        new_classes: whether labels may make new classes.
        answer: gets the outcome.
    """

    changes: Sequence[Change]
    who: str
    expected: int | None = None
    new_classes: bool = False
    answer: Future[Outcome] = field(default_factory=Future)


@dataclass
class Counts:
    """What the engine has done so far.

    Attributes:
        solves: number of solves.
        changes: number of changes made.
        seconds: of the last burst.
    """

    solves: int = 0
    changes: int = 0
    seconds: float = 0.0


class Engine:
    """The thread that solves, and the present state.

    Args:
        place: model or graph, and journal.
        follow: called with each outcome, from the solver's thread.
    """

    def __init__(self, place: Place, follow: Callable[[Outcome], None] | None = None) -> None:
        self.place, self.counts = place, Counts()
        self.parameters: Mapping[str, Any] = {}
        self.skipped: tuple[str, ...] = ()
        self.identity: str | None = None
        self.failure: str | None = None
        self._follow = follow
        self._state: State | None = None
        self._journal: Journal | None = None
        self._touched: dict[tuple[str, str], int] = {}
        self._queue: SimpleQueue[Request | Callable[[], None] | None] = SimpleQueue()
        self.opened = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lignn-solver", daemon=True)
        self._writer = ThreadPoolExecutor(1, "lignn-journal")

    def start(self) -> None:
        """Start the thread, which first opens the model and replays the journal."""
        self._thread.start()

    def open(self) -> None:
        """Open the model and replay the journal; called by the thread, or by commands that need no thread."""
        self.identity = self.place.identity()
        state, self.parameters = self.place.open()
        self._journal = Journal(self.place.journal)  # after the model, so that a wrong name leaves no file behind
        state = self._replayed(state, self._journal.entries(self._included()))
        _compile(state)
        self._state, self._touched = state, self._journal.touched()

    def _included(self) -> int:
        """Return the number of the last change that the model on the disk has in it; 0 if that is not known."""
        fits = (
            [entry.change.new for entry in self.journal.entries(kind="fit", key=self.identity)] if self.identity else []
        )
        return fits[-1]["version"] if fits else 0

    def _replayed(self, state: State, entries: Sequence[Entry]) -> State:
        """Apply entries; those that do not fit the model any more are kept in mind and left out.

        Entries that are in the model already change nothing: each sets a value, and the last one counts.
        """
        work, skipped = Work.on(state), []
        for entry in entries:
            if entry.change.kind == "fit":
                continue
            try:
                work, _ = work.taking([entry.change], new_classes=True)
            except InputError as error:
                skipped.append(f"change {entry.seq} by {entry.who}: {error}")
        self.skipped = tuple(skipped)
        return work.solved(self.journal.last())

    @property
    def journal(self) -> Journal:
        """The journal, once it is open."""
        if self._journal is None:
            raise StartingError(self.failure or "the service is starting; try again in a few seconds")
        return self._journal

    @property
    def state(self) -> State:
        """The present state; it never changes, a later call may return another one."""
        if self._state is None:
            raise StartingError(self.failure or "the service is starting; try again in a few seconds")
        return self._state

    @property
    def ready(self) -> bool:
        """Whether there is a state."""
        return self._state is not None

    def submit(self, request: Request) -> Future[Outcome]:
        """Ask for changes; the result is there once they are on the disk and solved."""
        _ = self.state
        if self._queue.qsize() >= MOST_WAITING:
            raise OverloadedError("too many changes are waiting to be solved; try again in a few seconds")
        self._queue.put(request)
        return request.answer

    def call(self, function: Callable[[], None]) -> None:
        """Run a function in the solver's thread, between two bursts."""
        self._queue.put(function)

    def close(self) -> None:
        """Finish what waits, and close the journal."""
        self._queue.put(None)
        if self._thread.ident is not None:
            self._thread.join()
        self._writer.shutdown()
        if self._journal is not None:
            self._journal.close()

    def _run(self) -> None:
        try:
            self.open()
            self.journal.make_room()
        except (LignnError, OSError) as error:
            self.failure = str(error)
            return
        except Exception as error:
            self.failure = f"the service has a fault: {error!r}"
            raise
        finally:
            self.opened.set()
        running = True
        while running:
            burst, function, running = self._next()
            if burst:
                self._serve(burst)
            if function is not None:
                function()

    def _next(self) -> tuple[list[Request], Callable[[], None] | None, bool]:
        """Wait for work; return all requests that wait, a function behind them, and whether to go on after both."""
        burst: list[Request] = []
        item = self._queue.get()
        while isinstance(item, Request):
            burst.append(item)
            try:
                item = self._queue.get_nowait()
            except Empty:
                return burst, None, True
        return burst, item, item is not None

    def _serve(self, burst: Sequence[Request]) -> None:
        """Apply, solve, write and answer a burst."""
        start = perf_counter()
        before = self.state
        # One whose asker has left would refuse its answer.
        burst = [request for request in burst if request.answer.set_running_or_notify_cancel()]
        work, accepted = self._accepted(burst, before)
        rows = [(request.who, change) for request, made in accepted for change in made]
        try:
            state = self._solved_and_written(work, rows) if rows else before
        except Exception as error:  # told to each of those who asked
            for request, _ in accepted:
                request.answer.set_exception(error)
            return
        self._state = state
        self.counts.changes += len(rows)
        self.counts.seconds = perf_counter() - start
        for request, made in accepted:
            outcome = Outcome(state, before, made)
            request.answer.set_result(outcome)
            if self._follow is not None and made:
                self._follow(outcome)

    def _accepted(self, burst: Sequence[Request], state: State) -> tuple[Work, list[tuple[Request, list[Change]]]]:
        """Return the work of the requests that fit, and what each changes; the others are told why not."""
        work, accepted = Work.on(state), []
        busy: set[tuple[str, str]] = set()
        for request in burst:
            try:
                self._check_version(request, busy)
                work, made = work.taking(request.changes, new_classes=request.new_classes)
            except Exception as error:  # told to the one who asked; the others go on
                request.answer.set_exception(error)
                continue
            busy.update((change.kind, change.key) for change in made)
            accepted.append((request, made))
        return work, accepted

    def _check_version(self, request: Request, busy: set[tuple[str, str]]) -> None:
        if request.expected is None:
            return
        for change in request.changes:
            key = (change.kind, change.key)
            if self._touched.get(key, 0) > request.expected or key in busy:
                raise ConflictError(
                    f"{change.kind} {change.key!r} was changed after version {request.expected}; look at it again"
                )

    def _solved_and_written(self, work: Work, rows: Sequence[tuple[str, Change]]) -> State:
        """Solve and write at the same time; the rows of a solve that fails are taken back."""
        writing = self._writer.submit(self.journal.append, rows)
        try:
            state = work.solved(0)
        except Exception:
            self.journal.forget(writing.result())
            raise
        seqs = writing.result()
        self.counts.solves += 1
        self._touched.update({(change.kind, change.key): seq for (_, change), seq in zip(rows, seqs, strict=True)})
        return replace(state, version=seqs[-1])

    def take_model(self, state: State, identity: str, version: int) -> None:
        """Replace the model by a new one, made of the labels up to `version`; only for the solver's thread.

        Changes that came in meanwhile are applied to it.
        """
        entry = Change("fit", identity, {"version": version})
        (seq,) = self.journal.append([("lignn", entry)])
        skipped, state = self.skipped, self._replayed(state, self.journal.entries(version))
        self.skipped, self.identity = skipped + self.skipped, identity
        before, self._state = self.state, replace(state, version=seq)
        if self._follow is not None:
            self._follow(Outcome(self._state, before, ()))


def _compile(state: State) -> None:
    """Solve once more from the equilibrium, and forget it, so that kernels are compiled before the first change.

    Where a solve starts from zero, opening the model has solved already.
    """
    prediction = state.prediction
    if prediction is not None and prediction.solution is not None and not why_cold(prediction.bound):
        prediction.bound.solve(prediction.solution.value)
