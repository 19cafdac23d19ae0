"""The study of `auto`: its graphs and splits, a case on a small graph, records, the choice of seed 7 and the report."""

from pathlib import Path
from typing import Any

import pytest
import torch

from lignn import NodeClassifier, datasets
from lignn.declarations import PRESETS
from lignn.runs.records import Record
from lignn.studies import auto
from lignn.studies.auto import AUTO, CHOOSING, REPORTING, Case


def record(row: str, dataset: str, seed: int, run: int, test: float) -> Record:
    done = {"status": "ok", "scores": {"test": test, "val": 0.0}, "processor_seconds": 3.0}
    return Case(row, dataset, seed, run).description | done


def test_labels_of_the_tabular_graph_follow_features_and_not_edges() -> None:
    graph = auto.tabular()
    assert graph.num_classes == 4
    same = graph.y[graph.edge_index[0]] == graph.y[graph.edge_index[1]]
    assert same.double().mean().item() == pytest.approx(0.25, abs=0.03)
    assert ((graph.x[:, 2] > 0).long() == graph.y % 2).all()


def test_splits_have_the_labels_of_the_case_and_are_the_same_for_all_rows() -> None:
    graph = auto.tabular()
    one, other = (auto.split_of(graph, Case(row, auto.TABULAR, REPORTING, 1)) for row in (AUTO, "gcn"))
    parts = ("train", "val", "test")
    assert all(torch.equal(getattr(one, part), getattr(other, part)) for part in parts)
    assert [int(getattr(one, part).sum()) for part in parts] == [40, 500, 1000]
    assert not torch.equal(one.train, auto.split_of(graph, Case(AUTO, auto.TABULAR, REPORTING, 0)).train)
    share = auto.split_of(graph, Case(AUTO, auto.TABULAR, REPORTING, 0, labels="60%"))
    assert [int(getattr(share, part).sum()) for part in parts] == pytest.approx([1200, 400, 400], abs=4)
    assert Case.of(AUTO, "weekday", REPORTING, 0).labels == "60%"
    assert Case.of(AUTO, "cora", REPORTING, 0) == Case(AUTO, "cora", REPORTING, 0)
    small = datasets.load("karate")
    split = auto.split_of(small, Case(AUTO, "karate", REPORTING, 0, labels=2))
    left = int(small.labelled.sum()) - 2 * small.num_classes
    assert int(split.val.sum()) == left // 3
    assert int(split.test.sum()) == left - left // 3


@pytest.mark.parametrize("row", ["lpa", AUTO])
def test_a_case_gives_scores_and_members(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = {"backbones": ["mlp"], "max_epochs": 2, "hidden": 4} if row == AUTO else {}
    monkeypatch.setattr(auto, "NodeClassifier", lambda **given: NodeClassifier(**given, **quick))
    found = auto.perform(Case(row, "karate", REPORTING, 0, quality="fast", labels=2))
    assert 0 <= found["scores"]["test"] <= 1
    assert (sum(found["members"].values()) == pytest.approx(1)) if row == AUTO else found["members"] == {}


def test_the_single_candidate_is_chosen_on_seed_7_alone() -> None:
    found = [
        record("gcn", "cora", CHOOSING, 0, 0.8),
        record("gcn", "digits", CHOOSING, 0, 0.6),
        record("lpa", "cora", CHOOSING, 0, 0.5),
        record("lpa", "digits", CHOOSING, 0, 0.7),
        record("mlp", "digits", CHOOSING, 0, 1.0),  # not on all graphs
        record("lpa", "cora", REPORTING, 0, 1.0),
    ]
    assert auto.best_of(found) == "gcn"
    assert auto.best_of(found, ["digits"]) == "mlp"
    assert auto.best_of([]) is None
    rows = {(case.row, case.dataset) for case in auto.reporting(found, ["cora", "digits"], 1)}
    assert rows == {("gcn", "cora"), (AUTO, "cora"), ("gcn", "digits"), ("mlp", "digits"), (AUTO, "digits")}


def test_records_are_kept_and_those_of_other_presets_are_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    performed: list[Case] = []

    def each(_function: Any, tasks: Any, _jobs: int) -> Any:
        for task in tasks:
            performed.append(task)
            yield task, {"scores": {"test": 0.9 if task.row == "lpa" else 0.5, "val": 0.5}, "processor_seconds": 1.0}

    monkeypatch.setattr("lignn.runs.workers.each", each)
    found = auto.execute(tmp_path, ["karate"], runs=2, choice=1, jobs=1)
    reported = [(one["row"], one["seed"]) for one in found if one["splits"] == REPORTING]
    assert sorted(reported) == [(AUTO, 0), (AUTO, 1), ("lpa", 0), ("lpa", 1)]
    count = len(performed)
    assert auto.execute(tmp_path, ["karate"], runs=2, choice=1, jobs=1) == found
    assert len(performed) == count
    monkeypatch.setitem(PRESETS["practical"], "patience", 7)
    auto.execute(tmp_path, ["karate"], runs=2, choice=1, jobs=1)
    assert len(performed) == 2 * count


def test_the_report_has_paired_differences_and_the_worst_graph(tmp_path: Path) -> None:
    found = [record("gcn", name, CHOOSING, 0, 0.8) for name in ("cora", "digits")]
    for run, (ours, theirs) in enumerate([(0.80, 0.78), (0.82, 0.79)]):
        found += [record(AUTO, "cora", REPORTING, run, ours), record("gcn", "cora", REPORTING, run, theirs)]
        found += [record(AUTO, "digits", REPORTING, run, theirs), record("gcn", "digits", REPORTING, run, ours)]
    files = auto.report(tmp_path, found)
    text = next(file for file in files if file.suffix == ".md").read_text(encoding="utf-8")
    assert "81.00 ± 1.41" in text
    assert "+2.50" in text
    assert "Mean difference to gcn over 2 graphs: +0.00, worst -2.50." in text
