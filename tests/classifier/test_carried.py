"""Models of graphs whose edges carry columns: saved, given new nodes and edges, and blind to held-out labels."""

import numpy as np
import pyarrow as pa
import pytest

import lignn
from lignn import Graph, NodeClassifier
from lignn.errors import InputError

N, M = 30, 200
TREES = {"method": "label_input", "method_options": {"base": "boosted"}}


def accounts(labels=None):
    labels = ["shop" if i % 2 else "person" for i in range(N)] if labels is None else labels
    return pa.table({"id": [f"a{i}" for i in range(N)], "label": labels})


def payments(count=M):
    rng = np.random.default_rng(2)
    table = pa.table(
        {
            "from": [f"a{i}" for i in rng.integers(0, N + 3, M)],
            "to": [f"a{i}" for i in rng.integers(0, N, M)],
            "amount": rng.normal(size=M).round(3),
            "day": rng.permutation(M),
            "kind": [f"k{i}" for i in rng.integers(0, 3, M)],
        }
    )
    return table.slice(0, count)


def fitted(count=M, **parameters):
    return NodeClassifier(**(TREES | parameters)).fit(Graph.from_tables(accounts(), payments(count)))


def ends_and_columns(first):
    later = payments().slice(first)
    ends = [later["from"].to_pylist(), later["to"].to_pylist()]
    return ends, later.select(["amount", "day", "kind"])


def test_new_edges_count_as_if_they_had_been_there():
    classifier = fitted(M - 20)
    ends, columns = ends_and_columns(M - 20)
    classifier.add_edges(ends, edge_columns=columns)
    grown, whole = classifier.graph_, Graph.from_tables(accounts(), payments(), like=classifier.graph_.reading)
    assert sorted(grown.node_ids.tolist()) == sorted(whole.node_ids.tolist())
    place = [grown.node_ids.tolist().index(name) for name in whole.node_ids.tolist()]
    mine, theirs = grown.columns.take(place), whole.columns
    assert mine.column_names == theirs.column_names
    for name in theirs.column_names:
        found, wanted = (np.array(each[name].to_pylist(), float) for each in (mine, theirs))
        np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=name)
    assert grown.num_edges == whole.num_edges


def test_a_new_node_comes_with_its_payments():
    classifier = fitted()
    new = {"edges": [["a0", "new"], ["new", "a1"]], "edge_columns": [{"amount": 2.5, "day": 900}, {"kind": "k1"}]}
    decision = classifier.add_nodes(1, ids=["new"], **new)
    assert decision.node_ids.tolist() == ["new"]
    told = classifier.graph_.columns.slice(classifier.graph_.num_nodes - 1).to_pylist()[0]
    assert (told["edges out"], told["edges in"]) == (1, 1)
    assert (told["amount out: last"], told["amount in: last"], told["kind out: share of k1"]) == (None, 2.5, 1)
    assert classifier.graph_.columns["day out: last"][0].as_py() == 900


def test_removed_edges_and_nodes_no_longer_count():
    classifier = fitted()
    first = payments().slice(0, 1).to_pylist()[0]
    same = sum((row["from"], row["to"]) == (first["from"], first["to"]) for row in payments().to_pylist())
    number = classifier.graph_.node_ids.tolist().index(first["from"])
    before = classifier.graph_.columns["edges out"][number].as_py()
    edges = classifier.graph_.num_edges
    classifier.remove_edges([[first["from"]], [first["to"]]])
    assert classifier.graph_.columns["edges out"][number].as_py() == before - same
    assert classifier.graph_.edge_table.ends.shape[1] == M - same
    assert classifier.graph_.num_edges < edges
    classifier.remove_nodes(["a3"])
    left = Graph.from_tables(accounts(), payments()).node_ids.tolist()
    left.remove("a3")
    graph = classifier.graph_
    assert graph.node_ids.tolist() == left
    assert graph.columns["edges in"].to_pylist() == np.bincount(graph.edge_table.ends[1], minlength=len(left)).tolist()


def test_new_edges_must_say_what_they_carry():
    classifier = fitted()
    for given, words in (
        ({}, "the edges of the graph have columns: give edge_columns for the new edges"),
        ({"edge_columns": [{"amount": 1}] * 2}, "edge_columns: 1 rows are needed, one for each edge, got 2"),
        ({"edge_columns": [{"amout": 1}]}, "edge_columns: 'amout' is no column of the edges; did you mean 'amount'"),
    ):
        with pytest.raises(InputError, match=words):
            classifier.add_edges([["a0"], ["a1"]], **given)
    bare = NodeClassifier(method="lpa").fit(Graph([[0, 1], [1, 0]], y=[0, 1]))
    with pytest.raises(InputError, match="the edges of the graph carry no columns: leave edge_columns out"):
        bare.add_edges([[0], [1]], edge_columns=[{"amount": 1}])


@pytest.mark.parametrize("parameters", [{}, {"method": "boosted"}, {"method": "lignn", "max_epochs": 3}])
def test_a_saved_model_knows_the_rule(tmp_path, parameters):
    options = {} if "method" not in parameters else {"method_options": None}
    classifier = fitted(**options, **parameters)
    classifier.save(tmp_path / "model")
    loaded = lignn.load(tmp_path / "model")
    assert loaded.graph_.columns.equals(classifier.graph_.columns)
    ends, columns = ends_and_columns(M - 5)
    for each in (classifier, loaded):
        each.add_edges(ends, edge_columns=columns)
    assert np.array_equal(classifier.predict_proba(), loaded.predict_proba())
    other = Graph.from_tables(accounts(), payments(50), like=classifier.graph_.reading)
    classifier.save(tmp_path / "handed_on", graph=False)
    alone = lignn.load(tmp_path / "handed_on")
    assert np.array_equal(alone.predict_proba(other), classifier.predict_proba(other))


@pytest.mark.parametrize("parameters", [TREES, {"method": "boosted"}, {"method": "lignn", "max_epochs": 3}])
def test_hidden_labels_change_nothing(parameters):
    known = accounts()["label"].to_pylist()
    split = ["train" if i % 3 else "test" for i in range(N)]
    hidden = [label if i % 3 else None for i, label in enumerate(known)]
    flipped = [label if i % 3 else "shop" for i, label in enumerate(known)]
    found = []
    for labels in (known, hidden, flipped):
        graph = Graph.from_tables(accounts(labels).append_column("split", [split]), payments())
        found.append(NodeClassifier(**parameters).fit(graph).predict_proba())
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
