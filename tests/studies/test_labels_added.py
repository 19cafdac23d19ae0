"""The study of labels added: its plan, a run on a small graph, records that are not repeated, and the report."""

import json

import pytest
import torch

from lignn import datasets
from lignn.classifier import NodeClassifier
from lignn.classifier.spec import Spec
from lignn.studies import labels_added, labels_added_report
from lignn.studies.labels_added import RETRAINED, SOLVED, TRAINED_ON, Case

SMALL = Case("karate", 0, start=2, val=8, test=8, added=(1, 2), epochs=2, parameters={"max_epochs": 4})


def test_the_shipped_study_can_be_built():
    planned = labels_added.cases()
    assert {case.dataset for case in planned} == {"cora", "chameleon", "amazon_photo", "weekday"}
    assert len({case.identity for case in planned}) == len(planned) == 12
    for case in planned:
        Spec.resolve(NodeClassifier(**case.parameters).get_params())


def test_a_run_has_all_points_and_leaves_the_first_classifier_as_it_was():
    points = labels_added.perform(SMALL)
    expected = [(0, RETRAINED), *((amount, way) for amount in (1, 2) for way in (SOLVED, TRAINED_ON, RETRAINED))]
    assert [(point["added"], point["way"]) for point in points] == expected
    assert [point["labels"] for point in points[1:]] == [3] * 3 + [6] * 3  # one of the four classes has no more
    assert all(0 <= point["test"] <= 1 and point["processor_seconds"] >= 0 for point in points)
    again = labels_added.perform(SMALL)
    assert [point["test"] for point in again] == [point["test"] for point in points]


def test_records_are_kept_and_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(labels_added, "cases", lambda _runs=None: [SMALL])
    performed = []

    def each(function, tasks, _jobs):
        for task in tasks:
            performed.append(task)
            yield task, function(task)

    monkeypatch.setattr("lignn.runs.workers.each", each)
    first = labels_added.execute(tmp_path)
    assert labels_added.execute(tmp_path) == first
    assert performed == [SMALL]
    assert json.loads((tmp_path / "labels_added.jsonl").read_text())["id"] == SMALL.identity


def record(run, test):
    point = {"seconds": 1.0, "processor_seconds": 0.5}
    points = [{"added": 0, "way": RETRAINED, "test": test, **point}]
    points += [{"added": 5, "way": way, "test": test + 0.1, **point} for way in labels_added_report.WAYS]
    points[1]["steps"] = 4
    return {"id": str(run), "status": "ok", "dataset": "here", "seed": run, "config": {"start": 3}, "points": points}


def test_the_report_has_the_numbers(tmp_path):
    failed = {"id": "x", "status": "failed", "dataset": "there", "seed": 7, "reason": "no disk"}
    labels_added_report.write(tmp_path, [record(0, 0.5), record(1, 0.7), failed])
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "70.00 ± 14.14" in text
    assert "60.00 ± 14.14" in text
    assert "500 ms, 4 steps" in text
    assert "there, run 7 failed: no disk" in text
    assert "here: 3 labels a class to begin with; runs: 2" in text
    assert (tmp_path / "figures" / "labels_added.png").stat().st_size > 1000


def test_nothing_to_show_is_no_error(tmp_path):
    assert labels_added_report.write(tmp_path, [])


@pytest.mark.parametrize("amount", [1, 2])
def test_added_labels_come_class_by_class(amount):
    graph = datasets.load("karate")
    chosen = labels_added._first_of_each_class(graph, torch.arange(graph.num_nodes), amount)
    assert sorted(chosen.values()) == sorted(list(range(graph.num_classes)) * amount)
    assert all(int(graph.y[node]) == label for node, label in chosen.items())
