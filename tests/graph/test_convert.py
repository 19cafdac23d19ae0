"""Conversion from and to PyG, NetworkX and SciPy."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from lignn import Graph, Split
from lignn.errors import DataWarning, GraphError
from tests.graph.equality import assert_same

EDGES = [[0, 1, 2, 0], [1, 2, 0, 1]]
SPLIT = Split.from_indices(3, [0], [1], [2])


@pytest.mark.parametrize("x", [None, torch.tensor([[1.0, 0], [0, 2], [0, 0]]), sp.csr_array(np.eye(3, 2))])
@pytest.mark.parametrize("y", [None, [0, 1, -1], [[0, 1], [-1, -1], [1, 1]]])
@pytest.mark.parametrize("weight", [None, [0.5, 1, 2, 3]])
def test_pyg_round_trip(x, y, weight):
    graph = Graph(EDGES, x=x, y=y, edge_weight=weight, num_nodes=3, splits=[SPLIT])
    assert_same(Graph.from_pyg(graph.to_pyg()), graph)


def test_from_pyg_masks_of_several_runs():
    runs = torch.eye(3, dtype=torch.bool)
    data = Data(
        edge_index=torch.tensor(EDGES), num_nodes=3, y=torch.tensor([[0], [1], [1]]), edge_attr=torch.ones(4, 1)
    )
    data.train_mask, data.val_mask, data.test_mask = runs[:, :2], runs[:, 1:], torch.zeros(3, dtype=torch.bool)
    graph = Graph.from_pyg(data, name="named")
    assert [split.val.tolist() for split in graph.splits] == [[False, True, False], [False, False, True]]
    assert graph.y.tolist() == [0, 1, 1]
    assert graph.edge_weight.tolist() == [1] * 4
    assert graph.name == "named"


def test_networkx_round_trip():
    graph = Graph(
        EDGES,
        x=[[1, 0], [0.5, 2], [0, 0]],
        y=[1, 0, -1],
        edge_weight=[0.5, 1, 2, 3],
        node_ids=["a", "b", "c"],
        class_names=["2", "10"],
        name="round",
    )
    again = Graph.from_networkx(graph.to_networkx())
    order = np.lexsort((graph.edge_weight, *graph.edge_index.flip(0)))
    assert_same(again, graph.replace(edge_index=graph.edge_index[:, order], edge_weight=graph.edge_weight[order]))
    assert again.name == "round"


@pytest.mark.parametrize("names", [None, ["z", "a", "nobody's"]])
def test_networkx_round_trip_of_several_classes_a_node(names):
    y = [[1, 1, 0], [-1, -1, -1], [0, 0, 0]]
    graph = Graph([[0, 1, 2], [1, 2, 0]], y=y, node_ids=["a", "b", "c"], class_names=names, name="several")
    assert_same(Graph.from_networkx(graph.to_networkx()), graph)


def test_from_networkx_labels_that_mean_unknown():
    source = nx.path_graph(5)
    nx.set_node_attributes(source, {0: "a", 1: -1, 2: "NULL", 3: "Zoe\u0308", 4: "Zo\u00eb "}, "label")
    with pytest.warns(DataWarning, match=r"node attribute 'label': read as unknown labels: '-1' \(1\), 'NULL' \(1\)"):
        graph = Graph.from_networkx(source)
    assert graph.class_names == ("Zo\u00eb", "a")
    assert graph.y.tolist() == [1, -1, -1, 0, 0]
    assert Graph.from_networkx(source, missing=[]).num_classes == 4
    nx.set_node_attributes(source, {0: 1, 1: -1, 2: 1, 3: 1, 4: 1}, "label")
    with pytest.raises(GraphError, match="the labels are only -1 and 1"):
        Graph.from_networkx(source)


def test_from_networkx_nan_is_unlabelled():
    source = nx.path_graph(4)
    nx.set_node_attributes(source, {0: "a", 1: float("nan"), 2: np.float32("nan"), 3: "b"}, "label")
    graph = Graph.from_networkx(source)
    assert graph.class_names == ("a", "b")
    assert graph.y.tolist() == [0, -1, -1, 1]


@pytest.mark.parametrize("label", [["a", "b"], {0, 1}, [0], [0, 2], "a", 0])
def test_from_networkx_lists_other_than_of_0_and_1_are_refused(label):
    source = nx.path_graph(2)
    nx.set_node_attributes(source, {0: [0, 1], 1: label}, "label")
    with pytest.raises(
        GraphError, match="node 1: a 'label' of several classes must be a list of 0 and 1, one per class"
    ):
        Graph.from_networkx(source)


def test_from_networkx_undirected_edges_go_both_ways():
    source = nx.Graph()
    source.add_node("z", label=10)
    source.add_node("a", label=2)
    source.add_node(5)
    source.add_edge("z", "a")
    source.add_edge("a", "a")
    graph = Graph.from_networkx(source)
    assert graph.node_ids.tolist() == ["z", "a", "5"]
    assert graph.class_names == ("2", "10")
    assert graph.y.tolist() == [1, 0, -1]
    assert graph.edge_index.tolist() == [[0, 1, 1], [1, 1, 0]]
    assert graph.edge_weight is None
    assert graph.is_undirected


def test_from_networkx_other_attributes():
    source = nx.path_graph(3, create_using=nx.DiGraph)
    nx.set_node_attributes(source, {0: "a", 1: "b", 2: "a"}, "kind")
    nx.set_node_attributes(source, {i: [float(i)] for i in range(3)}, "position")
    nx.set_edge_attributes(source, 0.5, "cost")
    graph = Graph.from_networkx(source, label="kind", weight="cost", x="position")
    assert graph.y.tolist() == [0, 1, 0]
    assert graph.x.tolist() == [[0], [1], [2]]
    assert graph.edge_weight.tolist() == [0.5, 0.5]


def test_from_networkx_refusals():
    source = nx.path_graph(3)
    source.edges[0, 1]["weight"] = 1.0
    with pytest.raises(GraphError, match="edge 1 → 2 and the first edge: one has a 'weight', the other has none"):
        Graph.from_networkx(source)
    source = nx.path_graph(3)
    source.nodes[0]["x"] = [1.0]
    with pytest.raises(GraphError, match="node 1 has no 'x' while others have"):
        Graph.from_networkx(source)
    source.nodes[1]["x"], source.nodes[2]["x"] = [1.0, 2.0], [1.0]
    with pytest.raises(GraphError, match="x: every node needs the same number of numbers"):
        Graph.from_networkx(source)


def test_scipy_round_trip():
    matrix = sp.csr_array([[0, 2.5, 0], [0, 0, 1], [1, 0, 3]])
    graph = Graph.from_scipy(matrix, y=[0, 1, 1])
    assert graph.edge_index.tolist() == [[0, 1, 2, 2], [1, 2, 0, 2]]
    assert graph.edge_weight.tolist() == [2.5, 1, 1, 3]
    assert np.array_equal(graph.to_scipy().toarray(), matrix.toarray())


def test_scipy_repeats_are_summed_and_ones_are_no_weights():
    assert Graph(EDGES).to_scipy().toarray().tolist() == [[0, 2, 0], [0, 0, 1], [1, 0, 0]]
    assert Graph.from_scipy(sp.eye_array(3)).edge_weight is None
    assert Graph.from_scipy(sp.coo_array((4, 4))).num_nodes == 4
    with pytest.raises(GraphError, match="an adjacency matrix must be square, got 2×3"):
        Graph.from_scipy(sp.coo_array((2, 3)))
