"""PyG's `HeteroData`, and types of edges in `Data` and NetworkX."""

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from lignn import Graph, Split
from lignn.errors import GraphError
from lignn.graph.hetero import of_labelled_types
from tests.graph.equality import assert_same

NAN = float("nan")


def payments():
    """Three accounts, two devices and one shop; `to` joins two pairs of types."""
    data = HeteroData()
    data["account"].x = torch.tensor([[1.0, 2], [3, 4], [5, 6]])
    data["account"].y = torch.tensor([0, -1, 1])
    for number, part in enumerate(("train", "val", "test")):
        data["account"][f"{part}_mask"] = torch.arange(3) == number
    data["device"].x = torch.tensor([[7.0], [8]])
    data["shop"].num_nodes = 1
    data["account", "pays", "shop"].edge_index = torch.tensor([[0, 2], [0, 0]])
    data["account", "pays", "shop"].edge_weight = torch.tensor([0.5, 2])
    data["account", "to", "device"].edge_index = torch.tensor([[0, 1, 2], [0, 0, 1]])
    data["device", "to", "account"].edge_index = torch.tensor([[0], [2]])
    return data


def test_types_of_nodes_become_a_column_and_their_features_columns_with_gaps():
    graph = Graph.from_pyg(payments(), name="payments")
    assert graph.table.column_names == ["type", "account.0", "account.1", "device.0"]
    assert graph.table["type"].to_pylist() == ["account"] * 3 + ["device"] * 2 + ["shop"]
    assert graph.table["account.1"].to_pylist() == [2, 4, 6, None, None, None]
    assert graph.table["device.0"].to_pylist() == [None, None, None, 7, 8, None]
    assert graph.x is None
    assert graph.edge_index.tolist() == [[0, 2, 0, 1, 2, 3], [5, 5, 3, 3, 4, 2]]
    assert graph.edge_types == ("pays", "account__to__device", "device__to__account")
    assert graph.edge_type.tolist() == [0, 0, 1, 1, 1, 2]
    assert graph.edge_weight.tolist() == [0.5, 2, 1, 1, 1, 1]
    assert graph.y.tolist() == [0, -1, 1, -1, -1, -1]
    assert graph.splits[0].test.tolist() == [False, False, True, False, False, False]
    assert graph.name == "payments"


def test_nodes_of_types_without_labels_have_no_class():
    graph = Graph.from_pyg(payments())
    assert of_labelled_types(graph, graph.labelled).tolist() == [True] * 3 + [False] * 3
    gaps = graph.replace(table=pa.table({"type": ["a", None, "a", "b", None, "b"]}))
    assert of_labelled_types(gaps, graph.labelled).tolist() == [True, False, True, False, False, False]
    lists = graph.replace(table=pa.table({"type": [["a"], ["a"], ["a"], ["b"], None, ["a"]]}))
    assert of_labelled_types(lists, graph.labelled).tolist() == [True, True, True, False, False, True]
    assert of_labelled_types(graph.replace(table=None, x=torch.ones(6, 1)), graph.labelled) is None


def test_hetero_round_trip():
    data, again = payments(), Graph.from_pyg(payments()).to_pyg()
    assert (again.node_types, again.edge_types) == (data.node_types, data.edge_types)
    for kind in data.node_types:
        mine, other = again[kind].to_dict(), data[kind].to_dict()
        assert mine.pop("num_nodes") == data[kind].num_nodes
        assert set(mine) == set(other) - {"num_nodes"}
        for name, value in mine.items():
            assert value.dtype == other[name].dtype
            assert torch.equal(value, other[name])
    for kind in data.edge_types:
        assert torch.equal(again[kind].edge_index, data[kind].edge_index)
        weight = data[kind].get("edge_weight")
        assert torch.equal(again[kind].edge_weight, torch.ones(data[kind].num_edges) if weight is None else weight)
    assert_same(Graph.from_pyg(again), Graph.from_pyg(data))


def test_several_classes_a_node_and_labels_of_another_shape():
    data = payments()
    data["account"].y = torch.tensor([[0, 1], [1, 1], [-1, -1]])
    graph = Graph.from_pyg(data)
    assert graph.y.tolist() == [[0, 1], [1, 1]] + [[-1, -1]] * 4
    assert torch.equal(graph.to_pyg()["account"].y, data["account"].y.to(torch.int8))
    data["shop"].y = torch.tensor([1])
    with pytest.raises(GraphError, match="rows of different shapes"):
        Graph.from_pyg(data)


def test_a_type_of_unknown_size_is_refused():
    data = payments()
    data["city"].name = "nobody counts these"
    refused = pytest.raises(
        GraphError, match=r"node type 'city': the number of its nodes is unknown; set data\['city'\]"
    )
    with refused, pytest.warns(UserWarning, match="Unable to accurately infer 'num_nodes'"):
        Graph.from_pyg(data)


def test_types_in_tables_of_ones_own():
    """Nodes of a type need not be neighbours in the list; texts are no features; edges need no types."""
    table = pa.table({"type": ["b", "a", "b", None], "age": [1, None, None, 4], "note": ["x", "y", "z", "w"]})
    graph = Graph([[0, 1, 2], [1, 2, 3]], x=np.eye(4, 1), table=table)
    data = graph.to_pyg()
    assert data.node_types == ["b", "a", "unknown"]
    np.testing.assert_array_equal(data["b"].x, [[1, 1], [0, NAN]])
    np.testing.assert_array_equal(data["a"].x, [[0]])
    np.testing.assert_array_equal(data["unknown"].x, [[0, 4]])
    assert data.edge_types == [("b", "to", "a"), ("a", "to", "b"), ("b", "to", "unknown")]
    assert data["a", "to", "b"].edge_index.tolist() == [[0], [1]]


def test_data_round_trip_of_types_of_edges():
    split = Split.from_indices(3, [0], [1], [2])
    graph = Graph([[0, 1], [1, 2]], y=[0, 1, 0], edge_type=[1, 0], edge_types=["uses", "pays"], splits=[split])
    data = graph.to_pyg()
    assert isinstance(data, Data)
    assert data.edge_type.tolist() == [1, 0]
    assert_same(Graph.from_pyg(data), graph)
    del data.edge_type_names
    assert Graph.from_pyg(data).edge_types == ("0", "1")


def test_networkx_round_trip_of_types_of_edges():
    graph = Graph([[0, 0, 1], [1, 1, 2]], node_ids=list("abc"), edge_type=[0, 1, 0], edge_types=["pays", "uses"])
    assert_same(Graph.from_networkx(graph.to_networkx()), graph)
    source = nx.Graph([(0, 1, {"kind": "knows"}), (1, 2, {"kind": 7})])
    found = Graph.from_networkx(source, edge_type="kind")
    assert found.edge_types == ("7", "knows")
    assert found.edge_type.tolist() == [1, 0, 1, 0]
    source.add_edge(0, 2)
    with pytest.raises(GraphError, match="edge 0 → 2 and the first edge: one has a 'kind', the other has none"):
        Graph.from_networkx(source, edge_type="kind")
