"""Successive halving: all candidates on some folds, the better half on more of them, and so on."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lignn.classifier import NodeClassifier, fitting
from lignn.classifier.settings import Settings
from lignn.errors import ConvergenceWarning, ImbalanceWarning, InputError, LignnError
from lignn.evaluation import workers
from lignn.evaluation.candidates import Candidate
from lignn.evaluation.folds import Fold
from lignn.graph import Graph, archive
from lignn.labels import at_temperature
from lignn.training import Metric, checkpoint

SURVIVORS = 5
"""The fewest candidates that reach the last folds; an ensemble is chosen among them."""
_SCORED = 30
"""The fewest labels by which candidates are dropped, if there are so many."""


class Task(NamedTuple):
    """One fit: the numbers of a candidate and of a fold."""

    candidate: int
    fold: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a fit gave.

    Attributes:
        probabilities: of the scored nodes of its fold, calibrated, m×c; None if it failed.
        seconds: processor time.
        idle: whether it is its base method under another name, see `BoundMethod.idle`.
        failure: why there is no prediction; empty if there is one.
    """

    probabilities: Tensor | None
    seconds: float
    idle: bool = False
    failure: str = ""


@dataclass(frozen=True, eq=False)
class Setup:
    """Everything that a fit depends on.

    Attributes:
        graph: the graph.
        folds: the folds.
        candidates: what to try, the simplest first.
        common: parameters of `NodeClassifier` for all candidates that have them.
        metric: what candidates are chosen by.
    """

    graph: Graph
    folds: tuple[Fold, ...]
    candidates: tuple[Candidate, ...]
    common: Mapping[str, Any]
    metric: Metric

    def settings(self, candidate: Candidate, last: bool = False) -> Settings:
        """Return the settings of a candidate, of its fits on folds or of the last fit.

        On folds, a fit holds labels back once: one temperature need not be exact to compare models.
        """
        common = {**self.common, "metric": self.metric.name} | ({} if last else {"folds": 1})
        given = candidate.with_common(common)
        return Settings.of(NodeClassifier(**given).get_params(deep=False))

    @cached_property
    def identity(self) -> str:
        """A hash that differs where any fit, or the choice, would."""
        parts = tuple(fold.split for fold in self.folds)
        values = [(each.name, sorted(self.settings(each).values.items())) for each in self.candidates]
        scored = [fold.scored.nonzero().flatten().tolist() for fold in self.folds]
        text = f"{archive.fingerprint(self.graph.replace(splits=parts))} {values} {self.metric} {scored}"
        return hashlib.sha256(text.encode()).hexdigest()


def perform(setup: Setup, task: Task) -> Outcome:
    """Fit a candidate with the split of a fold; the labels that score it are not in the graph that it is given."""
    fold, settings = setup.folds[task.fold], setup.settings(setup.candidates[task.candidate])
    start = time.process_time()
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, ImbalanceWarning):
            warnings.simplefilter("ignore", kind)
        try:
            fitted = fitting.fit(settings, fold.visible(setup.graph), fold.split, None, None)
        except LignnError as error:
            return Outcome(None, time.process_time() - start, failure=str(error))
    temperature = 1.0 if fitted.calibration is None else fitted.calibration.temperature
    raw = fitted.prediction.probabilities.cpu()[fold.scored]
    probabilities = at_temperature(raw, temperature, setup.graph.is_multilabel).float()
    return Outcome(probabilities, time.process_time() - start, fitted.prediction.bound.idle)


@dataclass(frozen=True, eq=False)
class Judge:
    """The score of predictions of the scored nodes of some folds, which are pooled.

    Attributes:
        metric: the metric.
        truth: the labels of the scored nodes of every fold.
    """

    metric: Metric
    truth: tuple[Tensor, ...]

    @classmethod
    def of(cls, setup: Setup) -> Judge:
        """Return the judge of a setup; raise if its metric is not defined for the labels that score."""
        y = setup.graph.y
        assert y is not None
        truth = tuple(y[fold.scored] for fold in setup.folds)
        setup.metric.check(torch.cat(truth), "scored")
        return cls(setup.metric, truth)

    def score(self, probabilities: Sequence[Tensor], folds: Sequence[int]) -> float:
        """Return the score of predictions of these folds; larger is better."""
        return self.of_nodes(torch.cat(list(probabilities)), torch.cat([self.truth[fold] for fold in folds]))

    def of_nodes(self, probabilities: Tensor, truth: Tensor) -> float:
        """Return the score of predictions of some nodes."""
        several = truth.ndim == 2
        labels = (probabilities > 0.5).to(torch.int8) if several else probabilities.argmax(1)
        return self.metric(probabilities, labels, truth)


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
        stopped: whether the time was over before the search was.
    """

    setup: Setup
    file: Path | None = None
    results: dict[Task, Outcome] = field(default_factory=dict)
    alive: list[int] = field(default_factory=list)
    reached: int = 0
    stopped: bool = False

    def run(self, jobs: int, until: float | None, tell: Callable[[Task, Outcome], None]) -> None:
        """Run the search to its end, or until a time of `time.monotonic`."""
        self._resume()
        judge = Judge.of(self.setup)
        self.alive = list(range(len(self.setup.candidates)))
        for keep, count in rungs(self.setup.folds, len(self.alive)):
            among = [each for each in self.alive if not self.is_idle(each)] or self.alive
            self.alive = sorted(self.ranked(judge, among, self.reached)[:keep])
            tasks = [Task(each, fold) for fold in range(count) for each in self.alive]
            self._perform([task for task in tasks if task not in self.results], jobs, until, tell)
            self.reached = self._complete(count)
            self.alive = [each for each in self.alive if self._has(each, self.reached)]
            if self.stopped or not self.alive:
                break

    def ranked(self, judge: Judge, among: Sequence[int], folds: int) -> list[int]:
        """Return candidates by their score on the first folds, the best first; of equal ones the simpler first."""
        if not folds:
            return list(among)
        return sorted(among, key=lambda each: -judge.score(self.predictions(each, range(folds)), range(folds)))

    def predictions(self, candidate: int, folds: Sequence[int]) -> list[Tensor]:
        """Return the predictions of a candidate on folds that it has been tried on."""
        found = [self.results[Task(candidate, fold)].probabilities for fold in folds]
        assert all(each is not None for each in found)
        return found  # type: ignore[return-value]

    def folds_of(self, candidate: int) -> list[int]:
        """Return the folds that a candidate has predicted."""
        folds = range(len(self.setup.folds))
        return [fold for fold in folds if self._predicted(Task(candidate, fold))]

    def is_idle(self, candidate: int) -> bool:
        """Return whether a candidate was its base method under another name on all folds that it was tried on."""
        folds = self.folds_of(candidate)
        return bool(folds) and all(self.results[Task(candidate, fold)].idle for fold in folds)

    def _predicted(self, task: Task) -> bool:
        return task in self.results and self.results[task].probabilities is not None

    def _has(self, candidate: int, folds: int) -> bool:
        return folds > 0 and all(self._predicted(Task(candidate, fold)) for fold in range(folds))

    def _complete(self, folds: int) -> int:
        """Return the largest number of folds that at least half of the candidates have predicted, or any of them one.

        It is smaller than `folds` only if the time was over.
        """
        for count in range(folds, 0, -1):
            have = sum(self._has(each, count) for each in self.alive)
            if have and (not self.stopped or count == 1 or 2 * have >= len(self.alive)):
                return count
        return 0

    def _perform(
        self, tasks: list[Task], jobs: int, until: float | None, tell: Callable[[Task, Outcome], None]
    ) -> None:
        done: Iterator[tuple[Task, Any]]
        if jobs == 1 and until is None:
            done = ((task, perform(self.setup, task)) for task in tasks)
        else:
            done = workers.each(partial(perform, self.setup), tasks, jobs, until)
        left = len(tasks)
        with closing(done):
            for task, found in done:
                outcome = Outcome(None, 0.0, failure=str(found)) if isinstance(found, workers.Failure) else found
                self.results[task] = outcome
                left -= 1
                self._save()
                tell(task, outcome)
        self.stopped = left > 0

    def _save(self) -> None:
        if self.file is None:
            return
        kept = {
            f"{task.candidate}:{task.fold}": {
                "seconds": one.seconds,
                "idle": one.idle,
                "failure": one.failure,
                **({} if one.probabilities is None else {"probabilities": one.probabilities}),
            }
            for task, one in self.results.items()
        }
        checkpoint.write(self.file, {"run": self.setup.identity, "results": kept})

    def _resume(self) -> None:
        if self.file is None or not self.file.exists():
            return
        state = checkpoint.read(self.file)
        if state.get("run") != self.setup.identity:
            raise InputError(f"{self.file}: the results of another search; delete it, or give another file")
        for name, one in state["results"].items():
            candidate, _, fold = name.partition(":")
            found = Outcome(one.get("probabilities"), one["seconds"], one["idle"], one["failure"])
            self.results[Task(int(candidate), int(fold))] = found
