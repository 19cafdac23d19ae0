"""Successive halving: all candidates on some folds, the better half on more of them, and so on.

Cheap candidates come first: the costly ways to use a network are tried only if it is not behind in the cheap ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lignn.classifier.calibration import Calibration, calibrate
from lignn.classifier.race import fold_fits
from lignn.classifier.race.fold_fits import Outcome, Setup, Task
from lignn.classifier.race.folds import Fold
from lignn.classifier.race.judge import Judge, gap
from lignn.errors import InputError
from lignn.labels import at_temperature
from lignn.runs import workers
from lignn.training import checkpoint

SURVIVORS = 5
"""The fewest candidates that reach the last folds; an ensemble is chosen among them."""
_SCORED = 30
"""The fewest labels by which candidates are dropped, if there are so many."""

Tell = Callable[[Task, Outcome], None]


def rungs(folds: Sequence[Fold], candidates: int) -> list[tuple[int, int]]:
    """Return how many candidates are tried on how many folds: all on the fewest folds, then half of them on twice."""
    total, count = len(folds), 1
    while count < total and sum(int(fold.scored.sum()) for fold in folds[:count]) < _SCORED:
        count += 1
    found = [(candidates, count)]
    while count < total:
        candidates = max(min(SURVIVORS, candidates), -(-candidates // 2))
        count = min(2 * count, total)
        found.append((candidates, count))
    return found


@dataclass
class Search:
    """A search under way: its results so far are kept in a file, from which it goes on.

    Attributes:
        setup: what is searched.
        file: file of the results so far; None keeps none.
        results: outcomes by task.
        alive: the numbers of the candidates that were not dropped.
        reached: how many folds the candidates that are alive were compared on.
        behind: candidates that were not tried, since their network was behind others in cheaper ways.
        stopped: whether the time was over before the search was.
    """

    setup: Setup
    file: Path | None = None
    results: dict[Task, Outcome] = field(default_factory=dict)
    alive: list[int] = field(default_factory=list)
    reached: int = 0
    behind: list[int] = field(default_factory=list)
    stopped: bool = False
    _calibrations: dict[tuple[int, int, bool], Calibration | None] = field(default_factory=dict, repr=False)

    def run(self, jobs: int, until: float | None, tell: Tell) -> None:
        """Run the search to its end, or until a time of `time.monotonic`.

        The simplest candidate is tried whatever the time, so that there is a model.
        """
        if self.file is not None and self.file.exists():
            self.results = _read(self.file, self.setup)
        self.stopped = True  # until the last rung is done
        with closing(self._performed(jobs, until)) as done:
            for task, found in done:
                if isinstance(found, workers.Failure):
                    found = {task: Outcome(None, 0.0, 0.0, failure=str(found))}
                self.results |= {part: one for part, one in found.items() if part.candidate in self.alive}
                if self.file is not None:
                    _write(self.file, self.setup, self.results)
                tell(task, self.results[task])
        if self.stopped:
            if not self.results:
                self.results |= fold_fits.perform(self.setup, Task(self.alive[0], 0))
            self._settle(self._in_time())

    def _performed(self, jobs: int, until: float | None) -> Generator[tuple[Task, Any], None, None]:
        """Yield every fit with what it gave, in this process if there is to be one, until the time is over."""
        if jobs == 1 and until is not None:
            for task in (task for tasks in self._rounds() for task in tasks):
                try:
                    yield task, fold_fits.perform(self.setup, task, until)
                except fold_fits.TimeOverError:
                    return
                if time.monotonic() >= until:
                    return
        else:
            function = partial(fold_fits.perform, self.setup)
            yield from workers.here_or_in_rounds(function, self._rounds(), jobs, until)

    def _rounds(self) -> Iterator[list[Task]]:
        """Yield the fits of every rung that are still to do, and drop candidates when they are done."""
        judge, everybody = Judge.of(self.setup), range(len(self.setup.candidates))
        (_, count), *later = rungs(self.setup.folds, len(everybody))
        costly = [each for each in everybody if self.setup.candidates[each].is_costly]
        self.alive = [each for each in everybody if each not in costly]
        yield self._to_do(count)
        self._settle(count)
        self.behind = self._behind(judge, costly)
        self.alive = sorted({*self.alive, *costly} - {*self.behind})
        yield self._to_do(count)
        self._settle(count)
        for keep, count in later:
            among = [each for each in self.alive if not self.is_idle(each)] or self.alive
            self.alive = sorted(self.ranked(judge, among, self.reached)[:keep])
            yield self._to_do(count)
            self._settle(count)
        self.stopped = False

    def _behind(self, judge: Judge, costly: Sequence[int]) -> list[int]:
        """Return the costly candidates of networks that are worse than another one by more than a standard error.

        A network is as good as its best cheap way.
        """
        network = {each: self.setup.candidates[each].backbone for each in (*self.alive, *costly)}
        folds = range(self.reached)
        wanted = {network[each] for each in costly}
        best: dict[str | None, list[Tensor]] = {}
        for each in self.ranked(judge, self.alive, self.reached):
            if network[each] in wanted:
                best.setdefault(network[each], self.predictions(each, folds))
        top = next(iter(best.values()), [])
        worse = {name for name, each in best.items() if gap(judge, folds, top, each).beyond_its_error}
        return [each for each in costly if network[each] in worse]

    def _to_do(self, folds: int) -> list[Task]:
        """Return the fits that the candidates lack on the first folds, without those that are a part of others."""
        tasks = [Task(each, fold) for fold in range(folds) for each in self.alive]
        tasks = [task for task in tasks if task not in self.results]
        parts = {Task(first, fold) for each, fold in tasks if (first := self.setup.inside(each)) is not None}
        return [task for task in tasks if task not in parts]

    def _settle(self, folds: int) -> None:
        """Compare on so many folds; candidates that lack a prediction on one of them are out."""
        self.reached = folds
        self.alive = [each for each in self.alive if self._has(each, folds)]

    def _in_time(self) -> int:
        """Return the largest number of folds that at least half of the candidates have predicted, or any of them one.

        The others were not tried in time.
        """
        for count in range(len(self.setup.folds), 0, -1):
            have = sum(self._has(each, count) for each in self.alive)
            if 2 * have >= len(self.alive) or (have and count == 1):
                return count
        return 0

    def ranked(self, judge: Judge, among: Sequence[int], folds: int) -> list[int]:
        """Return candidates by their rank on the first folds, the best first; of equal ones the simpler first."""

        def rank(each: int) -> tuple[float, float]:
            return judge.rank(self.predictions(each, range(folds)), range(folds))

        return sorted(among, key=rank, reverse=True)

    def predictions(self, candidate: int, folds: Sequence[int]) -> list[Tensor]:
        """Return the calibrated predictions of a candidate on folds that it has been tried on."""
        found, several = self.calibration(candidate), self.setup.graph.is_multilabel
        raw = [self._raw(candidate, fold) for fold in folds]
        return raw if found is None else [at_temperature(each, found.temperature, several) for each in raw]

    def calibration(self, candidate: int, doubts: bool = False) -> Calibration | None:
        """Return the calibration of a candidate, from the folds that it was compared on.

        It is None if there are too few labels for it, or if it is not wanted. Members of an ensemble need no doubt: it
        is in their mean, where they disagree.

        Args:
            candidate: its number.
            doubts: look for a doubt too.
        """
        y, folds = self.setup.graph.y, self._compared_on(candidate)
        if not folds or not self.setup.common.get("calibrate", True):
            return None
        assert y is not None
        key = candidate, len(folds), doubts
        if key not in self._calibrations:
            truth = torch.cat([y[self.setup.folds[fold].scored] for fold in folds])
            raw = torch.cat([self._raw(candidate, fold) for fold in folds])
            self._calibrations[key] = calibrate(raw, truth, doubts)
        return self._calibrations[key]

    def folds_of(self, candidate: int) -> list[int]:
        """Return the folds that a candidate has predicted."""
        return [fold for fold in range(len(self.setup.folds)) if self._predicted(Task(candidate, fold))]

    def is_idle(self, candidate: int) -> bool:
        """Return whether a candidate was its base method under another name on all folds that it was compared on."""
        folds = self._compared_on(candidate)
        return bool(folds) and all(self.results[Task(candidate, fold)].idle for fold in folds)

    def _compared_on(self, candidate: int) -> list[int]:
        """Return the folds up to this rung; an interrupted search may have later ones already."""
        return [fold for fold in self.folds_of(candidate) if fold < self.reached]

    def elapsed(self, candidate: int) -> float:
        """Return the longest time of a fit by the clock."""
        return max(self.results[Task(candidate, fold)].elapsed for fold in self.folds_of(candidate))

    def _raw(self, candidate: int, fold: int) -> Tensor:
        found = self.results[Task(candidate, fold)].probabilities
        assert found is not None
        return found

    def _predicted(self, task: Task) -> bool:
        return task in self.results and self.results[task].probabilities is not None

    def _has(self, candidate: int, folds: int) -> bool:
        return folds > 0 and all(self._predicted(Task(candidate, fold)) for fold in range(folds))


def _write(file: Path, setup: Setup, results: dict[Task, Outcome]) -> None:
    kept = {
        f"{task.candidate}:{task.fold}": {name: value for name, value in vars(one).items() if value is not None}
        for task, one in results.items()
    }
    checkpoint.write(file, {"run": setup.identity, "results": kept})


def _read(file: Path, setup: Setup) -> dict[Task, Outcome]:
    state = checkpoint.read(file)
    if state.get("run") != setup.identity:
        raise InputError(f"{file}: the results of another search; delete it, or give another file")
    found = {}
    for name, one in state["results"].items():
        candidate, _, fold = name.partition(":")
        found[Task(int(candidate), int(fold))] = Outcome(**({"probabilities": None} | one))
    return found
