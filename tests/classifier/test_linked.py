"""Models of one table: its rows alone are predicted, and new rows join by the rules of the model."""

import numpy as np
import pyarrow as pa
import pytest
import torch

import lignn
from lignn import Graph, NodeClassifier
from lignn.errors import InputError
from tests.graph.test_linked import N, linked, payments

TREES = {"method": "label_input", "method_options": {"base": "boosted"}}


def rows_of(table, first, last):
    return table.slice(first, last - first).drop_columns(["label"])


def joined_later(count):
    """The graph of the first rows to which the others are added, with the classifier."""
    given = payments()
    graph = Graph.from_table(given.slice(0, count), links=["card", "shop"], order="day")
    classifier = NodeClassifier(method="lpa").fit(graph)
    decision = classifier.add_nodes(rows_of(given, count, N))
    return classifier.graph_, decision


def named_edges(graph):
    ids = graph.node_ids.tolist()
    return {
        (ids[a], ids[b], graph.edge_types[k])
        for (a, b), k in zip(graph.edge_index.T.tolist(), graph.edge_type.tolist(), strict=True)
    }


def test_new_rows_join_as_if_they_had_been_there():
    grown, decision = joined_later(N - 12)
    assert decision.node_ids.tolist() == [str(i) for i in range(N - 12, N)]
    whole = linked()
    assert set(grown.node_ids.tolist()) == set(whole.node_ids.tolist())
    found, wanted = named_edges(grown), named_edges(whole)
    assert wanted <= found
    # What is left over are old rows that followed each other before a new row came between them.
    assert all(kind.endswith("by day") and max(int(a), int(b)) < N - 12 for a, b, kind in found - wanted)
    mine, theirs = (
        dict(zip(graph.node_ids.tolist(), graph.columns["card (rows)"].to_pylist(), strict=True))
        for graph in (grown, whole)
    )
    assert mine == theirs


def test_a_value_that_a_new_row_shares_first_becomes_a_node():
    given = payments()
    classifier = NodeClassifier(method="lpa").fit(linked())
    before = classifier.graph_.num_nodes
    classifier.add_nodes([{"card": "c0", "shop": "alone", "amount": 0.0, "day": 3}])
    graph = classifier.graph_
    assert graph.node_ids[before:].tolist() == [str(N), "shop=alone"]
    joined = graph.edge_index[0][graph.edge_index[1] == before + 1].tolist()
    assert joined == [N - 1, before]
    assert given["shop"][N - 1].as_py() == "alone"


def test_new_rows_join_their_nearest():
    classifier = NodeClassifier(method="lpa").fit(Graph.from_table(payments(), links=["nearest:3"]))
    classifier.add_nodes(rows_of(payments(), 4, 5))
    graph = classifier.graph_
    assert 4 in graph.edge_index[0][graph.edge_index[1] == N].tolist()
    assert (graph.edge_index == N).sum() == 6


@pytest.mark.parametrize(
    "parameters", [TREES, {"max_epochs": 4}, {"method": "boosted"}], ids=["trees", "network", "rows"]
)
def test_a_saved_model_joins_new_rows_to_the_bit(tmp_path, parameters):
    classifier = NodeClassifier(**parameters).fit(linked())
    classifier.save(tmp_path / "model")
    loaded = lignn.load(tmp_path / "model")
    new = rows_of(payments(), 0, 3)
    one, two = (each.add_nodes(new, ids=["x", "y", "z"]) for each in (classifier, loaded))
    assert np.array_equal(one.probabilities, two.probabilities)
    assert loaded.graph_.reading.links == classifier.graph_.reading.links


def test_values_have_no_features_and_teach_nothing():
    classifier = NodeClassifier(max_epochs=2).fit(linked())
    x = classifier._fitted.prediction.problem.x
    assert not torch.as_tensor(x)[N:].any()
    classifier.update_labels({str(i): None for i in range(5)})
    assert sorted(classifier.suggest(5).tolist()) == [0, 1, 2, 3, 4]


def test_hidden_labels_change_nothing(tmp_path):
    given = payments()
    hidden = [value if i % 2 else None for i, value in enumerate(given["label"].to_pylist())]
    split = ["train" if i % 2 else "test" for i in range(N)]
    found = []
    for labels in (hidden, given["label"].to_pylist(), [v if i % 2 else "no" for i, v in enumerate(hidden)]):
        table = given.set_column(0, "label", pa.array(labels)).append_column("split", pa.array(split))
        graph = Graph.from_table(table, links=["card", "shop", "nearest:2"], order="day")
        found.append(NodeClassifier(**TREES).fit(graph).predict_proba())
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_edges_may_be_given_besides():
    classifier = NodeClassifier(method="lpa").fit(linked())
    before = classifier.graph_.num_nodes
    classifier.add_nodes(rows_of(payments(), 0, 1), [["5"], ["new"]], ids=["new"], edge_type=["card"])
    assert 5 in classifier.graph_.edge_index[0][classifier.graph_.edge_index[1] == before].tolist()
    with pytest.raises(InputError, match="the graph has types of edges: give edge_type"):
        classifier.add_nodes(rows_of(payments(), 0, 1), [["5"], ["n2"]], ids=["n2"])
