"""What a search found: every candidate with its score, and what helps on this graph, in words."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lignn.classifier.race.candidates import Part
from lignn.classifier.race.findings import in_short, majority, sentences
from lignn.classifier.race.greedy import SURE, Choice, mean_of
from lignn.classifier.race.judge import Judge, error_of
from lignn.classifier.race.search import Search
from lignn.declarations import DEFAULT_QUALITY, METRICS, MetricDeclaration


@dataclass(frozen=True)
class Row:
    """A candidate.

    Attributes:
        name: its name.
        title: how people write it.
        uses: what it uses of a graph.
        score: cross-validated score as tables show it; None if it has none.
        error: standard error of the score, from resampled nodes; None if it is not known.
        folds: number of folds that it was tried on.
        seconds: processor time of a fit, mean over folds.
        weight: its weight in the model, 0 for those that are no part of it.
        note: why it has no score, or what else is to be known; empty if there is nothing.
    """

    name: str
    title: str
    uses: tuple[Part, ...]
    score: float | None
    error: float | None
    folds: int
    seconds: float
    weight: float
    note: str = ""

    @property
    def shown(self) -> str:
        """The score with its error."""
        if self.score is None:
            return "–"
        return f"{self.score:.2f}" + ("" if self.error is None else f" ± {self.error:.2f}")


@dataclass(frozen=True)
class Leaderboard:
    """All candidates, the best first.

    Attributes:
        rows: the candidates; those that were tried on more folds come first.
        metric: name of the metric of all scores.
        scored: number of labels that scored the candidates that were tried on all folds.
        guess: score of always answering the most frequent training label.
        findings: what helps here, in sentences.
        notes: what else is to be known, in sentences.
        quality: how many candidates there were.
        seed: seed of folds and fits.
        stopped: whether the time was over before all folds were done.
        given: parameters of the race, but for objects.
        score, error: score of the model on held-out labels, and its standard error. That of an ensemble is of ensembles
            that were chosen without the labels that score them.
        helps: whether edges and labels help, in one sentence.
        runner_up: title of the best candidate that is no part of the model; empty if there is none.
        arguments: arguments of `lignn fit` that train it.
        depends: share of the model's predictions that depend on where a solve starts, if it is more than 1 %.
    """

    rows: tuple[Row, ...]
    metric: str
    scored: int
    guess: float
    findings: tuple[str, ...]
    notes: tuple[str, ...]
    quality: str
    seed: int
    stopped: bool
    given: Mapping[str, Any] = field(default_factory=dict)
    score: float | None = None
    error: float | None = None
    helps: str = ""
    runner_up: str = ""
    arguments: tuple[str, ...] = ()
    depends: float = 0.0

    @property
    def shown(self) -> MetricDeclaration:
        """How the metric is shown."""
        return METRICS[self.metric]

    @property
    def members(self) -> tuple[Row, ...]:
        """The candidates that the model consists of."""
        return tuple(row for row in self.rows if row.weight > 0)

    @property
    def headline(self) -> str:
        """What the model is, in words."""
        if len(self.members) == 1:
            return f"The model is {self.members[0].title}"
        parts = ", ".join(f"{row.title} ({row.weight:.0%})" for row in self.members)
        return f"The model is an ensemble of {parts}"

    def lines(self, command: str = "lignn fit GRAPH -o MODEL") -> list[str]:
        """Return what was found, why, and the command for the runner-up: one sentence each.

        Args:
            command: the command without a method.
        """
        error = "" if self.error is None else f" ± {self.error:.2f}"
        score = "" if self.score is None else f": {self.shown.in_tables} {self.score:.2f}{error}"
        chosen = ", chosen without them" * (len(self.members) > 1)
        found = [
            f"{self.headline}{score} on {self.scored:,} held-out labels{chosen}.",
            *[self.helps] * bool(self.helps),
        ]
        if self.depends:
            share = f"{max(round(100 * self.depends), 1)} %"
            found.append(f"At {share} of the nodes its answer depends on where it starts to compute; it leads clearly.")
        if self.runner_up:
            arguments = shlex.join([*shlex.split(command), *self.arguments])
            found.append(f"Next best{' without that' * bool(self.depends)}: {self.runner_up}, by {arguments}")
        return found

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return header and rows of the table for people: the candidates that were tried and are none of the others."""
        header = ["", f"{self.shown.in_tables}", "folds", "s", "uses", "weight"]
        rows = [
            [
                row.title,
                row.shown,
                str(row.folds),
                f"{row.seconds:.1f}" if row.folds else "–",
                "".join(part[0].upper() for part in row.uses),
                f"{row.weight:.0%}" if row.weight else "",
            ]
            for row in self.rows
            if row.folds and not row.note
        ]
        return header, rows

    @property
    def legend(self) -> str:
        """What the columns of the table are, in words."""
        return (
            "Cross-validated score ± standard error, number of folds, processor seconds (s) of a fit; "
            "uses: F features, E edges (neighbours' features), L known labels as inputs; weight in the model."
        )

    @property
    def remarks(self) -> list[str]:
        """Notes on single candidates, those with the same note together, and those on the search, in sentences."""
        of: dict[str, list[str]] = {}
        for row in self.rows:
            if row.note:
                of.setdefault(row.note, []).append(row.title)
        return [f"{', '.join(titles)}: {note}." for note, titles in of.items()] + [f"{note}." for note in self.notes]

    def __str__(self) -> str:
        guess = f"Always the most frequent label: {self.guess:.2f}."
        rows = [f"{row.title}: {row.shown}" for row in self.rows if row.score is not None and not row.note]
        return "\n".join([*self.lines(), *rows, guess, *self.findings, *self.remarks])

    def plain(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    @classmethod
    def restored(cls, plain: dict[str, Any]) -> Leaderboard:
        """Return what `plain` returned, or what lignn 0.2 wrote."""
        if "leaderboard" in plain:
            before = plain["parameters"]
            more = {**before.pop("parameters", None)} if before.get("parameters") else {}
            plain = plain["leaderboard"] | {"given": {n: v for n, v in (before | more).items() if v is not None}}
        rows = tuple(Row(**(row | {"uses": tuple(row["uses"])})) for row in plain["rows"])
        texts = {name: tuple(plain.get(name, ())) for name in ("findings", "notes", "arguments")}
        return cls(**(plain | texts | {"rows": rows}))


def leaderboard(search: Search, choice: Choice, given: Mapping[str, Any], direction: str = "") -> Leaderboard:
    """Summarise a search whose model was chosen, of a race with these parameters, and what direction edges have."""
    setup, judge = search.setup, Judge.of(search.setup)
    factor, sign = judge.metric.declared.factor, judge.metric.declared.sign
    order = sorted(range(len(setup.candidates)), key=lambda each: _rank(search, judge, each))
    folds = range(search.reached)
    guess = sign * factor * judge.score(majority(search, folds), folds)
    told, notes = [*[direction] * bool(direction), *sentences(search, judge)], []
    if choice.ensemble is not None:
        more = "kept" if len(choice.weights) > 1 else "not kept"
        single, ensemble = (sign * factor * value for value in (choice.single, choice.ensemble))
        told.append(
            f"On folds they were not chosen on, an ensemble scores {ensemble:.2f}, a single model {single:.2f}: {more}."
        )
    if search.stopped:
        notes.append("the time was over before all candidates were tried on all folds")
    best = search.ranked(judge, search.alive, search.reached)[0]
    if len(choice.weights) == 1 and best not in choice.weights:
        notes.append(f"{setup.candidates[best].title} scored higher; too little time was left to fit it again")
    return Leaderboard(
        tuple(_row(search, judge, each, choice) for each in order),
        judge.metric.name,
        sum(len(judge.truth[fold]) for fold in folds),
        guess,
        tuple(told),
        tuple(notes),
        given.get("quality", DEFAULT_QUALITY),
        setup.common.get("seed", 0),
        search.stopped,
        {name: value for name, value in given.items() if _is_plain(value)},
        sign * factor * (choice.single if len(choice.weights) == 1 or choice.ensemble is None else choice.ensemble),
        error_of(judge, folds, mean_of(search, choice.weights)),
        in_short(search, judge),
        "" if choice.runner_up is None else setup.candidates[choice.runner_up].title,
        () if choice.runner_up is None else tuple(setup.candidates[choice.runner_up].arguments),
        max((share for each in choice.weights if (share := search.depends(each)) > SURE), default=0.0),
    )


def _is_plain(value: Any) -> bool:
    """Return whether JSON has the value."""
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


def _rank(search: Search, judge: Judge, candidate: int) -> tuple[float, float, float]:
    """Return what orders the rows: those compared last come first, then the score; a row of its base comes last."""
    folds = search.folds_of(candidate)
    if search.is_idle(candidate):
        return math.inf, 0.0, 0.0
    score, gain = judge.rank(search.predictions(candidate, folds), folds) if folds else (-float("inf"), 0.0)
    return -len(folds), -score, -gain


def _row(search: Search, judge: Judge, number: int, choice: Choice) -> Row:
    candidate, folds = search.setup.candidates[number], search.folds_of(number)
    tried = [one for task, one in search.results.items() if task.candidate == number]
    failures = [one.failure for one in tried if one.failure]
    note = failures[0] if failures else ""
    if search.is_idle(number):
        base = search.setup.inside(number)
        note = f"took no steps, so it is {'its base' if base is None else search.setup.candidates[base].title}"
    elif number in search.behind:
        note = "not tried: others are ahead of it in cheaper ways"
    elif number in search.beyond:
        note = "not tried: it would take too long on this graph; --quality best tries it"
    elif not tried:
        note = "not tried: the time was over"
    score = error = None
    if folds:
        declared = judge.metric.declared
        score = declared.sign * declared.factor * judge.score(search.predictions(number, folds), folds)
        error = error_of(judge, folds, search.predictions(number, folds))
    seconds = sum(one.seconds for one in tried) / max(len(tried), 1)
    weight = choice.weights.get(number, 0.0)
    return Row(candidate.name, candidate.title, candidate.uses, score, error, len(folds), seconds, weight, note)
