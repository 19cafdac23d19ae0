"""`AutoClassifier`: tries models on folds of the known labels, and fits the best of them, or an ensemble, on all."""

from __future__ import annotations

import json
import math
import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lignn import classifier as front
from lignn import methods
from lignn.classifier import NodeClassifier, generations, imbalance, saving
from lignn.classifier import fit as fitting
from lignn.classifier.calibration import Outcome as Predicted
from lignn.classifier.calibration import calibrate
from lignn.classifier.certificate import warn_if_unsolved
from lignn.classifier.holdout import checked_split
from lignn.classifier.model import Fitted
from lignn.classifier.race.candidates import QUALITIES, Quality, candidates
from lignn.classifier.race.fold_fits import Outcome, Setup, Task, fit
from lignn.classifier.race.folds import folds
from lignn.classifier.race.greedy import Choice, choose, mean_of
from lignn.classifier.race.judge import Judge, decided
from lignn.classifier.race.leaderboard import Leaderboard, leaderboard
from lignn.classifier.race.search import Search, rungs
from lignn.classifier.report import about_fit
from lignn.classifier.spec import Spec
from lignn.declarations import METHODS
from lignn.errors import ConfigError, InputError, unknown
from lignn.graph import Graph, Split
from lignn.labels import Classes

FOLDS: dict[Quality, int] = {"fast": 3, "good": 4, "best": 8}
_SEARCHING = 0.75
"""Share of the time that the search may take; the rest is for the last fit."""

_SHORT = 60.0
"""Seconds below which all fits are in this process: others take seconds to start."""

Progress = Callable[[str, int, int], None]
"""Called after every fit with a few words, the number of fits so far, and the number that are planned."""


class AutoClassifier(NodeClassifier):
    """The model that is best on a graph, among networks, label propagation and classifiers of tables.

    Candidates are tried on folds of the known labels; the better half goes on to more folds, and so on. The best one is
    fitted on all labels, or a greedy ensemble of at most five, if ensembles are better on folds that they were not
    chosen on. The result is a fitted `NodeClassifier`.

    Args:
        quality: "fast", "good" or "best": how many candidates, on how many folds.
        time: seconds after which the search ends with what it has; None for no limit. Only without a limit the result
            depends on the seed alone.
        backbones: names of the networks to try; default by the quality.
        metric: what candidates, and epochs, are chosen by; as for `NodeClassifier`.
        class_weight: as for `NodeClassifier`.
        seed: seed of folds and fits.
        inductive: as for `NodeClassifier`.
        refit: as for `NodeClassifier`: by default the last fit trains on labels that it held back by itself, but not on
            the validation labels of a given split.
        calibrate: as for `NodeClassifier`.
        precision: as for `NodeClassifier`.
        device: as for `NodeClassifier`.
        features: as for `NodeClassifier`.
        jobs: number of processes, with one thread each; 1, or a search of less than a minute, stays in this process.
        parameters: other parameters of `NodeClassifier`, for all candidates that have them.

    Attributes:
        leaderboard_: all candidates with their scores, and what was found, in words.
    """

    def __init__(
        self,
        quality: Quality = "good",
        time: float | None = None,
        backbones: Sequence[str] | None = None,
        metric: str | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        seed: int = 0,
        inductive: bool = False,
        refit: bool | None = None,
        calibrate: bool = True,
        precision: str = "float32",
        device: str = "cpu",
        features: Any = None,
        jobs: int = 1,
        parameters: Mapping[str, Any] | None = None,
        **unknown: Any,
    ) -> None:
        self._refuse(unknown)
        self.quality = quality
        self.time = time
        self.backbones = backbones
        self.metric = metric
        self.class_weight = class_weight
        self.seed = seed
        self.inductive = inductive
        self.refit = refit
        self.calibrate = calibrate
        self.precision = precision
        self.device = device
        self.features = features
        self.jobs = jobs
        self.parameters = parameters

    def fit(  # type: ignore[override]
        self,
        graph: Graph,
        split: Split | None = None,
        *,
        progress: Progress | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Self:
        """Search for the best model of a graph, and fit it.

        Args:
            graph: with labels; y = -1 is unlabelled.
            split: as for `NodeClassifier`; test labels are never looked at. Its validation labels, if there are any,
                choose the model, and are trained on only with `refit=True`.
            progress: called after every fit.
            checkpoint: file to write the results so far to, and to go on from if it is there.
        """
        start = clock.monotonic()
        split = fitting.split_for(graph, split, level=1)
        setup = self._setup(graph, split)
        search = Search(setup, None if checkpoint is None else Path(checkpoint))
        total = planned(rungs(setup.folds, len(setup.candidates)))

        def tell(task: Task, outcome: Outcome) -> None:
            if progress is not None:
                words = f"{setup.candidates[task.candidate].title}, {outcome.failure or f'{outcome.seconds:.1f} s'}"
                progress(words, len(search.results), total)

        limit = math.inf if self.time is None else self.time
        search.run(1 if limit < _SHORT else self.jobs, None if self.time is None else start + _SEARCHING * limit, tell)
        if not search.alive:
            failures = [one.failure for one in search.results.values() if one.failure]
            raise InputError(f"{graph.name}: no model could be fitted; the first said: {failures[0]}")
        choice = choose(search, Judge.of(setup), start + limit - clock.monotonic())
        fitted = [fit(setup.spec(setup.candidates[number]), graph, split) for number in choice.weights]
        self._take(_single(fitted[0], search, choice) if len(fitted) == 1 else _ensemble(fitted, search, choice))
        self.leaderboard_ = leaderboard(search, choice, self.quality)
        warn_if_unsolved(self._fitted.prediction)
        imbalance.warn(about_fit(self._fitted), level=1)
        return self

    def _setup(self, graph: Graph, split: Split | None) -> Setup:
        """Return what to search."""
        self._check()
        given = Split(graph.labelled, torch.zeros_like(graph.labelled), ~graph.labelled) if split is None else split
        checked_split(graph, given)
        found = tuple(candidates(graph, self.quality, self.backbones))
        divided = tuple(folds(graph, given, FOLDS[self.quality], self.seed))
        if not divided:
            raise InputError(f"{graph.name}: too few labels to choose a model by; label some more, or name a --method")
        common = {name: value for name, value in self._common().items() if value is not None}
        spec = Spec.resolve(NodeClassifier(metric=self.metric, **common).get_params(deep=False))
        known = Classes.of(graph).known(graph, given.train & graph.labelled, spec.dtype)
        return Setup(graph, divided, found, common, imbalance.metric_of(spec, known))

    def _common(self) -> dict[str, Any]:
        """Return the parameters that all candidates share."""
        names = ("class_weight", "seed", "inductive", "refit", "calibrate", "precision", "device", "features")
        return {**{name: getattr(self, name) for name in names}, **(self.parameters or {})}

    def _check(self) -> None:
        if self.quality not in QUALITIES:
            raise unknown("quality", self.quality, QUALITIES)
        if self.time is not None and not self.time > 0:
            raise ConfigError(f"time: a positive number of seconds is needed, got {self.time!r}")
        if self.jobs < 1:
            raise ConfigError(f"jobs: at least 1 is needed, got {self.jobs!r}")
        for name in self.parameters or {}:
            if name in ("method", "backbone", "method_options", "backbone_options"):
                raise ConfigError(f"{name}: auto chooses it; leave it out, or use NodeClassifier")

    def save(self, folder: str | PathLike[str], graph: bool = True) -> None:
        """Write the model and its leaderboard to a folder, as `NodeClassifier.save` does."""
        check_is_fitted(self)
        saving.write(folder, self._fitted if graph else self._model, graph=graph, more=self.more_files())

    def more_files(self) -> dict[str, str]:
        """Return the content of the file beside the model by its name: the leaderboard, and the parameters."""
        told = {"parameters": self.get_params(deep=False), "leaderboard": self.leaderboard_.plain()}
        return {saving.LEADERBOARD: json.dumps(told, indent=2, ensure_ascii=False, default=str)}


def planned(steps: Sequence[tuple[int, int]]) -> int:
    """Return the number of fits of a search with these rungs."""
    before = 0
    total = 0
    for keep, count in steps:
        total, before = total + keep * (count - before), count
    return total


def _single(fitted: Fitted, search: Search, choice: Choice) -> Fitted:
    """Return the only member, with the calibration and the held-out score that the predictions of the folds give."""
    (number,) = choice.weights
    raw = [search.results[Task(number, fold)].probabilities for fold in range(search.reached)]
    held_out = _held_out(search, torch.cat([each for each in raw if each is not None]))
    return replace(fitted, calibration=search.calibration(number, doubts=True), held_out=held_out)


def _held_out(search: Search, probabilities: Tensor) -> Predicted:
    """Return predictions of the folds beside their labels, which no fit of a fold was given."""
    truth = torch.cat(Judge.of(search.setup).truth[: search.reached])
    return Predicted(probabilities, decided(probabilities, truth.ndim == 2), truth)


def _ensemble(fitted: Sequence[Fitted], search: Search, choice: Choice) -> Fitted:
    """Return the members as one model; it is calibrated by the mean of their predictions of the folds."""
    first, setup = fitted[0], search.setup
    weights = list(choice.weights.values())
    found = [search.calibration(number) for number in choice.weights]
    heat = [1.0 if one is None else one.temperature for one in found]
    options = {"members": [recipe(one.spec) for one in fitted], "weights": weights, "temperatures": heat}
    parameters = NodeClassifier(**setup.common, metric=setup.metric.name, method="ensemble", method_options=options)
    together = methods.Ensemble([one.method for one in fitted], weights, heat).eval()
    held_out = _held_out(search, torch.cat(mean_of(search, choice.weights)))
    train = torch.stack([one.split.train for one in fitted]).any(0)
    return replace(
        first,
        spec=Spec.resolve(parameters.get_params(deep=False)),
        split=Split(train, first.split.val & ~train, first.split.test & ~train),
        prediction=together.on(first.prediction.problem).solve(),
        calibration=calibrate(held_out.probabilities, held_out.truth) if setup.common.get("calibrate", True) else None,
        held_out=held_out,
    )


def recipe(spec: Spec) -> dict[str, Any]:
    """Return the arguments of `methods.build` for a method, but for the sizes of the graph, as plain values."""
    assert isinstance(spec.method, str)
    own = METHODS[spec.method].parameters
    options = {name: value for name, value in spec.values.items() if name in own}
    network = {"backbone": spec.backbone, "backbone_options": spec.network()}
    return {"method": spec.method, **network, **options, **spec.method_options}


def load(folder: str | PathLike[str], **objects: Any) -> NodeClassifier:
    """Load a classifier that `NodeClassifier.save` or `AutoClassifier.save` wrote; see `lignn.classifier.load`.

    A model with a leaderboard is loaded as an `AutoClassifier`.
    """
    found = front.load(folder, **objects)
    file = generations.current(folder) / saving.LEADERBOARD
    if not file.is_file():
        return found
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        auto = AutoClassifier(**told["parameters"])
        auto.leaderboard_ = Leaderboard.restored(told["leaderboard"])
    except (OSError, *saving.MISFITS) as error:
        raise InputError(f"{file}: is damaged ({error}); copy the model again, or delete this file") from error
    auto._take(found._model)
    return auto
