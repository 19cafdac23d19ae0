"""The studies of the defaults: their cases, the labels of a fit, what a flipped label changes, records and reports."""

from pathlib import Path
from typing import Any

import pytest
import torch

from lignn import datasets
from lignn.studies import defaults, defaults_report
from lignn.studies.defaults import CHOOSING, REPORTING, STUDIES, Case

QUICK = {"max_epochs": 2, "hidden": 4}


def case(run: int = 0, labels: str = "2", row: str = "new", **parameters: Any) -> Case:
    return Case.of("defaults", row, QUICK | parameters, "karate", labels, REPORTING, run)


def performed(one: Case) -> dict[str, Any]:
    known = {"nodes": 20, "calibration_error": 0.1, "processor_seconds": 1.0, "lipschitz": 0.9}
    return known | {"score": 0.5 + 0.1 * one.run, "K": 0.25, "differing": 0.5}


@pytest.mark.parametrize("study", STUDIES)
def test_every_case_has_an_id_of_its_own_and_all_rows(study: str) -> None:
    found = defaults.cases(study)
    assert len({each.description["id"] for each in found}) == len(found)
    rows = list(dict.fromkeys(each.row for each in found))
    assert [each.row for each in found] == rows * (len(found) // len(rows))
    other = defaults.cases(study, CHOOSING, runs=1, only=found[0].dataset)
    assert {(each.splits, each.run, each.dataset) for each in other} == {(CHOOSING, 0, found[0].dataset)}


def test_settings_are_chosen_on_other_splits_than_they_are_reported_on() -> None:
    assert {study: {each.splits for each in defaults.cases(study)} for study in STUDIES} == {
        study: {CHOOSING if study == "choice" else REPORTING} for study in STUDIES
    }


def test_the_report_of_the_choice_has_differences_to_the_first_setting(tmp_path: Path) -> None:
    def record(row: str, run: int, score: float, seconds: float) -> dict[str, Any]:
        values = {"score": score, "processor_seconds": seconds, "calibration_error": 0.1 * score}
        known = {"row": row, "dataset": "karate", "seed": run, "config": {"labels": "2"}}
        return known | {"status": "ok", **values}

    found = [record("new", 0, 0.5, 2.0), record("new", 1, 0.7, 2.0), record("other", 1, 0.6, 3.0)]
    defaults_report.write(tmp_path, "choice", found)
    report = (tmp_path / "report.md").read_text()
    assert "| new | 60.0 |  | 1.00 | 0.060 |" in report
    assert "| other | 60.0<br>-10.0 | -10.00 | 1.50 | 0.060 |" in report


def test_the_study_of_more_labels_has_the_rows_of_the_defaults() -> None:
    assert {each.row for each in defaults.cases("more")} == {each.row for each in defaults.cases("defaults")}
    assert {each.labels for each in defaults.cases("more")} == {"10", "50", "60%"}


@pytest.mark.parametrize(("labels", "count"), [("2", 8), ("50%", 17)])
def test_a_fit_gets_the_labels_of_its_case(labels: str, count: int) -> None:
    graph = datasets.load("karate")
    train = defaults.training_labels(graph, case(labels=labels))
    assert int(train.sum()) == pytest.approx(count, abs=2)
    assert torch.equal(train, defaults.training_labels(graph, case(labels=labels, row="gcn")))
    assert not torch.equal(train, defaults.training_labels(graph, case(run=1, labels=labels)))


def test_flipped_labels_of_predicted_nodes_change_the_score_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, one = datasets.load("karate"), case()
    plain = defaults.perform(one)
    train = defaults.training_labels(graph, one)
    flipped = graph.replace(y=torch.where(train, graph.y, (graph.y + 1) % graph.num_classes))
    monkeypatch.setattr(defaults, "training_labels", lambda *_: train)
    monkeypatch.setattr(defaults.datasets, "load", lambda _: flipped)
    other = defaults.perform(one)
    assert other["score"] != plain["score"]
    for what in ("temperature", "epochs", "best_epoch", "lipschitz", "K", "differing"):
        assert other[what] == plain[what]


def test_records_are_run_once_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "perform", performed)
    todo = [case(run, labels, row) for labels in ("2", "50%") for run in range(2) for row in ("new", "gcn")]
    found = defaults.execute(tmp_path / "defaults.jsonl", todo)
    text = (tmp_path / "defaults.jsonl").read_text()
    assert defaults.execute(tmp_path / "defaults.jsonl", todo) == found
    assert (tmp_path / "defaults.jsonl").read_text() == text
    defaults_report.write(tmp_path, "defaults", found)
    report = (tmp_path / "report.md").read_text()
    assert all(f"| {name} | 2 |" in report for name in ("karate (2)", "karate (50%)"))
    assert "new - gcn" in report
    assert "K̂ ≤ 0.25, 50.0 %" in report
