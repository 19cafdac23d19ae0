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
from lignn.classifier.spec import Spec
from lignn.datasets.sources import Source
from lignn.declarations import (
    BASELINE,
    COMPARED,
    DEFAULT_BACKBONE,
    METHODS_WITH,
    METRICS,
    OF_NETWORK,
    OF_SOLVER,
    Compared,
)
from lignn.errors import ConvergenceWarning, ImbalanceWarning, InputError, SplitError, did_you_mean
from lignn.evaluation.comparison import Comparison, Result, entries
from lignn.graph import Graph, Split, splits
from lignn.graph.split import PARTS
from lignn.labels import Classes, KnownLabels
from lignn.runs import experiment

METHODS = tuple(COMPARED)
"""The rows for one network, in order; further networks have rows such as `sage/lignn`, and `sage` alone."""
_FRACTIONS = (0.6, 0.2, 0.2)


@dataclass(frozen=True)
class Run:
    """One method on one split: all that its result depends on.

    Attributes:
        source: of the graph.
        method: name of the method, or of a row, whose parameters have the method.
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


def plan(
    source: Source,
    parameters: Mapping[str, Any],
    runs: int,
    methods: Sequence[str] | None = None,
    backbones: Sequence[str] = (),
) -> list[Run]:
    """Every row on every split; slow methods first, so that workers end together.

    Args:
        source: of the graph.
        parameters: of `NodeClassifier`, for all rows that have them.
        runs: number of splits.
        methods: names of rows, beside the network alone; default all that fit the graph.
        backbones: further networks, beside that of `parameters`.
    """
    known = entries([parameters.get("backbone", DEFAULT_BACKBONE), *backbones])
    for method in methods or ():
        if method not in known:
            raise InputError(f"there is no method {method!r} to compare; {did_you_mean(method, known)}")
    if methods is not None and not set(methods) - {BASELINE}:
        raise InputError(f"there is nothing to compare {BASELINE} with; name another method")
    Spec.resolve(NodeClassifier(**parameters).get_params(deep=False)).network()  # refuses what no method takes
    wanted = set(_fitting(source.read(), known) if methods is None else methods) | {BASELINE}
    first = parameters.get("seed", 0)
    return [
        Run(source, name, number, {**_parameters(*known[name], parameters), "seed": first + number})
        for name in reversed(known)
        if name in wanted
        for number in range(runs)
    ]


def _fitting(graph: Graph, known: Mapping[str, tuple[Compared, str]]) -> list[str]:
    """Return the rows that a graph has the parts for."""
    features = graph.has_features
    return [
        name
        for name, (one, _) in known.items()
        if (features or one.options.get("neighbours", True))
        and (one.first_stage != "boosted" or not graph.is_multilabel)
    ]


def _parameters(row: Compared, backbone: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a row's runs."""
    own = _applicable(row.method, parameters)
    if not row.has_network:
        own = {name: value for name, value in own.items() if name not in (*OF_NETWORK, *row.of_network)}
    own |= {"method": row.method} if row.options or backbone != parameters.get("backbone", DEFAULT_BACKBONE) else {}
    own |= {"method_options": dict(row.options)} if row.options else {}
    return own | ({"backbone": backbone} if row.has_network and backbone != DEFAULT_BACKBONE else {})


def _applicable(method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the parameters that a method has; options of a solve are meant for methods with a gradient."""
    own = {name: value for name, value in parameters.items() if method in METHODS_WITH[name]}
    if method not in METHODS_WITH["gradient"]:
        own = {name: value for name, value in own.items() if name not in OF_SOLVER and value != "adaptive"}
    return own


def perform(run: Run) -> Result:
    """Fit on the training part of the run's split, choose the epoch by its validation part, score on its test part.

    A run whose parameters name no metric is scored by the one that `fit` chooses.
    """
    graph = run.source.read()
    split = split_of(graph, run.parameters["seed"])
    start = time.perf_counter()
    with warnings.catch_warnings(record=True, action="always", category=ConvergenceWarning) as caught:
        warnings.simplefilter("ignore", ImbalanceWarning)  # the report says the same
        classifier = NodeClassifier(**{"method": run.method, "calibrate": False, **run.parameters}).fit(graph, split)
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
    methods: Sequence[str] | None = None,
    report: Callable[[Result], None] = lambda _: None,
    backbones: Sequence[str] = (),
    on: str | None = None,
) -> Comparison:
    """Run every row on `runs` splits of a graph; see `plan`, and `experiment.run` for `jobs` and `on`."""
    graph = source.read()
    metric, note = metric_of(graph, parameters)
    planned, results = plan(source, {**parameters, "metric": metric}, runs, methods, backbones), []
    for _, result in experiment.run(perform, [planned], experiment.InMemory(), jobs, on=on):
        results.append(result)
        report(result)
    guesses = [result.report.baseline for result in results if result.report is not None]
    guess = METRICS[metric].factor * mean(guesses) if guesses else None
    sizes = {name: getattr(graph, f"num_{name}") for name in ("nodes", "edges", "features", "classes")}
    facts = {"name": graph.name, **sizes, "labelled": int(graph.labelled.sum())}
    backbone = parameters.get("backbone", DEFAULT_BACKBONE)
    return Comparison(facts, backbone, parameters, tuple(results), guess, metric, note, tuple(backbones))


def metric_of(graph: Graph, parameters: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the metric of all runs, and why it was chosen if none is given: by the first split's training labels."""
    settings = Spec.resolve(NodeClassifier(**parameters).get_params(deep=False))
    split = split_of(graph, parameters.get("seed", 0))
    known = KnownLabels.of(graph, split.train & graph.labelled)
    metric = imbalance.metric_of(settings, known)
    return metric.name, imbalance.about_metric(settings, metric, known, Classes.of(graph))
