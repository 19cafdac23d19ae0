"""A method on a problem: its prediction, made again when labels change, and its facts."""

import pickle

import pytest
import torch

from lignn import Split
from lignn.backbones import GCN
from lignn.labels import KnownLabels
from lignn.methods import IGNN, NAMES, Problem
from tests.classifier.small import fitted, small_graph, small_split
from tests.methods.small import built, learned, small_problem


@pytest.mark.parametrize("method", ["lignn", "lpa", "label_reuse", "threeference", "ignn", "correct_and_smooth"])
def test_predicts_as_the_method_does(method):
    found = fitted(method, max_epochs=3)._fitted.prediction
    prediction = found.bound.method.predict(found.problem)
    assert torch.equal(found.probabilities, prediction.probabilities)
    assert torch.equal(found.labels, prediction.labels)


@pytest.mark.parametrize("method", ["lignn", "label_input", "backbone", "correct_and_smooth", "ignn"])
def test_features_are_looked_at_once(method, monkeypatch):
    bound = fitted(method, max_epochs=3)._fitted.prediction.bound
    labels = bound.problem.labels
    fewer = labels.mask.clone()
    fewer[labels.mask.nonzero()[0]] = False

    def looked(*_):
        raise AssertionError("the features were looked at again")

    with monkeypatch.context() as patch:
        patch.setattr(GCN, "features", looked)
        patch.setattr(GCN, "forward", looked)
        patch.setattr(IGNN, "represent", looked)
        changed = bound.with_labels(KnownLabels(fewer, labels.onehot * fewer[:, None])).solve()
    fresh = bound.method.on(Problem.of(small_graph(), fewer, torch.float64)).solve()
    assert torch.equal(changed.probabilities, fresh.probabilities)
    assert torch.equal(changed.problem.labels.mask, fewer)


FACTS = {
    # takes_labels, iterates, linear, has a map, proved unique
    "backbone": (False, False, False, False, False),
    "lpa": (True, True, True, True, False),
    "reslpa": (True, True, True, True, False),
    "threeference": (True, True, False, True, False),
    "correct_and_smooth": (True, False, False, False, False),
    "label_input": (True, False, False, True, False),
    "label_reuse": (True, False, False, True, False),
    "lignn": (True, True, False, True, False),
    "lae": (True, True, False, True, False),
    "ignn": (False, True, False, False, True),
    "eignn": (False, True, False, False, True),
    "logistic": (True, False, False, False, False),
    "boosted": (True, False, False, False, False),
    "ensemble": (True, False, False, True, False),
}


@pytest.mark.parametrize("name", NAMES)
def test_facts(name):
    graph, _, problem = small_problem()
    bound = built(name, graph).on(problem)
    facts = (bound.takes_labels, bound.iterates, bound.linear, bound.map is not None, bound.proof is not None)
    assert facts == FACTS[name]
    assert bound.accepts_start == (bound.iterates and bound.map is not None)


@pytest.mark.parametrize("name", NAMES)
def test_labels_change_a_prediction_only_if_they_are_an_input(name):
    graph, _, problem = small_problem()
    bound = learned(built(name, graph).eval(), problem).on(problem)
    if name == "correct_and_smooth":
        bound.method.chosen = (2, 2)
    labels = problem.labels
    other = KnownLabels(labels.mask, labels.onehot.roll(1, 1) * labels.mask[:, None])
    same = torch.equal(bound.with_labels(other).solve().probabilities, bound.solve().probabilities)
    assert same == (not bound.takes_labels)


@pytest.mark.parametrize("method", ["lignn", "lpa", "reslpa"])
def test_a_label_in_a_part_that_none_has_reached(method):
    whole = small_graph()
    edges = whole.edge_index[:, ((whole.edge_index < 80).sum(0) != 1)]
    graph = whole.replace(edge_index=edges)
    split = Split(small_split().train & (torch.arange(90) < 80), small_split().val, small_split().test)
    bound = fitted(method, graph=graph, split=split, max_epochs=3)._fitted.prediction.bound
    assert not bound.problem.evidence[80:].any()
    mask = bound.problem.labels.mask.clone()
    mask[85] = True
    labels = KnownLabels.of(graph, mask, torch.float64)
    changed = bound.with_labels(labels).solve()
    assert changed.evidence[85]
    fresh = bound.method.on(bound.problem.knowing(labels)).solve()
    assert torch.equal(changed.probabilities, fresh.probabilities)


def test_survives_pickling():
    prediction = fitted(max_epochs=3)._fitted.prediction
    copy = pickle.loads(pickle.dumps(prediction))
    again = copy.bound.with_labels(prediction.problem.labels).solve()
    assert torch.equal(again.probabilities, prediction.probabilities)


def test_problem_without_any_label():
    graph = small_graph()
    nothing = KnownLabels(torch.zeros(90, dtype=torch.bool), torch.zeros(90, 3, dtype=torch.float64))
    problem = Problem.with_labels(graph, nothing)
    prediction = fitted(max_epochs=3).method_.on(problem).solve()
    torch.testing.assert_close(prediction.probabilities.sum(1), torch.ones(90, dtype=torch.float64))
    assert not problem.evidence.any()
    same = Problem.with_labels(graph, KnownLabels.of(graph, small_split().train, torch.float64))
    assert torch.equal(same.x, Problem.of(graph, small_split().train, torch.float64).x)
