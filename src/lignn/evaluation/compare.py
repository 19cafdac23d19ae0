"""Do labels help here? The plain network against the label-inputted family, on the same splits of one graph."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import mean
from typing import Any

from lignn import notebook
from lignn.classifier import NodeClassifier, Report, imbalance
from lignn.classifier.holdout import hold_back
from lignn.classifier.settings import Settings
from lignn.datasets.sources import Source
from lignn.declarations import (
    BASELINE,
    COMPARED,
    DEFAULT_BACKBONE,
    DEFAULT_METRIC,
    METHODS_WITH,
    METRICS,
    OF_SOLVER,
    Compared,
    MetricDeclaration,
    written,
)
from lignn.errors import ConvergenceWarning, ImbalanceWarning, InputError, SplitError, did_you_mean
from lignn.evaluation import workers
from lignn.evaluation.summary import Difference, mean_and_deviation, paired
from lignn.graph import Graph, Split, splits
from lignn.graph.split import PARTS
from lignn.labels import Classes, KnownLabels
from lignn.methods.tabular import boosting_is_here

METHODS = tuple(COMPARED)
"""The rows for one network, in order; further networks have rows such as `sage/lignn`, and `sage` alone."""
_FRACTIONS = (0.6, 0.2, 0.2)
_SIGNIFICANT = 0.05


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


@dataclass(frozen=True)
class Result:
    """What a run gave; scores are those of the comparison's metric, with their usual sign."""

    method: str
    number: int
    test: float
    val: float
    seconds: float
    epochs: int
    curve: tuple[float, ...]
    """Validation score of every epoch that was scored."""
    unsolved: str | None = None
    """What is to be said of an equilibrium that was not reached."""
    report: Report | None = None
    """Scores of the test nodes by class, and of a guess."""
    idle: bool = False
    """Whether a second stage took no steps, so that this is its base under another name."""


@dataclass(frozen=True)
class Row:
    """A method over all runs: test scores as tables show them, most in percent, and seconds.

    Attributes:
        method: name of the row.
        title: how people write it.
        scores: one a run.
        difference: to the network alone.
        seconds: mean time of a run.
        labels: whether known labels are inputs.
        idle: whether it is the network alone under another name, in all runs.
    """

    method: str
    title: str
    scores: tuple[float, ...]
    difference: Difference | None
    seconds: float
    labels: bool = True
    idle: bool = False

    @property
    def score(self) -> str:
        """`mean ± standard deviation` of the test scores."""
        return mean_and_deviation(self.scores)

    @property
    def gain(self) -> str:
        """The difference to the plain network, with its 95 % interval."""
        return "–" if self.difference is None else self.difference.with_interval


def entries(backbones: Sequence[str]) -> dict[str, tuple[Compared, str]]:
    """Return the rows for some networks by name: what is compared, and the network. The first one has short names."""
    first, *others = backbones
    found = {name: (one, first) for name, one in COMPARED.items()}
    for other in others:
        for name, one in COMPARED.items():
            if one.has_network:
                found[other if name == BASELINE else f"{other}/{name}"] = (one, other)
    return found


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
    Settings.of(NodeClassifier(**parameters).get_params(deep=False)).network()  # refuses what no method takes
    wanted = set(_fitting(source.read(), known) if methods is None else methods) | {BASELINE}
    first = parameters.get("seed", 0)
    return [
        Run(source, name, number, {**_parameters(*known[name], parameters), "seed": first + number})
        for name in reversed(known)
        if name in wanted
        for number in range(runs)
    ]


def _fitting(graph: Graph, known: Mapping[str, tuple[Compared, str]]) -> list[str]:
    """Return the rows that a graph has the parts for, without boosted trees if they are not installed."""
    features = graph.num_features > 0 or graph.table is not None
    trees = boosting_is_here() and not graph.is_multilabel
    return [
        name
        for name, (one, _) in known.items()
        if (features or one.options.get("neighbours", True)) and (trees or one.method != "boosted")
    ]


def _parameters(row: Compared, backbone: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a row's runs."""
    own = _applicable(row.method, parameters)
    own |= {"method": row.method} if row.options or backbone != parameters.get("backbone", DEFAULT_BACKBONE) else {}
    own |= {"method_options": dict(row.options)} if row.options else {}
    return own | ({"backbone": backbone} if row.has_network and backbone != DEFAULT_BACKBONE else {})


def _applicable(method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the parameters that a method has; options of a solve are meant for methods with a gradient."""
    own = {name: value for name, value in parameters.items() if method in METHODS_WITH[name]}
    if method not in METHODS_WITH["gradient"]:
        own = {name: value for name, value in own.items() if name not in OF_SOLVER and value != "adaptive"}
    return own


def execute(runs: Sequence[Run], jobs: int, report: Callable[[Result], None]) -> list[Result]:
    """All results, from `jobs` processes with one thread each; in this process if there is to be one."""
    done = ((run, perform(run)) for run in runs) if jobs == 1 else workers.each(perform, runs, jobs)
    results = []
    for run, result in done:
        if isinstance(result, workers.Failure):
            raise result.exception(f"{run.method}, run {run.number}")
        results.append(result)
        report(result)
    return results


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


@dataclass(frozen=True)
class Comparison:
    """What all runs together say.

    Attributes:
        graph: facts about the graph by name.
        backbone: name of the network.
        parameters: of `NodeClassifier`, as given.
        results: one a run.
        guess: mean test score, as tables show it, of always answering the most frequent training label; None if it is
            not known.
        metric: name of the metric of all scores.
        note: why this metric was chosen, if none was given.
        others: names of further networks.
    """

    graph: Mapping[str, Any]
    backbone: str
    parameters: Mapping[str, Any]
    results: tuple[Result, ...]
    guess: float | None
    metric: str = DEFAULT_METRIC
    note: str | None = None
    others: tuple[str, ...] = ()

    @property
    def shown(self) -> MetricDeclaration:
        """How the metric is shown."""
        return METRICS[self.metric]

    @cached_property
    def rows(self) -> list[Row]:
        """One a row, in the order of `entries`."""
        rows: list[Row] = []
        base: dict[int, float] = {}
        for name, (compared, network) in entries([self.backbone, *self.others]).items():
            own = sorted((result for result in self.results if result.method == name), key=lambda one: one.number)
            if own:
                scores = {result.number: self.shown.factor * result.test for result in own}
                base = scores if name == BASELINE else base
                gain = None if name == BASELINE else paired(scores, base)
                seconds, idle = mean(result.seconds for result in own), all(result.idle for result in own)
                shown = compared.title.format(written(network))
                rows.append(Row(name, shown, tuple(scores.values()), gain, seconds, compared.labels, idle))
        return rows

    @property
    def reports(self) -> dict[str, list[Report]]:
        """The reports of all runs, the first run first, by title of the method."""
        found: dict[str, list[Report]] = {}
        for row in self.rows:
            own = sorted((one for one in self.results if one.method == row.method), key=lambda one: one.number)
            reports = [one.report for one in own if one.report is not None]
            if reports:
                found[row.title] = reports
        return found

    @property
    def verdict(self) -> str:
        """The answer in a sentence; "yes" and "no" hold for all methods tried at once (Bonferroni)."""
        base, *others = self.rows
        others = [row for row in others if row.labels and not row.idle]
        sign, compared = self.shown.sign, ((row, row.difference) for row in others if row.difference)
        if not others:
            return "Not here: no method that is given labels did anything beyond the network."
        best, gain = max(compared, key=lambda pair: sign * pair[1].mean)
        size = f"{abs(gain.mean):.3f}" if self.shown.lower_is_better else f"{abs(gain.mean):.1f} points"
        gap = f"{best.title} is {size} {'above' if gain.mean >= 0 else 'below'} {base.title} alone"
        if gain.count == 1:
            return f"In this one run {gap}; more runs (--runs 5) tell how sure that is."
        basis = f"{gain}; {gain.count} runs, best of {len(others)}"
        if gain.p is None or gain.p * len(others) >= _SIGNIFICANT:
            return f"Not clearly: at best, {gap}, which may be chance ({basis})."
        if sign * gain.mean > 0:
            return f"Yes: {gap} ({basis})."
        return f"No: every method that is given labels is worse; at best, {gap} ({basis})."

    @property
    def winner(self) -> str:
        """Which row is best, in a sentence; it is named as such only if it is above all others beyond chance."""
        rows = [row for row in self.rows if not row.idle]
        sign = self.shown.sign
        best, *others = sorted(rows, key=lambda row: -sign * mean(row.scores))
        if not others or len(best.scores) == 1:
            return f"{best.title} has the best score of {len(rows)} models, {best.score}."
        ours = dict(enumerate(best.scores))
        near = []
        for row in others:
            gap = paired(ours, dict(enumerate(row.scores)))
            clear = gap is not None and gap.p is not None and gap.p * len(others) < _SIGNIFICANT
            near += [] if clear else [row.title]
        if not near:
            return f"{best.title} is the best of {len(rows)} models, beyond chance."
        return f"{best.title} has the best mean, {best.score}, but chance does not rule out: {', '.join(near)}."

    @property
    def reservations(self) -> list[str]:
        """What else is to be known: methods whose equilibrium was not reached, or that are others by another name."""
        found = []
        for row in self.rows:
            same = sum(result.idle for result in self.results if result.method == row.method)
            if same:
                found.append(
                    f"{row.title}, {same} of {len(row.scores)} runs: took no steps, the same as the network alone"
                )
            messages = [result.unsolved for result in self.results if result.method == row.method and result.unsolved]
            if messages:
                found.append(f"{row.title}, {len(messages)} of {len(row.scores)} runs: {messages[0]}")
        return found

    def _repr_html_(self) -> str:
        header = ("", f"test {self.shown.in_tables}", f"against {self.rows[0].title}", "seconds")
        rows = [(row.title, row.score, row.gain, f"{row.seconds:.1f}") for row in self.rows]
        return notebook.table(header, rows, below=f"Do labels help here? {self.verdict}")

    def plain(self) -> dict[str, Any]:
        """Everything as plain values."""
        rows = [
            {"method": row.method, "title": row.title, "test": row.scores, "seconds": row.seconds, "idle": row.idle}
            | {"difference": None if row.difference is None else asdict(row.difference)}
            for row in self.rows
        ]
        facts = {"graph": self.graph, "backbone": self.backbone, "parameters": self.parameters, "guess": self.guess}
        runs = [
            {**vars(result), "report": None if result.report is None else result.report.plain()}
            for result in self.results
        ]
        return facts | {
            "metric": self.metric,
            "verdict": self.verdict,
            "winner": self.winner,
            "rows": rows,
            "runs": runs,
        }


def compare(
    source: Source,
    parameters: Mapping[str, Any],
    runs: int = 5,
    jobs: int = 1,
    methods: Sequence[str] | None = None,
    report: Callable[[Result], None] = lambda _: None,
    backbones: Sequence[str] = (),
) -> Comparison:
    """Run every row on `runs` splits of a graph; see `plan`."""
    graph = source.read()
    metric, note = metric_of(graph, parameters)
    results = execute(plan(source, {**parameters, "metric": metric}, runs, methods, backbones), jobs, report)
    guesses = [result.report.baseline for result in results if result.report is not None]
    guess = METRICS[metric].factor * mean(guesses) if guesses else None
    sizes = {name: getattr(graph, f"num_{name}") for name in ("nodes", "edges", "features", "classes")}
    facts = {"name": graph.name, **sizes, "labelled": int(graph.labelled.sum())}
    backbone = parameters.get("backbone", DEFAULT_BACKBONE)
    return Comparison(facts, backbone, parameters, tuple(results), guess, metric, note, tuple(backbones))


def metric_of(graph: Graph, parameters: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the metric of all runs, and why it was chosen if none is given: by the first split's training labels."""
    settings = Settings.of(NodeClassifier(**parameters).get_params(deep=False))
    split = split_of(graph, parameters.get("seed", 0))
    known = KnownLabels.of(graph, split.train & graph.labelled)
    metric = imbalance.metric_of(settings, known)
    return metric.name, imbalance.about_metric(settings, metric, known, Classes.of(graph))
