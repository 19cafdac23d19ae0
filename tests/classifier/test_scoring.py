"""Which labels of a graph are inputs, and what may be scored."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from lignn import NodeClassifier, load
from lignn.errors import InputError
from tests.classifier.small import fitted, small_graph, small_split
from tests.problems import half_split, random_graph


def elsewhere(n=90, splits=()):
    """Another graph of the same kind."""
    return small_graph(noise=2.0, n=n).replace(splits=splits)


@pytest.mark.parametrize("method", ["lpa", "lignn", "backbone"])
def test_which_graph_is_the_fitted_one_is_a_matter_of_content(tmp_path, method):
    graph, split = small_graph(), small_split()
    classifier = fitted(method, max_epochs=3)
    classifier.save(tmp_path / "m")
    expected = classifier.predict_proba()
    copies = [graph, copy.deepcopy(graph), graph.replace(name="x"), graph.replace(splits=(split, small_split(seed=1)))]
    for model in (classifier, copy.deepcopy(classifier), load(tmp_path / "m")):
        for same in copies:
            found = model.decision(same)
            assert np.array_equal(found.known, split.train.numpy())
            assert np.array_equal(found.probabilities, expected)
            assert model.score("test", same) == classifier.score("test")


def test_how_a_graph_is_stored_is_not_its_content():
    names = [f"f{i}" for i in range(6)]
    graph = small_graph().replace(feature_names=names)
    classifier = fitted("lpa", graph=graph)
    order = [3, 1, 0, 2, 5, 4]
    turned = graph.replace(
        x=graph.x[:, order],
        feature_names=[names[i] for i in order],
        y=torch.tensor([2, 0, 1])[graph.y],
        class_names=("b", "c", "a"),
        edge_index=graph.edge_index.flip(1),
    )
    turned = turned.replace(x=sp.csr_array(turned.x.numpy()))
    assert np.array_equal(classifier.decision(turned).known, small_split().train.numpy())


def test_updates_are_known_on_a_copy_too():
    classifier = fitted("lpa")
    node = int(small_split().test.nonzero()[0])
    classifier.update_labels({node: 1})
    assert classifier.decision(copy.deepcopy(small_graph())).known[node]
    assert np.array_equal(classifier.predict_proba(small_graph()), classifier.predict_proba())


def test_labels_are_content():
    graph = small_graph()
    other = graph.replace(y=torch.where(torch.arange(90) < 45, graph.y, -1))
    assert np.array_equal(fitted("lpa").decision(other).known, np.arange(90) < 45)


def test_labels_that_the_only_split_holds_back_are_no_inputs():
    split = small_split(seed=3)
    other = elsewhere(splits=(split,))
    flipped = other.replace(y=torch.where(split.held_out, (other.y + 1) % 3, other.y))
    classifier = fitted("lpa")
    found = classifier.decision(other)
    assert np.array_equal(found.known, split.train.numpy())
    assert np.array_equal(found.given != "", split.train.numpy())
    assert np.array_equal(classifier.predict_proba(flipped), found.probabilities)
    assert np.array_equal(classifier.predict(flipped), found.labels)
    assert classifier.decision(elsewhere()).known.all()


def test_several_splits_need_a_word():
    splits = (small_split(seed=3), small_split(seed=4))
    other, classifier = elsewhere(splits=splits), fitted("lpa")
    for call in (classifier.predict, classifier.predict_proba, classifier.decision):
        with pytest.raises(InputError, match=r"has 2 splits.*by known=, a mask"):
            call(other)
        call(other, known=splits[0].train)
    with pytest.raises(InputError, match="has 2 splits"):
        classifier.score(splits[0].test, other)
    one = other.replace(splits=splits[:1])
    assert classifier.score(splits[0].test, other, known=splits[0].train) == classifier.score("test", one)
    assert not classifier.decision(other.replace(y=None)).known.any()


def test_known_says_which_labels_are_inputs():
    classifier = fitted("lpa")
    half = np.arange(90) < 45
    for graph in (None, elsewhere()):
        found = classifier.decision(graph, known=half)
        assert np.array_equal(found.known, half)
    few = elsewhere().replace(y=torch.where(torch.arange(90) < 20, elsewhere().y, -1))
    assert classifier.decision(few, known=half).known.sum() == 20
    with pytest.raises(InputError, match="known: a boolean mask over the 90 nodes"):
        classifier.predict(known=[1, 2])


def test_parts_of_another_graph_are_those_of_its_own_split():
    split = small_split(seed=3)
    classifier = fitted("lpa")
    other = elsewhere(splits=(split,))
    assert classifier.score("test", other) == classifier.score(split.test, other)
    with pytest.raises(InputError, match="has no split or several; give a mask"):
        classifier.score("test", elsewhere())


def test_several_classes_a_node_elsewhere():
    graph, split = random_graph(n=30, multilabel=True), half_split(30)
    classifier = fitted(graph=graph, split=split, max_epochs=2)
    assert np.array_equal(classifier.decision(copy.deepcopy(graph)).known, split.train.numpy())
    other = random_graph(n=30, seed=5, multilabel=True).replace(splits=(split,))
    flipped = other.replace(y=torch.where(split.held_out[:, None], 1 - other.y, other.y))
    assert np.array_equal(classifier.predict_proba(other), classifier.predict_proba(flipped))


@pytest.mark.parametrize("split", [None, small_split()])
def test_validation_nodes_that_a_refit_has_trained_on_are_not_scored_as_such(split, tmp_path):
    classifier = NodeClassifier(refit=True, max_epochs=3).fit(small_graph(), split)
    classifier.save(tmp_path / "m")
    for model in (classifier, load(tmp_path / "m")):
        with pytest.raises(
            InputError, match=r"'val' was trained on by the refit.*without nodes, the score is the one before"
        ):
            model.score("val")
        assert not model.split_.val.any()
        assert model.score("held_out") == pytest.approx(classifier.history_.final["val"])
    once = NodeClassifier(refit=False, max_epochs=3).fit(small_graph(), split)
    assert torch.equal(classifier.split_.train, once.split_.train | once.split_.val)
    assert 0 <= once.score("val") <= 1


def test_where_a_refit_trains_nothing_validation_nodes_can_be_scored():
    assert fitted("lpa", refit=True).score("val") == fitted("lpa").score("val")
