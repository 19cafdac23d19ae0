"""What a fit takes from its surroundings: the graph's only split, and nothing of what the caller has set in PyTorch."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager

import numpy as np
import pytest
import torch

import lignn
from lignn import Graph, NodeClassifier, Split
from lignn.declarations import METHODS
from lignn.errors import DataWarning, ImbalanceWarning, InputError
from lignn.methods import NAMES
from tests.classifier.small import small_graph, small_split
from tests.faults.test_leaks import flipped

EPOCHS = 3


def fitted(method: str, graph: Graph, split: Split | None = None) -> NodeClassifier:
    width = {} if METHODS[method].network in ("none", "own") else {"hidden": 4}
    return NodeClassifier(method, max_epochs=EPOCHS, **width).fit(graph, split)


def single() -> Graph:
    return small_graph().replace(x=small_graph().x.float())


def answers(method: str) -> list[np.ndarray]:
    """Predictions after a fit, after a label, and after further training."""
    classifier = fitted(method, single(), small_split())
    found = [classifier.predict_proba()]
    for epochs in (0, 1):
        classifier.update_labels({50 + epochs: 1}, epochs=epochs)
        found.append(classifier.predict_proba())
    return found


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_fit_enables_gradients_for_itself(method: str, mode: type[AbstractContextManager[None]]) -> None:
    expected = answers(method)
    with mode():
        found = answers(method)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)  # a solve in inference mode may round differently
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("method", NAMES)
def test_the_callers_default_type_changes_nothing(method: str) -> None:
    expected = answers(method)
    torch.set_default_dtype(torch.float64)
    try:
        found = answers(method)
        assert torch.get_default_dtype() is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    for one, other in zip(expected, found, strict=True):
        assert np.array_equal(one, other)
        assert one.dtype == other.dtype


def test_an_error_in_a_fit_restores_the_callers_type() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(InputError):
            fitted("lignn", small_graph().replace(y=None, class_names=None))
        assert torch.get_default_dtype() is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def classifiers() -> list[NodeClassifier]:
    quick = {"max_epochs": EPOCHS, "hidden": 4}
    return [NodeClassifier(**quick), NodeClassifier(method="auto", quality="fast", backbones=["gcn"], **quick)]


@pytest.mark.parametrize("classifier", classifiers(), ids=["NodeClassifier", "race"])
def test_a_graphs_only_split_is_used(classifier: NodeClassifier) -> None:
    """Labels of its test part change nothing that is learned."""
    split = small_split()
    found = []
    for graph in (single(), flipped(single(), split.test)):
        classifier.fit(graph.replace(splits=(split,)))
        assert torch.equal(classifier.split_.test, split.test)
        found.append(classifier.predict_proba())
    assert np.array_equal(*found)


@pytest.mark.parametrize("classifier", classifiers(), ids=["NodeClassifier", "race"])
def test_of_several_splits_none_is_taken_and_a_warning_tells(classifier: NodeClassifier) -> None:
    graph = single().replace(splits=(small_split(), small_split()))
    with pytest.warns(DataWarning, match=r"has 2 splits and none was given: all known labels are learned from") as told:
        classifier.fit(graph)
    (warning,) = [one for one in told if one.category is DataWarning]
    assert warning.filename == __file__
    assert torch.equal(classifier.split_.train | classifier.split_.val, graph.labelled)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        classifier.fit(graph, graph.splits[0])


def test_a_table_with_a_split_is_fitted_as_the_command_does(tmp_path) -> None:
    """A column `split` of a table keeps test labels out, read by Python or by the command."""
    split, graph = small_split(), single()
    found = []
    for name, version in {"one": graph, "two": flipped(graph, split.test)}.items():
        version.replace(splits=(split,)).write(tmp_path / name)
        classifier = NodeClassifier(max_epochs=EPOCHS, hidden=4).fit(Graph.read(tmp_path / name))
        found.append(classifier.predict_proba())
    assert np.array_equal(*found)


def test_a_model_that_is_no_better_than_a_guess_says_so_with_what_to_try() -> None:
    """Held-out labels that contradict those of training make every model that has learned worse than a guess."""
    split, graph = small_split(), single()
    with pytest.warns(ImbalanceWarning, match=r"no better than a guess: F1-micro .* held-out labels; .*--method auto"):
        NodeClassifier("backbone", hidden=8, max_epochs=60).fit(flipped(graph, split.val), split)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ImbalanceWarning)
        NodeClassifier("backbone", hidden=8, max_epochs=60).fit(graph, split)


def test_the_score_without_nodes_is_the_held_out_one(tmp_path) -> None:
    graph = single()
    y = torch.where(small_split().test, -1, graph.y)
    classifier = NodeClassifier(max_epochs=EPOCHS, hidden=4).fit(graph.replace(y=y))
    report = classifier.report()
    assert (report.part, report.seen_since) == ("held_out", True)
    assert report.nodes == len(classifier._fitted.held_out.truth)
    assert classifier.score() == report.score == pytest.approx(classifier.history_.final["val"])
    assert "the final model has since been trained on them too" in str(report)
    classifier.save(tmp_path / "model")
    loaded = lignn.load(tmp_path / "model")
    assert loaded.score() == classifier.score()
    assert loaded.report().plain() == report.plain()


def test_without_held_out_labels_there_is_no_score() -> None:
    graph = single()
    first = [int((graph.y == c).nonzero()[0]) for c in range(3)]
    y = torch.full_like(graph.y, -1)
    y[first] = graph.y[first]
    classifier = NodeClassifier("lpa").fit(graph.replace(y=y))
    with pytest.raises(InputError, match="no label was held back, so that nothing tells how good the model is"):
        classifier.score()
