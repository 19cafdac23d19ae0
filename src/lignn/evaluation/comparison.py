"""What the runs of a comparison say: rows, differences to the network alone, and the answer in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import mean
from typing import Any

from lignn import notebook
from lignn.classifier import Report
from lignn.classifier.race.candidates import Candidate
from lignn.declarations import DEFAULT_METRIC, METRICS, MetricDeclaration
from lignn.evaluation.summary import Difference, mean_and_deviation, paired

_SIGNIFICANT = 0.05


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
    """Validation score of every epoch; one that was not scored has that of the epoch before."""
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
        idle: whether it is its first stage under another name, in all runs.
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


@dataclass(frozen=True)
class Comparison:
    """What all runs together say.

    Attributes:
        graph: facts about the graph by name.
        candidates: what was compared; the first one is the network alone.
        parameters: of `NodeClassifier`, as given.
        results: one a run.
        guess: mean test score, as tables show it, of always answering the most frequent training label; None if it is
            not known.
        metric: name of the metric of all scores.
        note: why this metric was chosen, if none was given.
    """

    graph: Mapping[str, Any]
    candidates: tuple[Candidate, ...]
    parameters: Mapping[str, Any]
    results: tuple[Result, ...]
    guess: float | None
    metric: str = DEFAULT_METRIC
    note: str | None = None

    @property
    def shown(self) -> MetricDeclaration:
        """How the metric is shown."""
        return METRICS[self.metric]

    @cached_property
    def rows(self) -> list[Row]:
        """One a candidate that was run, in their order."""
        rows: list[Row] = []
        base: dict[int, float] = {}
        for one in self.candidates:
            own = sorted((result for result in self.results if result.method == one.name), key=lambda each: each.number)
            if own:
                scores = {result.number: self.shown.factor * result.test for result in own}
                gain = paired(scores, base) if rows else None
                base = base or scores
                seconds, idle = mean(result.seconds for result in own), all(result.idle for result in own)
                labels = "labels" in one.uses
                rows.append(Row(one.name, one.title, tuple(scores.values()), gain, seconds, labels, idle))
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
                found.append(f"{row.title}, {same} of {len(row.scores)} runs: took no steps, the same as without C&S")
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
        facts = {
            "graph": self.graph,
            "backbone": self.candidates[0].backbone,
            "parameters": self.parameters,
            "guess": self.guess,
        }
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
