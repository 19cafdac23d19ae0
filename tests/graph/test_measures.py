"""Measures against hand-computed graphs and published statistics."""

import pytest
import torch

from lignn import Graph, measures
from lignn.errors import GraphError

SMALL = Graph([[0, 0, 1, 2, 3, 3], [1, 2, 2, 0, 0, 4]], y=[0, 0, 1, 1, -1])
"""Labels at the ends of its edges: 0→1 (0,0), 0→2 (0,1), 1→2 (0,1), 2→0 (1,0), 3→0 (1,0)."""


def test_label_transitions():
    expected = torch.tensor([[1 / 3, 2 / 3], [1, 0]], dtype=torch.float64)
    assert torch.allclose(measures.label_transitions(SMALL), expected)


def test_class_without_edges_has_a_row_of_zeros():
    transitions = measures.label_transitions(SMALL.replace(class_names=["a", "b", "c"]))
    assert transitions.shape == (3, 3)
    assert transitions[2].tolist() == [0, 0, 0]


def test_edge_homophily():
    assert measures.edge_homophily(SMALL) == pytest.approx(1 / 5)


def test_node_homophily():
    """Incoming edges: node 0 from 2 and 3 (other labels), node 1 from 0 (same label), node 2 from 0 and 1 (other)."""
    assert measures.node_homophily(SMALL) == pytest.approx(1 / 3)


def test_adjusted_homophily():
    """Six of the ten edge ends are in class 0, so the agreement by chance is 0.6² + 0.4²."""
    assert measures.adjusted_homophily(SMALL) == pytest.approx((0.2 - 0.52) / 0.48)
    apart = Graph([[0, 1, 2, 3], [1, 0, 3, 2]], y=[0, 0, 1, 1])
    assert measures.adjusted_homophily(apart) == pytest.approx(1)


def test_degrees():
    graph = Graph([[0, 0, 1, 4], [1, 2, 2, 4]], num_nodes=5)
    assert measures.degrees(graph) == measures.Degrees(mean=4 / 5, median=1, maximum=2, isolated=2)


def test_components():
    graph = Graph([[0, 2, 3], [1, 1, 3]], y=[0, -1, -1, -1, 1], num_nodes=5)
    component = measures.components(graph)
    assert component[0] == component[1] == component[2]
    assert len(component.unique()) == 3
    assert measures.unlabelled_components(graph) == pytest.approx(1 / 3)
    known = torch.tensor([False, False, True, False, False])
    assert measures.unlabelled_components(graph, known) == pytest.approx(2 / 3)


def test_refusals():
    with pytest.raises(GraphError, match="defined for graphs with one label per node"):
        measures.edge_homophily(Graph([[0], [1]]))
    with pytest.raises(GraphError, match="defined for graphs with one label per node"):
        measures.edge_homophily(Graph([[0], [1]], y=[[0, 1], [1, 0]]))
    with pytest.raises(GraphError, match="no edge joins two labelled nodes"):
        measures.edge_homophily(Graph([[0], [1]], y=[0, -1, 1]))
    with pytest.raises(GraphError, match="not defined if all edges join nodes of one class"):
        measures.adjusted_homophily(Graph([[0], [1]], y=[0, 0, 1]))


@pytest.mark.parametrize(
    ("name", "undirected", "degree", "intra_class"),
    [
        ("cora", 5278, 3.90, 81.00),
        ("citeseer", 4552, 2.74, 73.55),
        ("pubmed", 44324, 4.50, 80.24),
        ("amazon_photo", 119081, 31.13, 82.72),
        ("coauthor_physics", 247962, 14.38, 93.14),
    ],
)
def test_published_statistics_of_coalesced_graphs(data_root, name, undirected, degree, intra_class):
    graph = Graph.read(data_root / f"{name}.npz").without_self_loops().to_undirected()
    assert graph.num_edges == 2 * undirected
    assert round(measures.degrees(graph).mean, 2) == degree
    assert round(100 * measures.edge_homophily(graph), 2) == intra_class


@pytest.mark.parametrize(
    ("name", "undirected", "edges", "degree", "intra_class"),
    [("chameleon", 31371, 36051, 31.67, 23.39), ("squirrel", 198353, 216933, 83.42, 22.34)],
)
def test_published_statistics_of_graphs_with_repeats(data_root, name, undirected, edges, degree, intra_class):
    graph = Graph.read(data_root / f"{name}.npz").without_self_loops()
    assert graph.to_undirected().num_edges == 2 * undirected
    both = graph.to_undirected(coalesce=False)
    assert both.num_edges == 2 * edges
    assert round(measures.degrees(both).mean, 2) == degree
    assert round(100 * measures.edge_homophily(both), 2) == intra_class


def test_isolated_nodes_of_citeseer(data_root):
    graph = Graph.read(data_root / "citeseer.npz")
    assert measures.degrees(graph).isolated == 48


def test_what_following_the_edges_one_way_costs():
    """Edges 0 → 1 → 2, 3 → 2, and 4 alone: from 2 no node is reached, from both ways all but 4."""
    graph = Graph([[0, 1, 3], [1, 2, 2]], num_nodes=5)
    known = torch.tensor([False, False, True, False, False])
    assert measures.reached(graph, known).tolist() == known.tolist()
    assert measures.one_way(graph, known) == measures.OneWay(without=4, without_if_undirected=1, nodes=5)
    assert measures.one_way(graph, known).matters
    assert measures.reached(graph, torch.eye(5)[0] > 0).tolist() == [True, True, True, False, False]
    both = measures.one_way(graph.to_undirected(), known)
    assert (both.without, both.without_if_undirected, both.matters) == (1, 1, False)


def test_edges_without_weight_carry_no_label():
    graph = Graph([[0, 1], [1, 2]], edge_weight=[1.0, 0.0], num_nodes=3)
    known = torch.tensor([True, False, False])
    assert measures.reached(graph, known).tolist() == [True, True, False]
    assert measures.one_way(graph, known) == measures.OneWay(1, 1, 3)
