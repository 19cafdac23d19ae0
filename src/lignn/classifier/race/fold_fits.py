"""One fit of a search: a candidate on a fold of the labels, and the predictions that it gives."""

from __future__ import annotations

import hashlib
import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from torch import Tensor

from lignn.classifier import fit as fitting
from lignn.classifier.certificate import try_starts
from lignn.classifier.model import Fitted
from lignn.classifier.race.candidates import Candidate
from lignn.classifier.race.folds import Fold
from lignn.classifier.spec import Spec
from lignn.errors import ConvergenceWarning, ImbalanceWarning, LignnError
from lignn.graph import Graph, Split, archive
from lignn.methods import Prediction
from lignn.training import History, Metric

if TYPE_CHECKING:
    from lignn.methods.correct_and_smooth import BoundCorrectAndSmooth


class TimeOverError(Exception):
    """Raised within a fit when its time is over."""


class Task(NamedTuple):
    """One fit: the numbers of a candidate and of a fold."""

    candidate: int
    fold: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a fit gave.

    Attributes:
        probabilities: of the scored nodes of its fold, not calibrated, m×c; None if it failed.
        seconds: processor time.
        elapsed: time by the clock.
        idle: whether it is its base method under another name, see `BoundMethod.idle`.
        failure: why there is no prediction; empty if there is one.
        takes_labels: whether a new label changes predictions without training.
        depends: share of the predictions that depend on where the solve starts.
    """

    probabilities: Tensor | None
    seconds: float
    elapsed: float
    idle: bool = False
    failure: str = ""
    takes_labels: bool = False
    depends: float = 0.0


@dataclass(frozen=True, eq=False)
class Setup:
    """Everything that a fit depends on.

    Attributes:
        graph: the graph.
        folds: the folds.
        candidates: what to try, the simplest first.
        common: parameters of `NodeClassifier` for all candidates that have them.
        metric: what candidates are chosen by.
        budget: multiplications that the trials on one fold may take.
    """

    graph: Graph
    folds: tuple[Fold, ...]
    candidates: tuple[Candidate, ...]
    common: Mapping[str, Any]
    metric: Metric
    budget: float = math.inf

    def spec(self, candidate: Candidate) -> Spec:
        """Return the settings of a candidate.

        A fit holds labels back once: the race itself has predictions of all labels, which calibrate.
        """
        return Spec.resolve(candidate.with_common({**self.common, "metric": self.metric.name, "folds": 1}))

    def trial(self, candidate: Candidate) -> Spec:
        """Return the specification of a candidate on a fold, which trains once."""
        return Spec.resolve(candidate.tried_with({**self.common, "metric": self.metric.name, "folds": 1}))

    def inside(self, candidate: int) -> int | None:
        """Return the number of the candidate that is the first stage of this one, None if there is none."""
        name = self.candidates[candidate].first_stage
        return next((number for number, one in enumerate(self.candidates) if one.name == name), None)

    @cached_property
    def identity(self) -> str:
        """A hash that differs where any fit, or the choice, would."""
        parts = tuple(fold.split for fold in self.folds)
        values = [(each.name, sorted(self.trial(each).values.items())) for each in self.candidates]
        scored = [fold.scored.nonzero().flatten().tolist() for fold in self.folds]
        text = f"{archive.fingerprint(self.graph.replace(splits=parts))} {values} {self.metric} {scored}"
        return hashlib.sha256(text.encode()).hexdigest()


def perform(setup: Setup, task: Task, until: float | None = None) -> dict[Task, Outcome]:
    """Fit a candidate with the split of a fold; the labels that score it are not in the graph that it is given.

    Correct and Smooth trains its first stage as it would be trained alone: one fit is the outcome of both. At `until`,
    a time of `time.monotonic`, training ends with `TimeOverError`.
    """
    fold, first = setup.folds[task.fold], setup.inside(task.candidate)
    tasks = [task] if first is None else [task, Task(first, task.fold)]
    start, begin = time.process_time(), time.perf_counter()

    def outcome(stage: Prediction | None, failure: str = "") -> Outcome:
        spent = time.process_time() - start, time.perf_counter() - begin
        if stage is None:
            return Outcome(None, *spent, failure=failure)
        bound, starts = stage.bound, try_starts(stage)
        depends = 0.0 if starts is None else starts.differing
        rows = stage.probabilities.cpu()[fold.scored].float()
        return Outcome(rows, *spent, bound.idle, "", bound.takes_labels, depends)

    try:
        spec = setup.trial(setup.candidates[task.candidate])
        found = fit(spec, fold.visible(setup.graph), fold.split, until).prediction
    except LignnError as error:
        return dict.fromkeys(tasks, outcome(None, str(error)))
    stages = [found]
    if first is not None:
        stages.append(cast("BoundCorrectAndSmooth", found.bound).base.solve())
    return dict(zip(tasks, map(outcome, stages), strict=True))


def fit(spec: Spec, graph: Graph, split: Split | None, until: float | None = None) -> Fitted:
    """Fit without warnings; what a solve leaves open, `diagnose` tells of the model that is chosen."""

    def watch(_: History) -> None:
        if until is not None and time.monotonic() >= until:
            raise TimeOverError

    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, ImbalanceWarning):
            warnings.simplefilter("ignore", kind)
        fitted = fitting.fit(spec, graph, split, None if until is None else watch, None)
    if fitted.interrupted:
        raise KeyboardInterrupt
    return fitted
