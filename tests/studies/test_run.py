import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from lignn import Graph, Split, datasets, splits
from lignn.errors import ConfigError, DatasetError, LignnError
from lignn.studies import graphs, run, study
from lignn.studies.case import StudyCase
from lignn.training import History
from tests.studies import tiny

GCN, LIGNN = (planned for planned in tiny.STUDY.plan(1))


def test_a_run_is_a_function_of_its_config():
    costs = {"seconds", "processor_seconds", "peak_memory_mib"}
    first, second = ({k: v for k, v in run.perform(LIGNN).items() if k not in costs} for _ in range(2))
    assert first == second
    assert first["scores"] == first["scores_at_best_epoch"]
    assert run.perform(replace(LIGNN, seed=1))["scores"]["train"] >= 0


def test_a_result_has_what_its_options_came_to():
    found = run.perform(LIGNN)["settings"]
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    classes = LIGNN.dataset_options["num_classes"]
    picard = {"class": "Picard", "max_steps": 5, "norm": "rms", "growth": None}
    assert found["method"]["solver"] == found["method"]["inference"] == picard | {"tol": 1e-4 / classes}
    adjoint = picard | {"tol": 1e-5 * (classes - 1) / classes**2}
    assert found["method"]["gradient"] == {"class": "Implicit", "form": "paper", "solver": adjoint}
    assert found["method"]["masking"]["class"] == "LoopingState"
    assert (found["training"]["max_epochs"], found["training"]["patience"]) == (2, 100)


def test_result_has_solves_and_costs():
    result = run.perform(LIGNN)
    assert result["epochs"] == 2
    assert set(result["solves"]) == {"forward", "backward", "evaluation"}
    assert sum(result["solves"]["forward"]["status"].values()) == 2
    assert result["seconds"] > 0
    assert result["peak_memory_mib"] is None or result["peak_memory_mib"] > 10
    assert "curve" not in result
    assert run.perform(GCN)["solves"] == {}


def test_a_study_may_be_scored_by_another_metric(monkeypatch):
    generator = torch.Generator().manual_seed(1)
    graph = Graph(torch.randint(30, (2, 60), generator=generator), x=torch.randn(30, 4), y=torch.arange(30) % 3 // 2)
    graph = graph.replace(splits=[Split(*(torch.arange(30) % 3 == part for part in (0, 1, 2)))])
    graph = graph.replace(y=torch.randint(2, (30,), generator=generator))
    monkeypatch.setattr(datasets, "load", lambda name: graph)
    config = replace(GCN, metric="roc_auc", dataset_options={}, split={"kind": "public", "number": 0})
    assembly, score, _ = run.assembled(config)
    prediction = assembly.method.eval().predict(assembly.inference)
    rarer = int(assembly.training.labels.counts.argmin())
    for part in ("val", "test"):
        nodes = getattr(graph.splits[0], part)
        expected = roc_auc_score(graph.y[nodes] == rarer, prediction.probabilities[nodes, rarer].detach())
        assert score(prediction)[part] == pytest.approx(expected, abs=1e-6)


def test_runs_may_begin_at_another_split_and_share_one():
    text = """
title = "t"
report = "changes"
runs = 2
datasets = ["karate"]
[base]
split = { kind = "stratified", fractions = [0.6, 0.2, 0.2], first = 3 }
[[case]]
row = "a"
method = { name = "lpa" }
[[case]]
row = "b"
method = { name = "lpa" }
split = { seed = 42 }
"""
    own, shared = {}, {}
    graph = datasets.load("karate")
    for planned in study.parse("t", text).plan():
        number, split = graphs.choose_split(graph, planned.split)
        {"a": own, "b": shared}[planned.row][planned.seed, number] = split
    assert set(own) == {(0, 3), (1, 4)}
    assert torch.equal(own[0, 3].train, splits.stratified(graph, (0.6, 0.2, 0.2), seed=3).train)
    one, two = shared.values()
    assert torch.equal(one.train, two.train)


def test_labels_a_class_leave_all_others_for_the_test():
    graph = datasets.load("karate")
    _, split = graphs.choose_split(graph, {"kind": "per_class", "labels": 2, "seed": 42, "number": 1})
    assert (int(split.train.sum()), int(split.val.sum())) == (8, 0)
    assert torch.equal(split.test, graph.labelled & ~split.train)
    _, sized = graphs.choose_split(
        graph, {"kind": "per_class", "labels": 2, "val": 3, "test": 4, "seed": 42, "number": 1}
    )
    assert [int(part.sum()) for part in (sized.train, sized.val, sized.test)] == [8, 3, 4]


def test_the_published_split_is_read_from_a_file_beside_the_datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("LIGNN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    graph = Graph([[0], [1]], num_nodes=5, name="amazon_photo")
    with pytest.raises(DatasetError, match=r"amazon_photo: there is no published split in a splits_60_20_20.npz in"):
        graphs.choose_split(graph, {"kind": "published", "number": 3})
    parts = {"train": [0, 2], "val": [1], "test": [3, 4]}
    np.savez(tmp_path / "splits_60_20_20.npz", **{f"amazon_photo/{part}": nodes for part, nodes in parts.items()})
    number, split = graphs.choose_split(graph, {"kind": "published", "number": 3})
    assert number == 0
    assert {part: getattr(split, part).nonzero().flatten().tolist() for part in parts} == parts


def test_the_curve_is_recorded_on_request():
    result = run.perform(replace(GCN, curve=True))
    assert len(result["curve"]) == 2
    assert result["curve"][result["best_epoch"]] == result["scores"]["test"]


def test_inductive_training_has_no_edges_at_held_out_nodes():
    assembly, _, _ = run.assembled(replace(GCN, inductive=True))
    graph = datasets.load(GCN.dataset, **GCN.dataset_options)
    held_out = graph.splits[0].held_out
    assert not held_out[assembly.training.edges.edge_index].any()
    assert assembly.inference.edges.num_edges == graph.num_edges
    transductive, _, _ = run.assembled(GCN)
    assert transductive.training is transductive.inference


def test_precision():
    assembly, _, _ = run.assembled(replace(LIGNN, precision="float64"))
    assert {p.dtype for p in assembly.method.parameters()} == {assembly.inference.dtype} == {torch.float64}


def test_splits_by_kind():
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(2, (1700,), generator=generator)
    nodes = torch.arange(1700)
    own = [Split(nodes < 5 * (i + 1), nodes > 1600, (nodes > 1000) & (nodes < 1200)) for i in range(2)]
    graph = Graph([[0], [1]], y=y, num_nodes=1700, splits=own)
    paper = splits.per_class(graph, seed=42)
    for number in (0, 9):
        assert torch.equal(graphs.choose_split(graph, {"kind": "paper", "number": number})[1].test, paper[number].test)
    assert graphs.choose_split(graph, {"kind": "public", "number": 3}) == (1, own[1])
    _, drawn = graphs.choose_split(graph, {"kind": "stratified", "fractions": [0.6, 0.2, 0.2], "number": 1})
    assert torch.equal(drawn.train, splits.stratified(graph, (0.6, 0.2, 0.2), seed=1).train)
    with pytest.raises(ConfigError, match="has no public split"):
        graphs.choose_split(graph.replace(splits=()), {"kind": "public", "number": 0})


def test_label_transitions():
    config = StudyCase.of({"dataset": "chains-10", "task": "label_transitions"}, "here")
    assert run.perform(config)["transitions"] == torch.eye(10).tolist()


def test_unknown_training_settings_are_refused():
    with pytest.raises(ConfigError, match="training: there is no setting 'epochs'; did you mean 'max_epochs'"):
        run.settings_of({"epochs": 3})


def test_solver_statistics():
    def account(steps: int, contraction: float) -> dict[str, object]:
        return {"status": "converged" if steps < 10 else "budget used up", "steps": steps, "contraction": contraction}

    epochs = [{"val": v, "forward": account(s, k)} for v, s, k in ((0.1, 4, 0.5), (0.3, 8, 0.7), (0.2, 10, 0.9))]
    found = run.solver_statistics(History(epochs, best=1))
    assert found == {
        "forward": {
            "status": {"converged": 2, "budget used up": 1},
            "mean_steps": 22 / 3,
            "max_steps": 10,
            "steps_at_best": 8,
            "contraction_at_best": 0.7,
        }
    }


def test_training_that_fails_at_once_says_so(monkeypatch):
    monkeypatch.setattr(run.Assembly, "train", lambda *_: History(end="the loss or the state is not finite any more"))
    with pytest.raises(LignnError, match="training ended in its first epoch: the loss"):
        run.perform(GCN)


@pytest.mark.parametrize(("dataset", "n"), [("flickr", 1540), ("ogbn_arxiv", 300)])
def test_configs_of_absent_datasets_run_on_stand_ins(dataset, n, tmp_path, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    nodes = torch.arange(n)
    edges = torch.randint(n, (2, 4 * n), generator=generator)
    split = Split(nodes < 100, (nodes >= 100) & (nodes < 200), nodes >= 200)
    x = torch.randn(n, 6, generator=generator)
    Graph(edges, x=x, y=nodes % 3, splits=[split]).write(tmp_path / f"{dataset}.npz")
    monkeypatch.setenv("LIGNN_DATA", str(tmp_path))
    for planned in study.load("table2").plan(1, [f"*/{dataset}"]):
        config = replace(planned, training=planned.training | {"max_epochs": 1})
        assert 0 <= run.perform(config)["scores"]["test"] <= 1, planned.row
