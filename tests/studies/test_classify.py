"""The task `classify`: graphs that are drawn, splits, what is fitted, hidden labels, and the studies that use it."""

from typing import Any

import numpy as np
import pytest
import torch

from lignn import datasets
from lignn.classifier.race.candidates import candidates
from lignn.classifier.spec import Spec
from lignn.studies import graphs, run, study
from lignn.studies.case import StudyCase
from lignn.studies.classify import classifier_of

STUDIES = ("defaults", "more", "choice", "contraction", "proved", "policy", "fraud", "auto", "auto_choice")
CHOOSING = ("choice", "policy", "auto_choice")
QUICK = {"max_epochs": 3, "folds": 1, "hidden": 4}


def config(method: dict[str, Any] | None = None, **training: Any) -> StudyCase:
    split = {"kind": "per_class", "labels": 4, "seed": 42, "number": 0}
    values = {"dataset": "karate", "task": "classify", "split": split, "training": QUICK | training}
    return StudyCase.of(values | {"method": method or {"name": "lignn"}}, "test")


def test_labels_of_the_tabular_graph_follow_features_and_not_edges() -> None:
    graph = graphs.tabular()
    assert graph.num_classes == 4
    same = graph.y[graph.edge_index[0]] == graph.y[graph.edge_index[1]]
    assert same.double().mean().item() == pytest.approx(0.25, abs=0.03)
    assert ((graph.x[:, 2] > 0).long() == graph.y % 2).all()


def test_four_frauds_are_known_and_each_run_has_a_graph_of_its_own() -> None:
    graph = graphs.load("fraud", 0)
    (split,) = graph.splits
    frauds, y = graph.y.numpy() == 1, graph.y
    assert (int((y[split.train] == 0).sum()), int((y[split.train] == 1).sum()), frauds.sum()) == (2806, 4, 204)
    assert torch.equal(split.test, ~split.train)
    gap = graph.x.numpy()[frauds].mean(0) - graph.x.numpy()[~frauds].mean(0)
    assert np.abs(gap[:3] - 1.5).max() < 0.4
    assert np.abs(gap[3:]).max() < 0.4
    source, target = graph.edge_index.numpy()
    assert (frauds[source] & frauds[target]).sum() > 1000  # 1224 drawn, some of them twice
    assert not torch.equal(graphs.load("fraud", 1).y, y)


@pytest.mark.parametrize("name", STUDIES)
def test_settings_are_chosen_on_other_splits_than_they_are_reported_on(name: str) -> None:
    seed = 7 if name in CHOOSING else 42
    for planned in study.load(name).plan():
        split = planned.split
        if split["kind"] == "per_class":
            assert split["seed"] == seed
        elif split["kind"] == "stratified":  # a seed for each run
            assert split["number"] == 1000 * seed + planned.seed
        else:
            assert planned.graph == "fraud"


@pytest.mark.parametrize("name", [name for name in STUDIES if not name.startswith("auto")])
def test_every_setting_is_one_of_the_classifier(name: str) -> None:
    graph = datasets.load("karate")
    for planned in study.load(name).plan(1):
        Spec.resolve(classifier_of(planned, graph).get_params())


def test_rows_for_choosing_are_candidates_of_auto() -> None:
    names = {one.name for one in candidates(graphs.tabular(), "good")}
    assert set(study.load("auto_choice").rows()) <= names
    chosen = {run.method.get("candidate") for run in study.load("auto").plan(1)}
    assert chosen - {None} <= names


def test_a_method_is_auto_or_one_of_its_candidates() -> None:
    graph = datasets.load("karate")
    auto = classifier_of(config({"name": "auto", "quality": "fast"}), graph)
    assert (auto.method, auto.quality, auto.seed) == ("auto", "fast", 0)
    one = classifier_of(config({"name": "auto", "quality": "fast", "candidate": "gcn/label_input"}), graph)
    assert (one.method, one.backbone, one.max_epochs) == ("label_input", "gcn", 3)


def test_auto_has_members() -> None:
    found = run.perform(config({"name": "auto", "quality": "fast", "backbones": ["mlp"]}))
    assert sum(found["members"].values()) == pytest.approx(1)


def test_flipped_labels_of_predicted_nodes_change_the_score_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, one = datasets.load("karate"), config()
    plain = run.perform(one)
    _, split = graphs.choose_split(graph, one.split)
    flipped = graph.replace(y=torch.where(split.train, graph.y, (graph.y + 1) % graph.num_classes))
    monkeypatch.setattr(graphs, "choose_split", lambda *_: (0, split))
    monkeypatch.setattr(graphs, "load", lambda *_: flipped)
    other = run.perform(one)
    assert plain["classes"]["predicted"] == other["classes"]["predicted"]
    assert plain["classes"]["right"] != other["classes"]["right"]
    assert plain["nodes"] == sum(plain["classes"]["there"]) == int(split.test.sum())
    assert plain["scores"]["test"] == pytest.approx(sum(plain["classes"]["right"]) / plain["nodes"])
    for what in ("temperature", "epochs", "best_epoch", "lipschitz", "K", "differing"):
        assert other[what] == plain[what]
