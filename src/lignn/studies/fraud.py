"""Study of strong imbalance: 4 known frauds among 2810 labels, 200 frauds to be found.

`python -m lignn.studies.fraud` runs what has no record yet and writes the report.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from sklearn.metrics import average_precision_score

from lignn.classifier import NodeClassifier
from lignn.declarations import DEFAULT_METHOD
from lignn.errors import ImbalanceWarning
from lignn.evaluation import page
from lignn.evaluation.summary import mean_and_deviation
from lignn.graph import Graph
from lignn.runs import records
from lignn.runs.records import OK, Record
from lignn.studies import runner

STUDY = "fraud"
NORMAL, FRAUD = 0, 1
_FEATURES, _SIGNAL = 12, 3

SETTINGS: dict[str, dict[str, Any]] = {
    "as before: F1-micro, no weights": {"metric": "f1_micro"},
    "default: F1-macro is chosen": {},
    "class_weight='balanced'": {"class_weight": "balanced"},
}
"""The settings that are compared, by title."""


@dataclass(frozen=True)
class Case:
    """One fit on one graph.

    Attributes:
        row: title of the setting.
        seed: seed of the graph and of the fit.
        parameters: parameters of `NodeClassifier` that differ from its preset.
        nodes: number of nodes.
        frauds: number of frauds.
        known: numbers of labels of both classes.
        shift: how far the mean of a fraud's three telling features is from that of others, in standard deviations.
        degree: mean number of edges at a node, to random nodes.
        ring: mean number of further edges at a fraud, to other frauds.
    """

    row: str
    seed: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    nodes: int = 6000
    frauds: int = 204
    known: tuple[int, int] = (2806, 4)
    shift: float = 1.5
    degree: int = 6
    ring: int = 6

    @property
    def description(self) -> Record:
        """What a record says about the case besides its result; its id is a hash of all attributes."""
        config = asdict(self)
        return {"id": records.identity_of(config), "study": STUDY, "row": self.row, "seed": self.seed, "config": config}


def cases(runs: int = 10) -> list[Case]:
    """Return the cases of the study, ordered by seed."""
    return [Case(row, seed, parameters) for seed in range(runs) for row, parameters in SETTINGS.items()]


def draw(case: Case) -> tuple[Graph, np.ndarray]:
    """Return a graph with few known labels, and the true class of every node."""
    rng = np.random.default_rng(case.seed)
    truth = np.full(case.nodes, NORMAL)
    frauds = rng.choice(case.nodes, case.frauds, replace=False)
    truth[frauds] = FRAUD
    x = rng.normal(size=(case.nodes, _FEATURES))
    x[frauds, :_SIGNAL] += case.shift
    anywhere = rng.integers(case.nodes, size=(2, case.degree * case.nodes // 2))
    among = rng.choice(frauds, size=(2, case.ring * case.frauds // 2))
    edges = np.concatenate([anywhere, among], axis=1)
    y = np.full(case.nodes, -1)
    for c, count in enumerate(case.known):
        y[rng.choice(np.flatnonzero(truth == c), count, replace=False)] = c
    names = ("normal", "fraud")
    features = torch.from_numpy(x).float()
    return Graph(edges[:, edges[0] != edges[1]], x=features, y=y, class_names=names, name=STUDY).to_undirected(), truth


def perform(case: Case) -> dict[str, Any]:
    """Fit, and return how well the nodes without a known label are told apart."""
    graph, truth = draw(case)
    with warnings.catch_warnings(action="ignore", category=ImbalanceWarning):  # the record says the same in numbers
        classifier = NodeClassifier(**{"method": DEFAULT_METHOD, **case.parameters}, seed=case.seed).fit(graph)
    hidden = ~graph.labelled.numpy()
    found = classifier.predict()[hidden] == FRAUD
    fraud = truth[hidden] == FRAUD
    return {
        "average_precision": float(average_precision_score(fraud, classifier.predict_proba()[hidden, FRAUD])),
        "base_rate": float(fraud.mean()),
        "accuracy": float((found == fraud).mean()),
        "predicted": int(found.sum()),
        "found": int((found & fraud).sum()),
        "frauds": int(fraud.sum()),
        "metric": classifier.metric_,
        "epochs": classifier.n_iter_,
        "best_epoch": classifier.history_.best + 1,
    }


def execute(folder: Path, runs: int = 10, jobs: int = 1) -> list[Record]:
    """Run the cases without a record, append a record for each, and return all records."""
    file = records.file_of(folder, STUDY)
    with records.appending(file) as there:
        todo = [case for case in cases(runs) if there.get(case.description["id"]) != OK]
        runner.record_each(file, perform, todo, jobs, lambda _: None)
    return records.read(file)


def report(folder: Path, found: Sequence[Record]) -> list[Path]:
    """Write the report of the records into `folder`, and return its files."""
    good = [record for record in found if record["status"] == OK]
    rows = [_row(title, [record for record in good if record["row"] == title]) for title in SETTINGS]
    header = (
        "setting",
        "average precision (%)",
        "times the base rate",
        "frauds found",
        "nodes called fraud",
        "accuracy",
    )
    table = page.Table("Mean ± standard deviation over seeds", header, [row for row in rows if row])
    text = (
        "A random graph in which frauds differ in 3 of 12 features and have more edges to each other. 4 frauds and "
        "2806 other nodes are labelled; 200 frauds are among those to be predicted. LI-GCN with the practical preset; "
        "`fit` holds back a fifth of the labels, one fraud among them, to choose the epoch."
    )
    return page.write(folder, "Few frauds among many labels", [page.Section("What imbalance does", [text, table])])


def _row(title: str, good: Sequence[Record]) -> tuple[str, ...] | None:
    if not good:
        return None
    ratios = [record["average_precision"] / record["base_rate"] for record in good]
    return (
        title,
        mean_and_deviation(100 * record["average_precision"] for record in good),
        mean_and_deviation(ratios),
        f"{mean(record['found'] for record in good):.1f} of {good[0]['frauds']}",
        f"{mean(record['predicted'] for record in good):.1f}",
        f"{mean(record['accuracy'] for record in good):.4f}",
    )


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m lignn.studies.fraud", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results") / STUDY, help="folder of records and report")
    parser.add_argument("--runs", type=int, default=10, help="seeds")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args()
    report(given.out, execute(given.out, given.runs, given.jobs))


if __name__ == "__main__":
    main()
