"""Changes of a model's graph without training."""

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch

import lignn
from lignn import Graph
from lignn.classifier.draft import Draft
from lignn.declarations import METHODS
from lignn.errors import InputError
from lignn.methods import NAMES
from tests.classifier.small import fitted, small_graph, small_split

GONE = [3, 17, 88]
TIGHT = {"tol": 1e-12, "max_steps": 3000}


def known_of(classifier):
    labels = classifier._fitted.prediction.problem.labels
    return torch.where(labels.mask, labels.onehot.argmax(1), -1)


def removed_by_hand():
    """The small graph without some nodes, by a matrix and fancy indexing."""
    graph = small_graph()
    left = np.setdiff1d(np.arange(90), GONE)
    matrix = graph.to_scipy()[left][:, left]
    return left, Graph.from_scipy(
        matrix, x=graph.x[left], y=graph.y[left], node_ids=graph.node_ids[left], class_names=graph.class_names
    ).replace(edge_weight=None)


def one_edge_by_hand(present):
    """The small graph with and without the edge 0 – 1, by a matrix."""
    graph = small_graph()
    matrix = graph.to_scipy().tolil()
    matrix[0, 1] = matrix[1, 0] = float(present)
    return graph.replace(edge_index=np.stack(matrix.tocoo().coords).astype(np.int64))


@pytest.mark.parametrize("method", NAMES)
def test_every_method_predicts_as_on_the_changed_graph(method):
    options = {**(TIGHT if "tol" in METHODS[method].parameters else {}), "max_epochs": 3}
    classifier = fitted(method, **options)
    known = known_of(classifier)
    changed = small_graph().x.clone()
    changed[5] = torch.arange(6)
    left, smaller = removed_by_hand()
    steps = [
        (lambda: classifier.add_edges([["node0"], ["node1"]]), one_edge_by_hand(True), known),
        (lambda: classifier.remove_edges([[0], [1]]), one_edge_by_hand(False), known),
        (lambda: classifier.change_features({"node5": [0, 1, 2, 3, 4, 5]}), one_edge_by_hand(False), known),
        (lambda: classifier.remove_nodes(GONE), None, known[left]),
    ]
    for number, (change, graph, y) in enumerate(steps):
        change()
        if number == 2:
            graph = graph.replace(x=changed)
        if number == 3:
            matrix = one_edge_by_hand(False).to_scipy()[left][:, left]
            edges = np.stack(matrix.tocoo().coords).astype(np.int64)
            graph = smaller.replace(edge_index=edges, x=changed[left])
        expected = classifier.predict_proba(graph.replace(y=y, name="other"))
        np.testing.assert_allclose(classifier.predict_proba(), expected, atol=1e-8)
    assert classifier.graph_.node_ids.tolist() == smaller.node_ids.tolist()
    for part in ("train", "val", "test"):
        assert torch.equal(getattr(classifier.split_, part), getattr(small_split(), part)[left])


def test_a_changed_model_explains_takes_labels_and_is_saved(tmp_path):
    classifier = fitted(max_epochs=3, backbone="gat")
    update = classifier.remove_nodes(["node3", "node17"])
    assert int(update.kept.sum()) == 88
    assert "solved from zero (it is not proved" in str(update)
    before, after = update.before.labels[update.kept], update.after.labels
    assert update.changed == int((before != after).sum())
    classifier.add_edges([["node0", "node4"], ["node5", "node9"]])
    classifier.change_features({"node4": {"2": 9.0}})
    classifier.update_labels({"node89": "b"})
    assert classifier.explain("node89", 3).node == 87
    assert len(classifier.suggest(4)) == 4
    assert classifier.diagnose().solved
    assert 0 <= classifier.score("val") <= 1
    classifier.save(tmp_path / "model")
    loaded = lignn.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(), classifier.predict_proba())
    assert loaded.graph_.num_nodes == 88
    assert loaded.graph_.x[3, 2] == 9


def test_an_edge_that_is_there_is_replaced_and_a_missing_one_refused():
    graph = small_graph().replace(edge_weight=np.ones(small_graph().num_edges))
    classifier = fitted("lpa", graph=graph)
    source, target = graph.edge_index[:, 0].tolist()
    classifier.add_edges([[source], [target]], edge_weight=[0.25])
    assert classifier.graph_.num_edges == graph.num_edges
    matrix = classifier.graph_.to_scipy()
    assert matrix[source, target] == matrix[target, source] == 0.25
    classifier.remove_edges([[target], [source]])
    assert classifier.graph_.num_edges == graph.num_edges - 2
    with pytest.raises(InputError, match=f"there is no edge from 'node{source}' to 'node{target}'"):
        classifier.remove_edges([[source], [target]])


def test_columns_of_a_table_follow():
    table = pa.table({"colour": ["r", "g", "b"], "since": pa.array([1, 2, None], pa.date32())})
    draft = Draft.without_model(Graph([[0, 1], [1, 2]], num_nodes=3, table=table)).without_nodes([1])
    assert draft.graph.table["colour"].to_pylist() == ["r", "b"]
    changed = draft.with_features({1: {"since": "2026-01-31", "colour": None}}).graph.table
    assert changed["colour"].to_pylist() == ["r", None]
    assert [str(day) for day in changed["since"].to_pylist()] == ["1970-01-02", "2026-01-31"]
    with pytest.raises(InputError, match="features of '0': 'color' is no column; did you mean 'colour'"):
        draft.with_features({0: {"color": "r"}})
    with pytest.raises(InputError, match="column 'since' holds date32"):
        draft.with_features({0: {"since": "soon"}})
    with pytest.raises(InputError, match="values by the name of the column are needed, got list"):
        draft.with_features({0: ["r"]})


def test_all_parts_of_a_graph_follow():
    """Types, times, groups and columns; directed edges keep their direction."""
    graph = Graph(
        [[0, 1, 2, 3], [1, 2, 3, 0]],
        x=sp.csr_array(np.eye(4)),
        num_nodes=4,
        edge_type=[0, 1, 0, 1],
        edge_types=("knows", "pays"),
        time=[1.0, 2.0, 3.0, 4.0],
        group=[0, 0, 1, 1],
        feature_names=list("pqrs"),
    )
    draft = Draft.without_model(graph).without_nodes([1])
    assert draft.graph.edge_index.tolist() == [[1, 2], [2, 0]]
    assert draft.graph.edge_type.tolist() == [0, 1]
    assert draft.graph.time.tolist() == [1, 3, 4]
    assert draft.graph.group.tolist() == [0, 1, 1]
    assert draft.graph.x.toarray().tolist() == np.eye(4)[[0, 2, 3]].tolist()
    draft = draft.with_edges([[1], [2]], edge_type=["pays"]).with_features({1: {"p": 5, "r": 0}, 0: [1, 2, 3, 4]})
    assert draft.graph.num_edges == 3
    assert draft.graph.x.toarray().tolist() == [[1, 2, 3, 4], [5, 0, 0, 0], [0, 0, 0, 1]]
    assert draft.without_edges([[1], [2]], ["knows"]).graph.edge_type.tolist() == [1, 1]
    assert draft.without_edges([[1], [2]]).graph.edge_index.tolist() == [[2], [0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.remove_nodes(["who"]), "node 'who' is not in the graph"),
        (lambda c: c.remove_nodes("node1"), r"got the text 'node1'; give \['node1'\]"),
        (lambda c: c.remove_nodes(range(90)), "at least one must be left"),
        (lambda c: c.add_edges([["node1"], ["who"]]), "edge to node 'who'"),
        (lambda c: c.add_edges([[1], [2]], edge_weight=[1.0]), "the graph has no edge weights: leave them out"),
        (lambda c: c.add_edges([[1], [2]], edge_type=["a"]), "the graph has no types of edges: leave them out"),
        (lambda c: c.remove_edges([[0], [0]]), "there is no edge from 'node0' to 'node0'"),
        (lambda c: c.remove_edges([[0], [0]], edge_type=["a"]), "'a' is no type of the graph's edges"),
        (lambda c: c.change_features({"node1": [1.0]}), "features of 'node1': 6 numbers are needed"),
        (lambda c: c.change_features({"node1": {"7": 1.0}}), "features of 'node1': '7' is no feature"),
        (lambda c: c.change_features({"node1": [float("nan")] * 6}), "not a finite number|finite"),
        (lambda c: c.change_features([1]), "a mapping from nodes to features is needed, got list"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(change, message):
    classifier = fitted("lpa")
    before = classifier._fitted
    with pytest.raises(InputError, match=message):
        change(classifier)
    assert classifier._fitted is before


def test_no_label_of_a_test_node_becomes_an_input():
    flipped = small_graph().replace(
        y=torch.where(small_split().test, (small_graph().y + 1) % 3, small_graph().y), name="small"
    )
    found = []
    for graph in (small_graph(), flipped):
        classifier = fitted(graph=graph, max_epochs=2)
        classifier.remove_nodes([0, 1])
        classifier.add_edges([["node5"], ["node9"]])
        classifier.change_features({"node7": [0.0] * 6})
        found.append(classifier.predict_proba())
    assert np.array_equal(*found)
