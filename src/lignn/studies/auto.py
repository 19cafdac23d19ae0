"""Study of `auto`: the model it finds against the single candidate that is best on other splits.

`python -m lignn.studies.auto` runs what has no record yet and writes the report. All candidates are run on splits of
seed 7, which choose the single one; `auto` and all candidates that were best somewhere are run on splits of seed 42.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch

from lignn import datasets
from lignn.classifier import NodeClassifier
from lignn.classifier.race.candidates import candidates
from lignn.errors import ConvergenceWarning, ImbalanceWarning
from lignn.evaluation import page
from lignn.evaluation.summary import mean_and_deviation, paired
from lignn.graph import Graph, Split, splits
from lignn.runs import records
from lignn.runs.records import OK, Record
from lignn.studies import runner

STUDY, AUTO = "auto", "auto"
CHOOSING, REPORTING = 7, 42
TABULAR = "tabular"
DATASETS = (
    TABULAR,
    "digits",
    "chameleon",
    "cora",
    "citeseer",
    "squirrel",
    "amazon_photo",
    "weekday",
    "pubmed",
    "coauthor_physics",
)
"""The graphs, the quickest first."""
_LABELS, _VALIDATION, _TEST = 10, 500, 1000
_SHARE, _OF_A_SHARE = "60%", (0.6, 0.2, 0.2)
_WITH_A_SHARE = ("weekday",)
"""Graphs for which 10 labels a class say nothing: 60 % of the nodes are for training, 20 % for validation and test."""
_NODES, _FEATURES, _DEGREE = 2000, 12, 4


@dataclass(frozen=True)
class Case:
    """One fit on one split.

    Attributes:
        row: `auto`, or the name of a candidate.
        dataset: name of the graph.
        seed: seed of the splits.
        run: number of the split, and the seed of the fit.
        quality: of `auto`, and of the list of candidates.
        labels: number of training labels per class, or 60% of all.
        defaults: hash of the presets, which change from version to version.
    """

    row: str
    dataset: str
    seed: int
    run: int
    quality: str = "good"
    labels: int | str = _LABELS
    defaults: str = field(default_factory=records.identity_of_presets)

    @classmethod
    def of(cls, row: str, dataset: str, seed: int, run: int) -> Case:
        """Return a case with the labels of its graph."""
        return cls(row, dataset, seed, run, labels=_SHARE if dataset in _WITH_A_SHARE else _LABELS)

    @property
    def description(self) -> Record:
        """What a record says about the case besides its result; its id is a hash of all attributes."""
        config = asdict(self)
        known = {"study": STUDY, "row": self.row, "dataset": self.dataset, "seed": self.run, "splits": self.seed}
        return {"id": records.identity_of(config), **known, "config": config}


def tabular() -> Graph:
    """Return a graph whose labels follow products of features; its edges are random."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(_NODES, _FEATURES))
    y = 2 * (x[:, 0] * x[:, 1] > 0) + (x[:, 2] > 0)
    edges = rng.integers(_NODES, size=(2, _DEGREE * _NODES // 2))
    edges = edges[:, edges[0] != edges[1]]
    return Graph(edges, x=torch.from_numpy(x).float(), y=y.astype(np.int64), name=TABULAR).to_undirected()


def load(dataset: str) -> Graph:
    """Return a graph of the study by its name."""
    return tabular() if dataset == TABULAR else datasets.load(dataset)


def split_of(graph: Graph, case: Case) -> Split:
    """Return the split of a case: some labels per class, 500 for validation and 1000 for test, fewer if there are."""
    if case.labels == _SHARE:
        return splits.stratified(graph, _OF_A_SHARE, seed=1000 * case.seed + case.run)
    assert isinstance(case.labels, int)
    left = int(graph.labelled.sum()) - case.labels * graph.num_classes
    val, test = min(_VALIDATION, left // 3), min(_TEST, left - left // 3)
    return splits.per_class(graph, case.labels, val, test, seed=case.seed, runs=case.run + 1)[case.run]


def perform(case: Case) -> dict[str, Any]:
    """Fit, and return test and validation score, the processor time, and for `auto` what it is made of."""
    graph = load(case.dataset)
    split, start = split_of(graph, case), time.process_time()
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, ImbalanceWarning):
            warnings.simplefilter("ignore", kind)
        if case.row == AUTO:
            classifier = NodeClassifier(method="auto", quality=case.quality, seed=case.run).fit(graph, split)
        else:
            found = {one.name: one for one in candidates(graph, case.quality)}[case.row]  # type: ignore[arg-type]
            classifier = NodeClassifier(**found.with_common({"seed": case.run})).fit(graph, split)
    seconds = time.process_time() - start
    scores = {part: classifier.score(getattr(split, part) & graph.labelled) for part in ("test", "val")}
    board = classifier.leaderboard_
    members = {} if board is None else {row.name: row.weight for row in board.members}
    return {"scores": scores, "processor_seconds": seconds, "members": members}


def choosing(dataset: str, runs: int) -> list[Case]:
    """Return the cases that choose: all candidates on splits of seed 7."""
    return [
        Case.of(one.name, dataset, CHOOSING, run) for run in range(runs) for one in candidates(load(dataset), "good")
    ]


def best_of(found: Sequence[Record], names: Sequence[str] = DATASETS) -> str | None:
    """Return the candidate with the best mean test score over datasets on splits of seed 7; None without records.

    Only candidates that were run on all of these datasets count.
    """
    means = _means(found)
    there = [name for name in names if any(dataset == name for _, dataset in means)]
    rows = {row for row, _ in means}
    scored = {row: [means[row, name] for name in there if (row, name) in means] for row in rows}
    whole = {row: mean(values) for row, values in scored.items() if there and len(values) == len(there)}
    return max(sorted(whole), key=lambda row: whole[row], default=None)


def _means(found: Sequence[Record]) -> dict[tuple[str, str], float]:
    """Return the mean test score in percent on splits of seed 7 by candidate and dataset."""
    cells = records.scores(record for record in found if record.get("splits") == CHOOSING)
    return {cell: mean(scores.values()) for cell, scores in cells.items()}


def reporting(found: Sequence[Record], names: Sequence[str], runs: int) -> list[Case]:
    """Return the cases that are reported: `auto`, the best single candidate, and the best one of each dataset."""
    overall = best_of(found)
    cases = []
    for run in range(runs):
        for dataset in names:
            rows = dict.fromkeys([overall, best_of(found, [dataset]), AUTO])
            cases += [Case.of(row, dataset, REPORTING, run) for row in rows if row is not None]
    return cases


def execute(folder: Path, names: Sequence[str], runs: int, choice: int, jobs: int) -> list[Record]:
    """Run the cases without a record, append a record for each, and return the records of the present presets."""
    file = records.file_of(folder, STUDY)
    with records.appending(file) as there:
        for cases in ([case for name in names for case in choosing(name, choice)], None):
            wanted = reporting(_present(records.read(file)), names, runs) if cases is None else cases
            todo = [case for case in wanted if there.get(case.description["id"]) != OK]
            runner.record_each(file, perform, todo, jobs, lambda _: None)
    return _present(records.read(file))


def _present(found: Sequence[Record]) -> list[Record]:
    """Return the records of the present presets."""
    return [record for record in found if record["config"]["defaults"] == Case("", "", 0, 0).defaults]


def report(folder: Path, found: Sequence[Record]) -> list[Path]:
    """Write the report of the records into `folder`, and return its files."""
    cells = records.scores(record for record in found if record.get("splits") == REPORTING)
    overall = best_of(found)
    rows, differences = [], []
    for dataset in DATASETS:
        ours = cells.get((AUTO, dataset))
        if not ours:
            continue
        own, line = best_of(found, [dataset]), [dataset, mean_and_deviation(ours.values())]
        for row in (overall, own):
            scores = cells.get((row or "", dataset), {})
            gain = paired(ours, scores)
            line += [
                f"{row}\n{mean_and_deviation(scores.values())}" if scores else "–",
                "–" if gain is None else gain.with_interval,
            ]
        first = paired(ours, cells.get((overall or "", dataset), {}))
        differences += [] if first is None else [first.mean]
        rows.append([*line, f"{_seconds(found, AUTO, dataset):.0f}", str(len(ours))])
    header = ("graph", "auto", f"{overall}, best of all on seed 7", "auto − it", "best of this graph", "auto − it")
    text = (
        f"Test score (%) of `auto --quality good` on splits of seed {REPORTING} with {_LABELS} labels a class and "
        f"{_VALIDATION} validation labels, which choose ({', '.join(_WITH_A_SHARE)}: {_SHARE} of all, and 20 %). "
        f"Single candidates are chosen by their test scores on splits of seed {CHOOSING}. "
        "Differences are paired, with 95 % intervals."
    )
    if differences:
        worst = f"{mean(differences):+.2f}, worst {min(differences):+.2f}"
        text += f" Mean difference to {overall} over {len(differences)} graphs: {worst}."
    table = page.Table("auto against single candidates", (*header, "processor seconds of auto", "splits"), rows)
    return page.write(folder, "auto against the best single candidate", [page.Section("Scores", [text, table])])


def _seconds(found: Sequence[Record], row: str, dataset: str) -> float:
    times = [
        record["processor_seconds"]
        for record in found
        if (record["row"], record["dataset"], record["status"], record["splits"]) == (row, dataset, OK, REPORTING)
    ]
    return mean(times)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m lignn.studies.auto", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results") / STUDY, help="folder of records and report")
    parser.add_argument("--runs", type=int, default=10, help="splits of seed 42")
    parser.add_argument("--choice", type=int, default=2, help="splits of seed 7")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", action="append", help="one dataset; may be repeated")
    given = parser.parse_args()
    names = given.only or list(DATASETS)
    report(given.out, execute(given.out, names, given.runs, given.choice, given.jobs))


if __name__ == "__main__":
    main()
