"""Study of labels that are added after training: solve again, train for some more epochs, or train from scratch.

`python -m lignn.studies.labels_added` runs what has no record yet and writes the report.
"""

from __future__ import annotations

import argparse
import time
import tomllib
import warnings
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from lignn import datasets
from lignn.classifier import NodeClassifier, Update
from lignn.declarations import DEFAULT_METHOD
from lignn.errors import ConvergenceWarning
from lignn.graph import Graph, Split, splits
from lignn.runs import records
from lignn.runs.records import OK, Record
from lignn.studies import runner

STUDY = "labels_added"
SOLVED, TRAINED_ON, RETRAINED = "re-solved", "trained on", "retrained"


@dataclass(frozen=True)
class Case:
    """One run on one dataset.

    Attributes:
        dataset: name of the dataset.
        run: number of the split, and the seed.
        start: number of labels per class in the first training.
        val, test: sizes of the validation and test sets.
        added: numbers of labels per class that are added; each number is one setting.
        epochs: number of epochs of the training that continues.
        parameters: parameters of `NodeClassifier` that differ from its preset.
    """

    dataset: str
    run: int
    start: int
    val: int
    test: int
    added: tuple[int, ...]
    epochs: int
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """Hash of all attributes."""
        return records.identity_of(asdict(self))

    @property
    def description(self) -> Record:
        """What a record says about the case besides its result."""
        return {"id": self.identity, "study": STUDY, "dataset": self.dataset, "seed": self.run, "config": asdict(self)}


def cases(runs: int | None = None) -> list[Case]:
    """Return the cases of the study, ordered by run."""
    study = tomllib.loads((resources.files("lignn.studies") / f"{STUDY}.toml").read_text(encoding="utf-8"))
    return [
        Case(dataset=name, run=run, epochs=study["epochs"], **(values | {"added": tuple(values["added"])}))
        for run in range(study["runs"] if runs is None else runs)
        for name, values in study["dataset"].items()
    ]


def perform(case: Case) -> list[dict[str, Any]]:
    """Return test score, seconds and steps for each number of added labels and each way to use them."""
    graph = datasets.load(case.dataset)
    sizes = (case.start, case.val, case.test)
    split = splits.per_class(graph, *sizes, seed=splits.PAPER_SEED, runs=case.run + 1)[case.run]
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(case.run))
    pool = order[~(split.train | split.held_out)[order]]
    classifier = NodeClassifier(**{"method": DEFAULT_METHOD, **case.parameters}, seed=case.run)
    seconds = _seconds(lambda: classifier.fit(graph, split))
    seconds |= {f"certificate_{name}": value for name, value in _seconds(classifier.diagnose).items()}
    points = [{"added": 0, "way": RETRAINED, "test": classifier.score(split.test), **seconds}]
    for amount in case.added:
        labels = _first_of_each_class(graph, pool, amount)
        used = _points(classifier, split, labels, case)
        points += [{"added": amount, "labels": len(labels)} | point for point in used]
    return points


def _points(classifier: NodeClassifier, split: Split, labels: dict[int, int], case: Case) -> list[dict[str, Any]]:
    """Use the labels in the three ways; the labels of the classifier are the same afterwards."""
    graph = classifier.graph_
    trained_on, retrained = (
        deepcopy(classifier),
        NodeClassifier(**{"method": DEFAULT_METHOD, **case.parameters}, seed=case.run),
    )
    more = split.train.clone()
    more[list(labels)] = True
    updates: list[Update] = []
    ways: dict[str, tuple[NodeClassifier, Callable[[], Any]]] = {
        SOLVED: (classifier, lambda: updates.append(classifier.update_labels(labels))),
        TRAINED_ON: (trained_on, lambda: trained_on.update_labels(labels, epochs=case.epochs)),
        RETRAINED: (retrained, lambda: retrained.fit(graph, Split(more, split.val, split.test))),
    }
    points = []
    for way, (used, act) in ways.items():
        seconds = _seconds(act)
        points.append({"way": way, "test": used.score(split.test), **seconds})
    solution = updates[0].solution
    points[0] |= {"warm": updates[0].warm, "steps": None if solution is None else solution.steps}
    classifier.update_labels(dict.fromkeys(labels))
    return points


def _first_of_each_class(graph: Graph, pool: torch.Tensor, amount: int) -> dict[int, int]:
    assert graph.y is not None
    chosen = torch.cat([pool[graph.y[pool] == c][:amount] for c in range(graph.num_classes)])
    return {int(node): int(graph.y[node]) for node in chosen}


def _seconds(act: Callable[[], Any]) -> dict[str, float]:
    """Call `act` and return its wall time and processor time; other processes affect only the first."""
    wall, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # the points have the number of steps
        act()
    return {"seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - processor}


def execute(folder: Path, runs: int | None = None, jobs: int = 1, only: str | None = None) -> list[Record]:
    """Run the cases without a record, append a record for each, and return all records."""
    file = records.file_of(folder, STUDY)
    with records.appending(file) as there:
        todo = [case for case in cases(runs) if there.get(case.identity) != OK and only in (None, case.dataset)]
        runner.record_each(file, _perform, todo, jobs, lambda _: None)
    return records.read(file)


def _perform(case: Case) -> dict[str, Any]:
    return {"points": perform(case), "threads": torch.get_num_threads()}


def main() -> None:
    """Run the command."""
    from lignn.studies import labels_added_report

    parser = argparse.ArgumentParser(prog="python -m lignn.studies.labels_added", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results") / STUDY, help="folder of records and report")
    parser.add_argument("--runs", type=int, help="runs a dataset")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", help="one dataset")
    given = parser.parse_args()
    labels_added_report.write(given.out, execute(given.out, given.runs, given.jobs, given.only))


if __name__ == "__main__":
    main()
