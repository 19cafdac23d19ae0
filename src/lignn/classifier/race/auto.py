"""Tries models on folds of the known labels, and fits the best of them, or an ensemble, on all."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lignn import methods
from lignn.classifier import columns, imbalance
from lignn.classifier.calibration import Outcome as Predicted
from lignn.classifier.calibration import calibrate
from lignn.classifier.holdout import checked_split
from lignn.classifier.model import Fitted
from lignn.classifier.race.candidates import Quality, candidates
from lignn.classifier.race.direction import chosen
from lignn.classifier.race.fold_fits import Outcome, Setup, Task, fit
from lignn.classifier.race.folds import folds
from lignn.classifier.race.greedy import Choice, choose, mean_of
from lignn.classifier.race.judge import Judge, decided
from lignn.classifier.race.leaderboard import leaderboard
from lignn.classifier.race.search import Search
from lignn.classifier.race.work import BUDGET
from lignn.classifier.spec import Spec, check_values
from lignn.declarations import DEFAULT_QUALITY, METHODS, METHODS_WITH, OF_LOSS, OF_RACE, SHARED
from lignn.errors import ConfigError, InputError
from lignn.graph import Graph, Split
from lignn.labels import Classes

FOLDS: dict[Quality, int] = {"fast": 3, "good": 4, "best": 8}
"""Parts that the known labels are divided into."""
_OF_VALIDATION = 2
"""Parts of the validation labels of a split: some choose the epoch, the others score."""
_SEARCHING = 0.75
"""Share of the time that the search may take; the rest is for the last fit."""

_SHORT = 60.0
_LITTLE = 3e11
"""Seconds, and counted work, below which all fits are in this process: others take seconds to start."""


@dataclass(frozen=True)
class Standing:
    """How far a race is.

    Attributes:
        words: what was fitted last.
        done: number of fits so far.
        total: the number of fits that are planned.
        leader: title of the candidate that leads so far.
        left: seconds that the other fits take, if they take as long as those so far.
    """

    words: str
    done: int
    total: int
    leader: str = ""
    left: float = 0.0


Progress = Callable[[Standing], None]
"""Called after every fit."""


def race(
    given: Mapping[str, Any],
    graph: Graph,
    split: Split | None,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Fitted:
    """Search for the best model of a graph, and fit it.

    Candidates are tried on folds of the known labels; the better half goes on to more folds, and so on. The best one is
    fitted on all labels, or a greedy ensemble of at most five, if ensembles are better on folds that they were not
    chosen on. Test labels are never looked at. Validation labels of a split choose the model, and are trained on only
    with `refit=True`.

    Args:
        given: parameters of `NodeClassifier`; those of single methods are for all candidates that have them.
        graph: with labels; y = -1 is unlabelled.
        split: whose training labels to learn from; None for all known labels.
        progress: called after every fit.
        checkpoint: file to write the results so far to, and to go on from if it is there.
    """
    start = clock.monotonic()
    given = {name: value for name, value in given.items() if value is not None}
    time, jobs = given.get("time"), given.get("jobs", 1)
    setup = setup_of(given, graph, split)
    direction = chosen(setup)
    graph, setup = direction.graph, replace(setup, graph=direction.graph)
    search = Search(setup, checkpoint)

    def tell(task: Task, outcome: Outcome) -> None:
        if progress is not None:
            words = f"{setup.candidates[task.candidate].title}, {outcome.failure or f'{outcome.seconds:.1f} s'}"
            done, total = len(search.results), max(search.planned, len(search.results))
            left = (clock.monotonic() - start) / max(done, 1) * (total - done)
            progress(Standing(words, done, total, search.leader, left))

    limit = math.inf if time is None else time
    alone = limit < _SHORT or search.work < _LITTLE
    search.run(1 if alone else jobs, None if time is None else start + _SEARCHING * limit, tell)
    if not search.alive:
        failures = [one.failure for one in search.results.values() if one.failure]
        raise InputError(f"{graph.name}: no model could be fitted; the first said: {failures[0]}")
    choice = choose(search, Judge.of(setup), start + limit - clock.monotonic())
    members = [fit(setup.spec(setup.candidates[number]), graph, split) for number in choice.weights]
    found = _single(members[0], search, choice) if len(members) == 1 else _ensemble(members, search, choice)
    if OF_LOSS in given:
        given[OF_LOSS] = imbalance.by_name(found.classes, given[OF_LOSS])
    board = leaderboard(search, choice, given, direction.told)
    return replace(found, leaderboard=board, interrupted=search.interrupted)


def setup_of(given: Mapping[str, Any], graph: Graph, split: Split | None) -> Setup:
    """Return what to search."""
    common = {name: value for name, value in given.items() if name not in (*OF_RACE, "method")}
    check_values(common | {name: given[name] for name in OF_RACE if name in given})
    for name in ("backbone", "method_options", "backbone_options"):
        if name in common:
            raise ConfigError(f"{name}: auto chooses it; leave it out, or name a method")
    spec = Spec.resolve({name: value for name, value in common.items() if name in SHARED})
    quality, networks = given.get("quality", DEFAULT_QUALITY), given.get("backbones")
    known = Split(graph.labelled, torch.zeros_like(graph.labelled), ~graph.labelled) if split is None else split
    checked_split(graph, known)
    if spec.values["features"] == "raw":
        columns.check_raw(graph)
    found = tuple(candidates(graph, quality, _names(networks)))
    parts = _OF_VALIDATION if (known.val & graph.labelled).any() else FOLDS[quality]
    divided = tuple(folds(graph, known, parts, spec.values["seed"]))
    if not divided:
        raise InputError(f"{graph.name}: too few labels to choose a model by; label some more, or name a method")
    classes = Classes.of(graph)
    labels = classes.known(graph, known.train & graph.labelled, spec.dtype)
    imbalance.weighted(spec, classes, labels)  # refuses weights of classes that are not there
    return Setup(graph, divided, found, common, imbalance.metric_of(spec, labels), BUDGET[quality])


def _names(given: str | Sequence[str] | None) -> list[str] | None:
    """Return names that are given as a list, or as a text with commas."""
    if given is None:
        return None
    return [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)


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
    parameters = {**setup.common, "metric": setup.metric.name, "method": "ensemble", "method_options": options}
    parameters = {name: value for name, value in parameters.items() if "ensemble" in METHODS_WITH[name]}
    together = methods.Ensemble([one.method for one in fitted], weights, heat).eval()
    held_out = _held_out(search, torch.cat(mean_of(search, choice.weights)))
    train = torch.stack([one.split.train for one in fitted]).any(0)
    return replace(
        first,
        spec=Spec.resolve(parameters),
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
