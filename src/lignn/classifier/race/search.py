"""The course of a race: candidates start in stages on one part of the labels, and who is behind is out before the next.

Cheap candidates come first. A costly way to use a network is tried only if the network is not behind in cheaper ways,
and only while the work of all trials, counted in multiplications, is within the budget.
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
from lignn.classifier.race.candidates import Candidate
from lignn.classifier.race.fold_fits import Outcome, Setup, Task
from lignn.classifier.race.folds import Fold
from lignn.classifier.race.judge import Judge
from lignn.classifier.race.work import work
from lignn.errors import InputError
from lignn.labels import at_temperature
from lignn.runs import workers
from lignn.training import checkpoint
from lignn.training.metrics import mean_log_loss

SURVIVORS = (4, 3)
"""The most candidates that go on to more folds, first and later; an ensemble is chosen among them."""
_SCORED = 30
"""The fewest labels by which candidates are dropped, if there are so many."""
_CLEARLY = 2.0
"""Errors of the difference by which a candidate is behind that is not tried on more folds."""
ENOUGH = 300
"""Number of scored labels beyond which no more folds are fitted."""
_PER_CLASS = 50
"""Labels of a class, in the mean, below which the budget is smaller in proportion, and deep networks do not start: they
need many (results/many.jsonl)."""
_COSTLY = 2
"""First stage whose candidates start only within the budget."""

Tell = Callable[[Task, Outcome], None]


def rungs(folds: Sequence[Fold]) -> list[int]:
    """Return the numbers of folds after which candidates are compared: until enough labels have scored."""
    scored = [int(fold.scored.sum()) for fold in folds]
    least, most = (_reaching(scored, wanted) for wanted in (_SCORED, ENOUGH))
    middle = min(max(2 * least, least + 1), most)
    return sorted({least, middle, most})


def _reaching(scored: Sequence[int], wanted: int) -> int:
    """Return the fewest folds that score as many labels, or all folds."""
    return next((count for count in range(1, len(scored)) if sum(scored[:count]) >= wanted), len(scored))


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
        beyond: candidates that were not tried, since the work of all trials would be beyond the budget.
        stopped: whether the time was over, or an interruption came, before the search was.
        interrupted: whether it was ended by an interruption (Ctrl-C).
    """

    setup: Setup
    file: Path | None = None
    results: dict[Task, Outcome] = field(default_factory=dict)
    alive: list[int] = field(default_factory=list)
    reached: int = 0
    behind: list[int] = field(default_factory=list)
    beyond: list[int] = field(default_factory=list)
    stopped: bool = False
    interrupted: bool = False
    _spent: float = 0.0
    _calibrations: dict[tuple[int, int, bool], Calibration | None] = field(default_factory=dict, repr=False)

    def run(self, jobs: int, until: float | None, tell: Tell) -> None:
        """Run the search to its end, or until a time of `time.monotonic`.

        The simplest candidate is tried whatever the time, so that there is a model.
        """
        if self.file is not None and self.file.exists():
            self.results = _read(self.file, self.setup)
        self.stopped = True  # until the last rung is done
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # as in other processes, so that the bits are the same
        try:
            self._run(jobs, until, tell)
        except KeyboardInterrupt:
            if not any(one.probabilities is not None for one in self.results.values()):
                raise
            self.interrupted = True
            self._settle(self._in_time())
        finally:
            torch.set_num_threads(threads)

    def _run(self, jobs: int, until: float | None, tell: Tell) -> None:
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
        judge, (count, *later) = Judge.of(self.setup), rungs(self.setup.folds)
        stages = sorted({one.stage for one in self.setup.candidates})
        for stage in stages:
            self.alive = sorted({*self.alive, *self._starting(judge, stage, count)})
            yield self._to_do(count)
            self._settle(count)
        for following, most in zip(later, SURVIVORS, strict=False):
            self.alive = self._not_behind(judge, most)
            yield self._to_do(following)
            self._settle(following)
        self.alive = self._not_behind(judge, SURVIVORS[0])
        self.stopped = False

    def _starting(self, judge: Judge, stage: int, folds: int) -> list[int]:
        """Return the candidates of a stage that start: cheap ones first, costly ones as far as the budget goes.

        Few labels tell few candidates apart, so that with them it is smaller.
        """
        candidates = self.setup.candidates
        known = int(self.setup.folds[0].split.train.sum())
        cost = {each: self.cost(each) for each, one in enumerate(candidates) if one.stage == stage}
        there = sorted(cost, key=lambda each: cost[each])
        parts = {self.setup.inside(each) for each in there}
        cost |= {each: 0.0 for each in there if each in parts}  # fitted with what smooths its predictions
        tells_apart = min(1.0, known / (_PER_CLASS * max(self.setup.graph.num_classes, 1)))
        found = []
        for each in there:
            if stage and self._is_behind(judge, candidates[each], known):
                self.behind.append(each)
            elif stage >= _COSTLY and self._spent + folds * cost[each] > self.setup.budget * tells_apart:
                self.beyond.append(each)
            else:
                self._spent += folds * cost[each]
                found.append(each)
        return found

    def _is_behind(self, judge: Judge, candidate: Candidate, known: int) -> bool:
        """Return whether other networks are clearly better than a candidate's, or trees than its trees.

        A network is as good as its best way so far. Costly ways are tried on the best network alone.
        """
        candidates, folds = self.setup.candidates, range(self.reached)
        deep = candidate.family.startswith("deep")
        if deep and known < _PER_CLASS * self.setup.graph.num_classes:
            return True
        of_rows = candidate.backbone is None
        rivals = [each for each in self.alive if of_rows or candidates[each].has_network]
        if not rivals:
            return False
        ranked = self.ranked(judge, rivals, self.reached)
        own = [each for each in ranked if candidates[each].family == candidate.family]
        if not own:
            return False
        if candidate.stage > 1 and not deep and candidates[ranked[0]].family != candidate.family:
            return True
        return judge.is_behind(self.predictions(ranked[0], folds), self.predictions(own[0], folds), folds)

    def _not_behind(self, judge: Judge, most: int) -> list[int]:
        """Return the best candidates, without those whose log loss is clearly higher than the leader's."""
        folds = range(self.reached)
        among = [each for each in self.alive if not self.is_idle(each)] or self.alive
        if not among:  # none could be fitted
            return []
        leader, *others = self.ranked(judge, among, self.reached)
        best = self.predictions(leader, folds)
        close = [each for each in others if not judge.is_behind(best, self.predictions(each, folds), folds, _CLEARLY)]
        return sorted([leader, *close[: most - 1]])

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

    def cost(self, candidate: int) -> float:
        """Return about how many multiplications a fit of a candidate takes."""
        known = int(self.setup.folds[0].split.train.sum())
        return work(self.setup.candidates[candidate], self.setup.graph, known)

    @property
    def work(self) -> float:
        """The counted work of all candidates on one fold."""
        return sum(self.cost(each) for each in range(len(self.setup.candidates)))

    @property
    def leader(self) -> str:
        """Title of the candidate with the lowest log loss on the first fold so far, before calibration."""
        truth = Judge.of(self.setup).truth[0]
        losses = {
            task.candidate: mean_log_loss(one.probabilities, truth)
            for task, one in self.results.items()
            if task.fold == 0 and one.probabilities is not None
        }
        return self.setup.candidates[min(losses, key=lambda each: losses[each])].title if losses else ""

    def depends(self, candidate: int) -> float:
        """Return the share of a candidate's predictions that depend on the start of a solve, the mean over folds."""
        found = [self.results[Task(candidate, fold)].depends for fold in self._compared_on(candidate)]
        return sum(found) / max(len(found), 1)

    @property
    def planned(self) -> int:
        """The number of fits if nobody drops out before the last rung."""
        first, *later = rungs(self.setup.folds)
        started = len(self.setup.candidates) - len(self.behind) - len(self.beyond)
        more = zip(SURVIVORS, [first, *later], later, strict=False)
        return first * started + sum(most * (count - before) for most, before, count in more)

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
