"""Do labels help here? The plain network against the label-inputted family, on the same splits of one graph."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from lignn.classifier import NodeClassifier, imbalance
from lignn.classifier.holdout import hold_back
from lignn.classifier.race.candidates import Candidate, candidates
from lignn.classifier.spec import Spec
from lignn.datasets.sources import Source
from lignn.declarations import AUTO, BASELINE, DEFAULT_BACKBONE, DEFAULT_METHOD, METRICS
from lignn.errors import ConvergenceWarning, ImbalanceWarning, InputError, SplitError, did_you_mean
from lignn.evaluation.comparison import Comparison, Result
from lignn.graph import Graph, Split, splits
from lignn.graph.split import PARTS
from lignn.labels import Classes, KnownLabels
from lignn.runs import experiment

_FRACTIONS = (0.6, 0.2, 0.2)


@dataclass(frozen=True)
class SplitCase:
    """One method on one split: all that its result depends on.

    Attributes:
        source: of the graph.
        method: name of the candidate or method, for people.
        number: of the run; it chooses the split and the seed.
        parameters: of `NodeClassifier`.
    """

    source: Source
    method: str
    number: int
    parameters: Mapping[str, Any]

    @property
    def id(self) -> str:
        """What tells the run from others on the same graph."""
        return f"{self.method}, run {self.number}, seed {self.parameters.get('seed', 0)}"


def chosen(
    graph: Graph, parameters: Mapping[str, Any], only: Sequence[str] | None = None, backbones: Sequence[str] = ()
) -> list[Candidate]:
    """Return what is compared on a graph: the network alone first, then the models that `auto` tries with it.

    Args:
        graph: the graph.
        parameters: of `NodeClassifier`; `backbone` is the network, and `contraction` rules out the other one.
        only: names of candidates, or of methods for all of theirs, beside the network alone; None for all.
        backbones: further networks.
    """
    Spec.resolve(NodeClassifier(**{"method": DEFAULT_METHOD, **parameters}).get_params(deep=False)).network()
    contraction = parameters.get("contraction")
    found = [
        one
        for one in candidates(graph, "best", [parameters.get("backbone", DEFAULT_BACKBONE), *backbones])
        if contraction in (None, AUTO) or one.parameters.get("contraction", contraction) == contraction
    ]
    alone, *others = sorted(found, key=lambda one: one.method != BASELINE)
    if only is None:
        return [alone, *others]
    names, methods = {one.name for one in found}, {one.method for one in found}
    for name in only:
        if name not in names | methods:
            raise InputError(f"there is no method {name!r} to compare; {did_you_mean(name, names | methods)}")
    wanted = [one for one in others if one.name in only or one.method in set(only) - names]
    if not wanted:
        raise InputError(f"there is nothing to compare {alone.name} with; name another method")
    return [alone, *wanted]


def perform(run: SplitCase) -> Result:
    """Fit on the training part of the run's split, choose the epoch by its validation part, score on its test part.

    A run whose parameters name no metric is scored by the one that `fit` chooses.
    """
    graph = run.source.read()
    split = split_of(graph, run.parameters["seed"])
    start = time.perf_counter()
    with warnings.catch_warnings(record=True, action="always", category=ConvergenceWarning) as caught:
        warnings.simplefilter("ignore", ImbalanceWarning)  # the report says the same
        classifier = NodeClassifier(**{"calibrate": False, **run.parameters}).fit(graph, split)
    seconds = time.perf_counter() - start
    sign = METRICS[classifier.metric_].sign
    curve: list[float] = []
    for record in classifier.history_.epochs:  # not every epoch is scored; the first one is
        curve.append(sign * record["val"] if "val" in record else curve[-1])
    test, val = (sign * classifier.score(getattr(split, part) & graph.labelled) for part in ("test", "val"))
    report = classifier.report(split.test & graph.labelled)
    unsolved = str(caught[-1].message) if caught else None
    idle = classifier._fitted.prediction.bound.idle
    return Result(run.method, run.number, test, val, seconds, classifier.n_iter_, tuple(curve), unsolved, report, idle)


def split_of(graph: Graph, number: int) -> Split:
    """The graph's own splits in turn if they can be scored, else 60/20/20 of its labelled nodes.

    These are divided by time if the nodes have times, else by group if they have groups, else class by class.
    Where a split has no validation labels, a part of its training labels serves as such.
    """
    own = [split for split in graph.splits if (split.test & graph.labelled).any()]
    if own:
        drawn = own[number % len(own)]
        if not (drawn.val & graph.labelled).any():
            drawn = hold_back(graph, drawn, seed=number)
    else:
        drawn = _drawn(graph, number)
    if not all((getattr(drawn, part) & graph.labelled).any() for part in PARTS):
        few = f"{int(graph.labelled.sum())} labelled nodes are too few to train, choose and test on"
        raise SplitError(f"{graph.name}: {few}; label some more")
    return drawn


def _drawn(graph: Graph, number: int) -> Split:
    if splits.has_known(graph, "time"):
        return splits.by_time(graph, _FRACTIONS)
    if splits.has_known(graph, "group"):
        return splits.grouped(graph, _FRACTIONS, seed=number)
    return splits.stratified(graph, _FRACTIONS, seed=number)


def compare(
    source: Source,
    parameters: Mapping[str, Any],
    runs: int = 5,
    jobs: int = 1,
    only: Sequence[str] | None = None,
    report: Callable[[Result], None] = lambda _: None,
    backbones: Sequence[str] = (),
    on: str | None = None,
) -> Comparison:
    """Run each candidate on `runs` splits of a graph; see `chosen`, and `experiment.run` for `jobs` and `on`."""
    graph = source.read()
    metric, note = metric_of(graph, parameters)
    compared, first, results = chosen(graph, parameters, only, backbones), parameters.get("seed", 0), []
    planned = [
        SplitCase(source, one.name, number, one.with_common({**parameters, "metric": metric, "seed": first + number}))
        for one in reversed(compared)  # slow ones first, so that workers end together
        for number in range(runs)
    ]
    for _, result in experiment.run(perform, [planned], experiment.InMemory(), jobs, on=on):
        results.append(result)
        report(result)
    guesses = [result.report.baseline for result in results if result.report is not None]
    guess = METRICS[metric].factor * mean(guesses) if guesses else None
    sizes = {name: getattr(graph, f"num_{name}") for name in ("nodes", "edges", "features", "classes")}
    facts = {"name": graph.name, **sizes, "labelled": int(graph.labelled.sum())}
    return Comparison(facts, tuple(compared), parameters, tuple(results), guess, metric, note)


def metric_of(graph: Graph, parameters: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the metric of all runs, and why it was chosen if none is given: by the first split's training labels."""
    settings = Spec.resolve(NodeClassifier(**parameters).get_params(deep=False))
    split = split_of(graph, parameters.get("seed", 0))
    known = KnownLabels.of(graph, split.train & graph.labelled)
    metric = imbalance.metric_of(settings, known)
    return metric.name, imbalance.about_metric(settings, metric, known, Classes.of(graph))
