"""Planted wrong labels are found, and a label has no part in its own judgement."""

import pytest
import torch

from lignn import NodeClassifier
from lignn.classifier.suspects import fold_of_each
from lignn.errors import ConfigError, InputError
from tests.classifier.small import small_graph
from tests.problems import random_graph

QUICK = {"method": "label_input", "hidden": 8, "max_epochs": 30}


def planted(count=12):
    graph = small_graph(n=240, noise=0.5)
    wrong = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(1))[:count]
    y = graph.y.clone()
    y[wrong] = (y[wrong] + 1) % 3
    return graph.replace(y=y), set(wrong.tolist()), graph.y


def test_planted_labels_are_found():
    graph, wrong, truth = planted()
    found = NodeClassifier(**QUICK).fit(graph).suspects(k=18)
    right = [one for one in found.found if one.node in wrong]
    assert len(right) >= 10  # of 12; by chance it would be 1
    assert all(one.predicted == "abc"[truth[one.node]] for one in right)
    assert all(one.given == "abc"[graph.y[one.node]] and one.id == f"node{one.node}" for one in found.found)
    doubts = [one.doubt for one in found.found]
    assert doubts == sorted(doubts, reverse=True)
    assert found.judged == 240
    assert str(found).startswith(f"{found.contradicted} of 240 given labels are predicted otherwise without them; the")
    assert found.plain()["found"][0]["node"] == found.found[0].node


@pytest.mark.parametrize("method", ["label_input", "lpa", "backbone"])
def test_a_label_is_not_seen_by_its_judge(method):
    """Whatever the label of a node is, what others predict for it is the same, to the bit."""
    graph = small_graph()
    options = {"method": method} | ({} if method == "lpa" else {"hidden": 4, "max_epochs": 3})
    from lignn.classifier import suspects as module

    classifier = NodeClassifier(**options, precision="float64").fit(graph)
    known = classifier._fitted.prediction.problem.labels.mask
    fold = fold_of_each(graph.y, known, 5, 0) == 2
    assert fold.sum() == 18
    flipped = graph.replace(y=torch.where(fold, (graph.y + 1) % 3, graph.y))
    seen = [module._without(classifier._fitted, version, known, fold) for version in (graph, flipped)]
    assert torch.equal(*seen)
    other = graph.replace(y=torch.where(known & ~fold, (graph.y + 1) % 3, graph.y))
    assert not torch.equal(seen[0], module._without(classifier._fitted, other, known, fold))


def test_labels_that_the_classifier_does_not_know_have_no_part():
    graph = small_graph()
    split = NodeClassifier("lpa").fit(graph).split_
    held = split.val
    versions = (graph, graph.replace(y=torch.where(held, (graph.y + 1) % 3, graph.y)))
    from lignn import Split

    given = Split(split.train, torch.zeros_like(held), held)
    found = [NodeClassifier("lpa").fit(version, given).suspects(k=90) for version in versions]
    assert found[0] == found[1]
    assert found[0].judged == int(split.train.sum())


def test_every_class_is_spread_over_thefold_of_each_and_a_lone_label_is_not_judged():
    y = torch.tensor([0] * 10 + [1] * 5 + [2])
    fold = fold_of_each(y, torch.ones(16, dtype=torch.bool), 5, seed=3)
    assert fold[y == 0].bincount(minlength=5).tolist() == [2] * 5
    assert fold[y == 1].bincount(minlength=5).tolist() == [1] * 5
    graph = small_graph()
    y = graph.y.clone()
    y[y == 2] = -1
    y[2] = 2
    found = NodeClassifier("lpa").fit(graph.replace(y=y)).suspects(k=90)
    assert found.judged == int((y >= 0).sum()) - 1
    assert 2 not in {one.node for one in found.found}


def test_bad_requests():
    classifier = NodeClassifier("lpa").fit(small_graph())
    with pytest.raises(ConfigError, match="folds: a whole number of at least 2 is needed, got 1"):
        classifier.suspects(folds=1)
    with pytest.raises(ConfigError, match="k: a whole number of at least 1 is needed"):
        classifier.suspects(k=0)
    several = NodeClassifier("lpa").fit(random_graph(multilabel=True))
    with pytest.raises(InputError, match="a node may have several classes here"):
        several.suspects()
