"""The one resumable runner of many cases: what has no result yet is run, and its result is kept.

A case is the inputs of one result. Its id is a name, or a hash of its values. A store keeps results by id: a file of
records, the trials of a search, or the memory of this process. An interrupted run goes on from what its store has.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from typing import Any, Protocol, TypeVar

from lignn.runs import workers


class Case(Protocol):
    """The inputs of one result."""

    @property
    def id(self) -> str:
        """What tells the case from all others."""


Kind = TypeVar("Kind", bound=Case)
Contra = TypeVar("Contra", bound=Case, contravariant=True)


class Results(Protocol[Contra]):
    """A store of results."""

    def has(self, case: Contra) -> bool:
        """Return whether the case has a result, so that it need not be run."""

    def add(self, case: Contra, result: Any) -> None:
        """Keep the result of a case, or its `workers.Failure`."""


class InMemory(Results[Case]):
    """Results that end with the process.

    Attributes:
        found: results by the id of their case.
    """

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def has(self, case: Case) -> bool:
        """Return whether the case has a result."""
        return case.id in self.found

    def add(self, case: Case, result: Any) -> None:
        """Keep the result of a case, or raise the error of one that failed."""
        if isinstance(result, workers.Failure):
            raise result.exception(case.id)
        self.found[case.id] = result


def run(
    perform: Callable[[Kind], Any],
    rounds: Iterable[Iterable[Kind]],
    results: Results[Kind],
    jobs: int = 1,
    until: float | None = None,
    on: str | None = None,
    isolated: bool = False,
) -> Generator[tuple[Kind, Any], None, None]:
    """Run the cases that have no result, and yield each of them with its result, which is in the store by then.

    The results come in the order in which they are ready. They depend neither on this order nor on the number of
    processes. Processes end with the iteration, also when it is left early.

    Args:
        perform: returns the result of a case.
        rounds: lists of cases; a list is asked for when all results of the list before it are there.
        results: where results are kept.
        jobs: number of processes, with one thread each. A single job without a limit of time runs in this process, and
            its errors are raised.
        until: a time of `time.monotonic` at which the iteration ends, whatever is still under way.
        on: address of the Ray cluster that runs the cases; None: this machine.
        isolated: run a single job in a process of its own too, so that an error or its death is a `workers.Failure`.
    """

    def todo() -> Generator[list[Kind], None, None]:
        for cases in rounds:
            yield [case for case in cases if not results.has(case)]

    runner = workers.in_rounds if isolated else workers.here_or_in_rounds
    with closing(runner(perform, todo(), jobs, until, on)) as done:
        for case, result in done:
            results.add(case, result)
            yield case, result
