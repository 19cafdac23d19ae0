"""Models without the graph they were trained on."""

import json

import numpy as np
import pytest

import lignn
from lignn import NodeClassifier
from lignn.classifier import saving
from lignn.errors import InputError
from lignn.methods import NAMES
from tests.classifier.small import fitted, small_graph, small_split
from tests.classifier.test_features import table, tabular

pytestmark = pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")


def handed_on(classifier, folder):
    classifier.save(folder, graph=False)
    return lignn.load(folder)


def elsewhere(graph):
    """The same nodes with other edges, so that it is another graph."""
    return graph.replace(edge_index=graph.edge_index[:, :-4], y=None)


@pytest.mark.parametrize("method", NAMES)
def test_predicts_other_graphs_as_with_its_own(tmp_path, method):
    classifier = fitted(method, max_epochs=2)
    loaded = handed_on(classifier, tmp_path / "m")
    other = elsewhere(small_graph())
    assert np.array_equal(loaded.predict_proba(other), classifier.predict_proba(other))
    split = small_split()
    labelled = small_graph().replace(edge_index=small_graph().edge_index[:, :-4], splits=(split,))
    assert loaded.score("test", labelled) == classifier.score("test", labelled)
    assert loaded.get_params() == classifier.get_params()
    assert loaded.class_names_ == classifier.class_names_
    assert loaded.temperature_ == classifier.temperature_


def test_the_graph_it_was_trained_on_is_another_graph(tmp_path):
    loaded = handed_on(fitted(max_epochs=2), tmp_path / "m")
    assert loaded.decision(small_graph()).known.all()


@pytest.mark.parametrize(
    "needs",
    [
        lambda model: model.predict(),
        lambda model: model.predict_proba(),
        lambda model: model.decision(),
        lambda model: model.score(),
        lambda model: model.score(np.ones(90, dtype=bool)),
        lambda model: model.diagnose(),
        lambda model: model.explain(0),
        lambda model: model.suggest(1),
        lambda model: model.update_labels({0: 1}),
        lambda model: model.update_labels({0: 1}, epochs=1),
        lambda model: model.add_nodes(np.zeros((1, 6)), [[0], [90]], ["new"]),
        lambda model: model.save("nowhere"),
        lambda model: model.graph_,
        lambda model: model.split_,
    ],
)
def test_what_needs_its_graph_is_one_sentence(tmp_path, monkeypatch, needs):
    monkeypatch.chdir(tmp_path)
    loaded = handed_on(fitted(max_epochs=2), tmp_path / "m")
    with pytest.raises(InputError, match="the model was saved without the graph it was trained on, which this needs"):
        needs(loaded)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_an_unfitted_classifier_has_no_graph_and_says_so():
    with pytest.raises(AttributeError, match="'NodeClassifier' object has no attribute 'graph_'"):
        NodeClassifier().graph_  # noqa: B018
    with pytest.raises(ValueError, match="not fitted yet"):
        NodeClassifier().save("nowhere", graph=False)


def test_nothing_of_the_graph_is_in_the_files(tmp_path):
    """Ids, names, labels and numbers of nodes; the numbers of features as text and as bytes."""
    classifier = fitted(graph=tabular(), max_epochs=3)
    classifier.save(tmp_path / "with")
    classifier.save(tmp_path / "without", graph=False)
    files = {path.name for path in (tmp_path / "without" / "generation-1").iterdir()}
    assert files == {saving.CONFIG, saving.WEIGHTS, saving.HISTORY}
    content = {kind: b"".join(p.read_bytes() for p in (tmp_path / kind).rglob("*.*")) for kind in ("with", "without")}
    heights = [value for value in table()["height"].to_pylist() if value is not None]
    marks = [b"node1", b"person 1", *(f"{value:.5g}".encode() for value in heights)]
    marks += [np.float64(value).tobytes() for value in heights]
    assert [mark for mark in marks if mark in content["without"]] == []
    assert b"person 1" in content["with"]  # an example of the column
    config = json.loads((tmp_path / "without" / "generation-1" / saving.CONFIG).read_text(encoding="utf-8"))
    assert config["graph"] is None
    assert {column["summary"] for column in config["features"]["columns"]} == {""}
    loaded, other = lignn.load(tmp_path / "without"), elsewhere(tabular())
    assert np.array_equal(loaded.predict_proba(other), classifier.predict_proba(other))


def test_saved_again_and_in_place_of_a_model_with_its_graph(tmp_path):
    classifier = fitted(max_epochs=2)
    classifier.save(tmp_path / "m")
    loaded = handed_on(classifier, tmp_path / "m")
    assert not list((tmp_path / "m").rglob("graph.npz"))
    again = handed_on(loaded, tmp_path / "again")
    other = elsewhere(small_graph())
    assert np.array_equal(again.predict_proba(other), classifier.predict_proba(other))


def test_named_features_are_matched_by_name(tmp_path):
    names = [f"f{i}" for i in range(6)]
    graph = small_graph().replace(feature_names=names)
    classifier = fitted(graph=graph, max_epochs=2)
    loaded = handed_on(classifier, tmp_path / "m")
    other = elsewhere(graph)
    turned = other.replace(x=other.x[:, [5, 4, 3, 2, 1, 0]], feature_names=names[::-1])
    assert np.array_equal(loaded.predict_proba(turned), classifier.predict_proba(other))
    with pytest.raises(InputError, match="small has 5 features a node, the model was trained with 6"):
        loaded.predict(other.replace(x=other.x[:, :5]))
