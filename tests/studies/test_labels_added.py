"""The task `labels_added`: its plan, a run on a small graph, and its view."""

import pytest
import torch

from lignn import datasets
from lignn.classifier.spec import Spec
from lignn.evaluation.page import Picture, Table
from lignn.studies import labels_added, study
from lignn.studies.case import StudyCase
from lignn.studies.labels_added import RETRAINED, SOLVED, TRAINED_ON, WAYS
from lignn.studies.results import Results
from lignn.studies.views import added

SPLIT = {"kind": "per_class", "labels": 2, "val": 8, "test": 8, "seed": 42, "number": 0, "added": [1, 2], "epochs": 2}
SMALL = StudyCase("karate", "labels_added", split=SPLIT, method={"name": "lignn"}, training={"max_epochs": 4})


def test_the_shipped_study_can_be_built():
    planned = study.load("labels_added").plan()
    assert {run.dataset for run in planned} == {"cora", "chameleon", "amazon_photo", "weekday"}
    assert len(planned) == 12
    for run in planned:
        Spec.resolve(labels_added._new(run).get_params())


def test_a_run_has_all_points_and_leaves_the_first_classifier_as_it_was():
    points = labels_added.labels_added(SMALL)["points"]
    expected = [(0, RETRAINED), *((amount, way) for amount in (1, 2) for way in (SOLVED, TRAINED_ON, RETRAINED))]
    assert [(point["added"], point["way"]) for point in points] == expected
    assert [point["labels"] for point in points[1:]] == [3] * 3 + [6] * 3  # one of the four classes has no more
    assert all(0 <= point["test"] <= 1 and point["processor_seconds"] >= 0 for point in points)
    again = labels_added.labels_added(SMALL)["points"]
    assert [point["test"] for point in again] == [point["test"] for point in points]


def record(run, test):
    point = {"seconds": 1.0, "processor_seconds": 0.5}
    points = [{"added": 0, "way": RETRAINED, "test": test, **point}]
    points += [{"added": 5, "way": way, "test": test + 0.1, **point} for way in WAYS]
    points[1]["steps"] = 4
    config = {"split": {"labels": 3}}
    names = {"row": "labels added", "dataset": "here", "seed": run, "config": config}
    return {"id": str(run), "status": "ok", **names, "points": points}


def test_the_view_has_the_numbers():
    table, picture = added.view(Results.of("mine", [record(0, 0.5), record(1, 0.7)], None))
    assert isinstance(table, Table)
    assert isinstance(picture, Picture)
    assert table.caption == "here: 3 labels a class to begin with; runs: 2"
    assert table.rows == [
        ("+0", "", "", "60.00 ± 14.14\n500 ms"),
        ("+5", "70.00 ± 14.14\n500 ms, 4 steps", "70.00 ± 14.14\n500 ms", "70.00 ± 14.14\n500 ms"),
    ]


@pytest.mark.parametrize("amount", [1, 2])
def test_added_labels_come_class_by_class(amount):
    graph = datasets.load("karate")
    chosen = labels_added.first_of_each_class(graph, torch.arange(graph.num_nodes), amount)
    assert sorted(chosen.values()) == sorted(list(range(graph.num_classes)) * amount)
    assert all(int(graph.y[node]) == label for node, label in chosen.items())
