"""Grid search: the settings that the validation score chooses, beside the paper's choice (Tables 3 and 4)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from lignn.evaluation.page import Block, Table
from lignn.evaluation.summary import mean_and_deviation
from lignn.runs.records import Record
from lignn.studies import published
from lignn.studies.results import NOT_RUN, Results

Settings = dict[str, Any]


@dataclass(frozen=True)
class Candidate:
    """One point of the grid.

    Attributes:
        settings: the settings in which candidates differ, by their short names.
        runs: records by seed; the seed is also the number of the split.
    """

    settings: Settings
    runs: dict[int, Record]

    def scores(self, part: str, seeds: Iterable[int]) -> list[float]:
        """Return the scores of these runs."""
        return [self.runs[seed]["scores"][part] for seed in seeds]


@dataclass(frozen=True)
class Search:
    """The grid of one row on one dataset.

    Attributes:
        candidates: candidates with records.
        planned: number of planned candidates.
        common: seeds that all candidates have; other runs are not compared.
    """

    candidates: list[Candidate]
    planned: int
    common: list[int]

    @classmethod
    def of(cls, records: Sequence[Record], planned: Sequence[Mapping[str, Any]] = ()) -> Search:
        """Group the records of one row and dataset by the settings that differ; `planned` are its planned configs."""
        configs = [_flat(config) for config in (*planned, *(record["config"] for record in records))]
        names = dict.fromkeys(name for settings in configs for name in settings)
        varied = [name for name in names if len({json.dumps(settings.get(name)) for settings in configs}) > 1]
        points = [{name.rpartition(".")[2]: settings.get(name) for name in varied} for settings in configs]
        groups: dict[str, Candidate] = {}
        for settings, record in zip(points[len(planned) :], records, strict=True):
            candidate = groups.setdefault(json.dumps(settings), Candidate(settings, {}))
            candidate.runs[record["seed"]] = record
        first, *others = groups.values()
        common = [key for key in first.runs if all(key in other.runs for other in others)]
        return cls([first, *others], len({json.dumps(settings) for settings in points}), common)

    @property
    def chosen(self) -> Candidate | None:
        """Candidate with the best mean validation score over the common runs; None if there are none."""
        return max(self.candidates, key=lambda one: mean(one.scores("val", self.common))) if self.common else None

    @property
    def partial(self) -> bool:
        """Whether a part of the grid was not run."""
        return len(self.candidates) < self.planned

    def find(self, settings: Settings | None) -> Candidate | None:
        """Return the candidate with these settings; None if it was not run."""
        wanted = (settings or {}).items()
        return next((one for one in self.candidates if wanted and wanted <= one.settings.items()), None)


def _flat(config: Mapping[str, Any]) -> Settings:
    """Return the settings of backbone and method by dotted name; seed and split are not searched."""
    return {f"{part}.{key}": value for part in ("backbone", "method") for key, value in config[part].items()}


def view(results: Results) -> list[Block]:
    """Return a table of the settings chosen for each row and dataset, their scores, and the paper's choice."""
    lines, same, known, partial = [], 0, 0, 0
    for dataset in results.datasets:
        for row in results.rows:
            own = [record for record in results.good if (record["row"], record["dataset"]) == (row, dataset)]
            if not own:
                continue
            planned = [run.plain() for run in results.planned.values() if run.cell == (row, dataset)]
            search, paper = Search.of(own, planned), published.chosen(results.study, row, dataset)
            lines.append((f"{dataset}, {row}", *_line(search, paper)))
            partial += search.partial
            known += paper is not None and search.chosen is not None
            same += search.chosen is not None and search.find(paper) is search.chosen
    if not lines:
        return [NOT_RUN]
    count = f"{same} of {known} searches for which it gives a choice"
    said = f"The validation score chooses what the paper chose in {count}."
    said += f" {partial} of {len(lines)} searches have only a part of their grid." if partial else ""
    header = ("", "settings tried", "runs in common", "chosen here", "val", "test", "paper's choice", "val", "test")
    caption = (
        "Settings with the best mean validation F1-micro (%) over the splits that all settings tried have in common; "
        "mean ± standard deviation over those"
    )
    return [said, Table(caption, header, lines)]


def _line(search: Search, paper: Settings | None) -> tuple[str, ...]:
    count = f"{len(search.candidates)} of {search.planned}" + (", partial" if search.partial else "")
    chosen, theirs = search.chosen, search.find(paper)
    ours = ("no split in common", "", "") if chosen is None else (_named(chosen.settings), *_scores(search, chosen))
    choice = "" if paper is None else _named(paper)
    beside = _scores(search, theirs) if theirs and search.common else ("", "") if paper is None else (NOT_RUN, "")
    return (count, str(len(search.common)), *ours, choice, *beside)


def _named(settings: Settings) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "all the same"


def _scores(search: Search, candidate: Candidate) -> tuple[str, str]:
    val, test = (candidate.scores(part, search.common) for part in ("val", "test"))
    return mean_and_deviation(100 * score for score in val), mean_and_deviation(100 * score for score in test)
