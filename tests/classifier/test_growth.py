"""New nodes without training."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from lignn import Graph, Split
from lignn.declarations import METHODS
from lignn.errors import InputError
from lignn.methods import NAMES
from lignn.methods.steps import BoundLabelInputted
from tests.classifier.small import first_nodes, fitted, small_graph

OLD = 80


def divided():
    """The first nodes of the small graph, and what joins the others to them."""
    whole = small_graph()
    first, others = first_nodes(whole, OLD)
    outer = whole.edge_index[:, others]
    return first, whole.x[OLD:], outer[:, outer[0] < outer[1]], [str(name) for name in whole.node_ids[OLD:]]


def split():
    order = torch.randperm(OLD, generator=torch.Generator().manual_seed(0))
    return Split.from_indices(OLD, order[:30], order[30:55], order[55:])


def tight(method):
    return {"tol": 1e-12, "max_steps": 3000} if "tol" in METHODS[method].parameters else {}


ROWS = itertools.product(["label_input", "label_reuse"], [{"base": "boosted"}, {"base": "logistic"}])


@pytest.mark.parametrize(
    ("method", "options"),
    [*((name, tight(name)) for name in NAMES), *((name, {"method_options": base}) for name, base in ROWS)],
)
def test_every_method_predicts_as_on_the_whole_graph(method, options):
    graph, features, edges, ids = divided()
    classifier = fitted(method, graph=graph, split=split(), max_epochs=3, **options)
    known = classifier._fitted.prediction.problem.labels
    found = classifier.add_nodes(features, edges, ids)
    assert found.node_ids.tolist() == ids
    grown = classifier.graph_
    assert grown.num_nodes == 90
    whole = small_graph().coalesced()
    assert torch.equal(grown.coalesced().edge_index, whole.edge_index)
    y = torch.cat([torch.where(known.mask, known.onehot.argmax(1), -1), torch.full((10,), -1)])
    expected = classifier.predict_proba(small_graph().replace(y=y))
    np.testing.assert_allclose(classifier.predict_proba(), expected, atol=1e-8)
    np.testing.assert_allclose(found.probabilities, expected[OLD:], atol=1e-8)
    assert classifier.split_.test[OLD:].all()


def test_a_start_is_used_only_where_a_bound_proves_that_it_does_not_matter(monkeypatch):
    """The certificate of before does not speak for the larger graph."""
    started = []
    solve = BoundLabelInputted.solve

    def recorded(bound, start=None, solver=None):
        started.append(start is not None)
        return solve(bound, start, solver)

    monkeypatch.setattr(BoundLabelInputted, "solve", recorded)
    graph, features, edges, ids = divided()
    one_hop = {"backbone_options": {"num_layers": 1}, "hidden": None}
    for options, warm in (({"backbone": "gat"}, False), ({"contraction": "proved"}, True), (one_hop, True)):
        classifier = fitted(graph=graph, split=split(), max_epochs=3, **options)
        assert classifier.diagnose().contracts
        classifier.add_nodes(features, edges, ids)
        assert started[-1] == warm


def test_edges_by_id_are_the_same():
    graph, features, edges, ids = divided()
    one, other = (fitted("lpa", graph=graph, split=split()) for _ in range(2))
    names = np.array([*graph.node_ids, *ids])
    by_number, by_id = one.add_nodes(features, edges, ids), other.add_nodes(features, names[edges.numpy()], ids)
    assert np.array_equal(by_number.probabilities, by_id.probabilities)


def test_sparse_features_and_weights_and_directions():
    whole = small_graph()
    graph = Graph(whole.edge_index, x=sp.csr_array(whole.x.numpy()), y=whole.y, edge_weight=np.ones(whole.num_edges))
    classifier = fitted(graph=graph, max_epochs=2)
    classifier.add_nodes(sp.csr_array(whole.x[:1].numpy()), [[3], [90]], edge_weight=[0.5])
    assert isinstance(classifier.graph_.x, sp.csr_array)
    assert classifier.graph_.edge_weight[-2:].tolist() == [0.5, 0.5]
    assert classifier.graph_.is_undirected
    directed = Graph(whole.edge_index[:, ::2], x=whole.x, y=whole.y)
    classifier = fitted(graph=directed, max_epochs=2)
    classifier.add_nodes(whole.x[:2].numpy(), [[3, 90], [90, 91]])
    assert classifier.graph_.num_edges == directed.num_edges + 2


def test_times_and_groups_of_new_nodes_are_unknown():
    graph, features, edges, ids = divided()
    graph = graph.replace(time=np.arange(OLD), group=np.zeros(OLD, int))
    classifier = fitted("lpa", graph=graph, split=split())
    classifier.add_nodes(features, edges, ids)
    assert np.isnan(classifier.graph_.time[OLD:]).all()
    assert classifier.graph_.time[:OLD].tolist() == list(range(OLD))
    assert classifier.graph_.group.tolist() == [0] * OLD + [-1] * 10


def test_graph_without_features():
    whole = small_graph()
    graph = Graph(whole.edge_index, y=whole.y, num_nodes=90)
    classifier = fitted("lpa", graph=graph)
    found = classifier.add_nodes(2, [[3, 90], [90, 91]])
    assert found.evidence.tolist() == [True, True]
    assert not found.known.any()
    np.testing.assert_allclose(found.probabilities.sum(1), 1)


def test_the_number_of_new_nodes_is_a_positive_one():
    graph = small_graph().replace(x=None, node_ids=None)
    classifier = fitted("lpa", graph=graph)
    assert len(classifier.add_nodes(np.int64(2), [[0, 1], [90, 91]])) == 2
    with pytest.raises(InputError, match="no new node is given"):
        classifier.add_nodes(-1, [[0], [1]])


def test_labels_of_new_nodes_can_be_given():
    graph, features, edges, ids = divided()
    classifier = fitted("lpa", graph=graph, split=split())
    classifier.add_nodes(features, edges, ids)
    classifier.update_labels({"node85": "b"})
    assert classifier.decision().known[85]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.0]], [[0], [90]], ["n"]), "new nodes have 1 features, those of the graph 6"),
        (([[0.0] * 6], [[0], [90]]), "the graph has ids: give ids for the new nodes"),
        (([[0.0] * 6], [[0], [91]], ["n"]), "outside of the nodes 0 … 90"),
        (([[0.0] * 6], [["node0"], ["who"]], ["n"]), "edge to node 'who', which is neither in the graph nor new"),
        (([[0.0] * 6], [[0], [90]], ["node3"]), "'node3' is the id of node 3 and of node 90"),
        ((np.zeros((0, 6)), [[0], [1]], []), "no new node is given"),
        ((None, [[0], [90]], ["n"]), "the graph has 6 features: give those of the new nodes"),
        (([0.0] * 6, [[0], [90]], ["n"]), "one row a new node is needed, got an array of 1 dimension"),
        (([["red"] * 6], [[0], [90]], ["n"]), "not rows of numbers"),
        (([[0.0] * 6], [[0], [90]], ["n"], [1.0]), "the graph has no edge weights: leave them out"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(arguments, message):
    classifier = fitted("lpa")
    before = classifier._fitted
    with pytest.raises(InputError, match=message):
        classifier.add_nodes(*arguments)
    assert classifier._fitted is before
