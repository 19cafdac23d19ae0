"""The prediction of a trained method, made again when labels change."""

import pickle

import pytest
import torch

from lignn import Split
from lignn.classifier.live import Live
from lignn.labels import KnownLabels
from lignn.methods import Problem
from tests.classifier.small import fitted, small_graph, small_split


@pytest.mark.parametrize("method", ["lignn", "lpa", "label_reuse", "threeference", "ignn", "correct_and_smooth"])
def test_predicts_as_the_method_does(method):
    cold = {"warm_start": False} if method == "lignn" else {}
    live = fitted(method, max_epochs=3, **cold)._fitted.live
    prediction = live.method.predict(live.problem)
    assert torch.equal(live.probabilities, prediction.probabilities)
    assert torch.equal(live.labels, prediction.labels)


def test_features_are_looked_at_once():
    live = fitted(max_epochs=3)._fitted.live
    backbone = live.method.step.backbone
    looked = []
    backbone.features = lambda *_: looked.append(1)
    labels = live.problem.labels
    fewer = labels.mask.clone()
    fewer[labels.mask.nonzero()[0]] = False
    changed = live.with_labels(KnownLabels(fewer, labels.onehot * fewer[:, None]))
    assert not looked
    del backbone.features
    fresh = Live.of(live.method, Problem.of(small_graph(), fewer, torch.float64))
    assert torch.equal(changed.probabilities, fresh.probabilities)


@pytest.mark.parametrize("method", ["lignn", "lpa", "reslpa"])
def test_a_label_in_a_part_that_none_has_reached(method):
    whole = small_graph()
    edges = whole.edge_index[:, ((whole.edge_index < 80).sum(0) != 1)]
    graph = whole.replace(edge_index=edges)
    split = Split(small_split().train & (torch.arange(90) < 80), small_split().val, small_split().test)
    live = fitted(method, graph=graph, split=split, max_epochs=3)._fitted.live
    assert not live.problem.evidence[80:].any()
    mask = live.problem.labels.mask.clone()
    mask[85] = True
    labels = KnownLabels.of(graph, mask, torch.float64)
    changed = live.with_labels(labels)
    assert changed.problem.evidence[85]
    assert torch.equal(changed.probabilities, Live.of(live.method, live.problem.knowing(labels)).probabilities)


def test_survives_pickling():
    live = fitted(max_epochs=3)._fitted.live
    copy = pickle.loads(pickle.dumps(live))
    assert torch.equal(copy.with_labels(live.problem.labels).probabilities, live.probabilities)


def test_problem_without_any_label():
    graph = small_graph()
    nothing = KnownLabels(torch.zeros(90, dtype=torch.bool), torch.zeros(90, 3, dtype=torch.float64))
    problem = Problem.with_labels(graph, nothing)
    live = Live.of(fitted(max_epochs=3).method_, problem)
    torch.testing.assert_close(live.probabilities.sum(1), torch.ones(90, dtype=torch.float64))
    assert not problem.evidence.any()
    same = Problem.with_labels(graph, KnownLabels.of(graph, small_split().train, torch.float64))
    assert torch.equal(same.x, Problem.of(graph, small_split().train, torch.float64).x)
