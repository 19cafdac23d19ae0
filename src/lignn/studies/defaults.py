"""Studies of the defaults: settings around them, what they bring, what a bound of the contraction costs and proves.

`python -m lignn.studies.defaults [--study more|choice|contraction|proved]` runs what has no record yet, and writes the
report.
"""

from __future__ import annotations

import argparse
import time
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lignn import datasets
from lignn.classifier import NodeClassifier
from lignn.classifier.calibration import calibration_error
from lignn.declarations import DEFAULT_METHOD, METHODS, PRESETS
from lignn.errors import ConvergenceWarning
from lignn.graph import Graph, splits
from lignn.methods.starts import measure, share_by_start
from lignn.runs import records
from lignn.runs.records import OK, Record
from lignn.studies import runner

STUDIES = ("defaults", "more", "choice", "contraction", "proved")
CHOOSING, REPORTING = 7, 42
"""Seeds of the splits on which settings are chosen, and on which they are reported."""

STARTS = 5


@dataclass(frozen=True)
class Case:
    """One fit.

    Attributes:
        study: name of the study.
        row: name of the setting.
        dataset: name of the dataset.
        labels: labels a class, or a share of all labels, such as 60%.
        splits: seed of the splits.
        run: number of the split, and seed of the fit.
        parameters: parameters of `NodeClassifier`.
        defaults: hash of the values that stand for parameters that are not given; they change from version to version.
    """

    study: str
    row: str
    dataset: str
    labels: str
    splits: int
    run: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    defaults: str = ""

    @classmethod
    def of(
        cls, study: str, row: str, parameters: Mapping[str, Any], dataset: str, labels: str, splits: int, run: int
    ) -> Case:
        """Return a case of the present defaults."""
        preset, method = parameters.get("preset", "practical"), parameters.get("method", DEFAULT_METHOD)
        values = PRESETS[preset] | dict(METHODS[method].presets.get(preset, {}))
        return cls(study, row, dataset, labels, splits, run, parameters, records.identity_of(values))

    @property
    def description(self) -> Record:
        """What a record says about the case besides its result; its id is a hash of all attributes."""
        config = asdict(self)
        known = {"study": self.study, "row": self.row, "dataset": self.dataset, "seed": self.run}
        return {"id": records.identity_of(config), **known, "config": config}


def cases(study: str, seed: int | None = None, runs: int | None = None, only: str | None = None) -> list[Case]:
    """Return the cases of a study, dataset by dataset and run by run.

    Args:
        study: one of `STUDIES`.
        seed: seed of the splits instead of the study's.
        runs: number of runs instead of the study's.
        only: name of the only dataset.
    """
    told = _told(study)
    rows = _told(told["rows_of"])["rows"] if "rows_of" in told else told["rows"]
    few, own = told.get("few", {}), told.get("own_labels", {})
    return [
        Case.of(study, row, parameters, dataset, labels, seed_of(study) if seed is None else seed, run)
        for dataset in told["datasets"]
        if only in (None, dataset)
        for labels in own.get(dataset, told["labels"])
        for run in range(min(few.get(dataset, told["runs"]), told["runs"] if runs is None else runs))
        for row, parameters in rows.items()
    ]


def seed_of(study: str) -> int:
    """Return the seed of a study's splits."""
    return _told(study).get("seed", REPORTING)


def _told(study: str) -> dict[str, Any]:
    return tomllib.loads((resources.files("lignn.studies") / f"{study}.toml").read_text(encoding="utf-8"))


def training_labels(graph: Graph, case: Case) -> Tensor:
    """Return the nodes whose labels are given to the fit."""
    if case.labels.endswith("%"):
        share = float(case.labels[:-1]) / 100
        return splits.stratified(graph, (share, 0.0, 1 - share), seed=1000 * case.splits + case.run).train
    drawn = splits.per_class(graph, int(case.labels), val=0, test=0, seed=case.splits, runs=case.run + 1)
    return drawn[case.run].train


def perform(case: Case) -> dict[str, Any]:
    """Fit, and return how good, sure and well-posed the predictions of all other labelled nodes are."""
    graph = datasets.load(case.dataset)
    train = training_labels(graph, case)
    assert graph.y is not None
    given = graph.replace(y=torch.where(train, graph.y, -1), splits=())
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # the record says the same in numbers
        start = time.process_time()
        classifier = NodeClassifier(**{"method": DEFAULT_METHOD, **case.parameters}, seed=case.run).fit(given)
        seconds = time.process_time() - start
    nodes = graph.labelled & ~train
    truth = graph.y[nodes]
    right = torch.from_numpy(classifier.predict())[nodes] == truth
    probabilities = torch.from_numpy(classifier.predict_proba())[nodes]
    prediction = classifier._fitted.prediction
    starts = measure(prediction)
    return {
        "score": float(right.double().mean()),
        "nodes": len(truth),
        "calibration_error": calibration_error(probabilities, truth),
        "temperature": classifier.temperature_,
        "processor_seconds": seconds,
        "epochs": classifier.n_iter_,
        "best_epoch": classifier.history_.best + 1,
        "contraction": classifier._fitted.spec.values.get("contraction"),
        "lipschitz": prediction.bound.lipschitz,
        "K": None if starts is None else starts.contraction,
        "differing": None if starts is None else share_by_start(prediction, STARTS),
    }


def execute(file: Path, todo: list[Case], jobs: int = 1) -> list[Record]:
    """Run the cases without a record, append a record for each, and return the records of these defaults."""
    with records.appending(file) as there:
        left = [case for case in todo if there.get(case.description["id"]) != OK]
        runner.record_each(file, perform, left, jobs, lambda _: None)
    present = {case.defaults for case in todo}
    return [record for record in records.read(file) if record["config"].get("defaults") in present]


def main() -> None:
    """Run the command."""
    from lignn.studies import defaults_report

    parser = argparse.ArgumentParser(prog="python -m lignn.studies.defaults", description=__doc__)
    parser.add_argument("--study", choices=STUDIES, default=STUDIES[0], help="what to run")
    parser.add_argument("--out", type=Path, help="folder of records and report; default: results/STUDY")
    parser.add_argument("--seed", type=int, help="seed of the splits; default: the study's")
    parser.add_argument("--runs", type=int, help="runs a dataset")
    parser.add_argument("--only", help="one dataset")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args()
    folder = given.out or Path("results") / given.study
    other = given.seed not in (None, seed_of(given.study))
    file = records.file_of(folder, f"{given.study}_seed{given.seed}" if other else given.study)
    found = execute(file, cases(given.study, given.seed, given.runs, given.only), given.jobs)
    if not other:
        defaults_report.write(folder, given.study, found)


if __name__ == "__main__":
    main()
