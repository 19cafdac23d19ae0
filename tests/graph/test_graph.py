"""`Graph`: what it accepts, what it refuses, and what its methods do to edges."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch

from lignn import Graph, Split
from lignn.errors import DataWarning, GraphError
from lignn.graph import validate

EDGES = [[0, 1, 2], [1, 2, 0]]


def edges_of(graph: Graph) -> list[tuple[int, int]]:
    return [tuple(edge) for edge in graph.edge_index.T.tolist()]


def weighted_edges_of(graph: Graph) -> dict[tuple[int, int], float]:
    return dict(zip(edges_of(graph), graph.edge_weight.tolist(), strict=True))


def test_parts_are_brought_to_one_type():
    graph = Graph(
        np.array(EDGES, np.int32),
        x=np.arange(6, dtype=np.int64).reshape(3, 2)[::-1],
        y=np.array([0.0, 2.0, -1.0]),
        edge_weight=[1, 2, 3],
        node_ids=np.array([7, 8, 9]),
    )
    assert graph.edge_index.dtype == torch.int64
    assert torch.equal(graph.x, torch.tensor([[4.0, 5], [2, 3], [0, 1]]))
    assert (graph.y.dtype, graph.y.tolist()) == (torch.int64, [0, 2, -1])
    assert graph.edge_weight.dtype == torch.float32
    assert graph.node_ids.tolist() == ["7", "8", "9"]
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (3, 3, 2, 3)
    assert graph.labelled.tolist() == [True, True, False]


def test_multilabel():
    graph = Graph(EDGES, y=[[1, 0], [0, 0], [-1, -1]], class_names=["a", "b"])
    assert graph.is_multilabel
    assert graph.y.dtype == torch.int8
    assert graph.num_classes == 2
    assert graph.labelled.tolist() == [True, True, False]


def test_classes_are_those_that_occur():
    """A huge class number, often a mark for missing values, does not make as many classes."""
    with pytest.warns(
        DataWarning, match="class numbers reach 1000000000, but only 3 classes occur; they are renumbered"
    ):
        graph = Graph(EDGES, y=[10**9, -1, 0, 7], num_nodes=4)
    assert graph.y.tolist() == [2, -1, 0, 1]
    assert graph.class_names == ("0", "7", "1000000000")
    assert graph.replace(name="other").y.tolist() == [2, -1, 0, 1]
    assert Graph(EDGES, y=[0, 39, -1]).num_classes == 40


def test_many_classes_are_checked_in_linear_time():
    names = [str(number) for number in range(200_000)]
    assert Graph([[], []], y=np.arange(200_000), class_names=names).num_classes == 200_000
    with pytest.raises(GraphError, match="two classes are named '0'"):
        Graph(EDGES, class_names=[*names, "0"])


def test_sparse_features_are_canonical_csr():
    repeated = sp.coo_array(([1, 2, 4], ([0, 0, 2], [1, 1, 0])), shape=(3, 2))
    for x in (repeated, torch.sparse_coo_tensor([[0, 0, 2], [1, 1, 0]], [1.0, 2, 4], (3, 2), check_invariants=True)):
        graph = Graph(EDGES, x=x)
        assert isinstance(graph.x, sp.csr_array)
        assert graph.x.has_canonical_format
        assert graph.x.toarray().tolist() == [[0, 3], [0, 0], [4, 0]]


def test_the_given_matrix_is_not_changed():
    x = sp.csr_array((np.ones(2, np.float32), np.array([1, 0]), np.array([0, 2, 2, 2])), shape=(3, 2))
    Graph(EDGES, x=x)
    assert x.indices.tolist() == [1, 0]


def test_number_of_nodes_is_told_by_any_part():
    assert Graph(EDGES).num_nodes == 3
    assert Graph(EDGES, num_nodes=7).num_nodes == 7
    assert Graph([[], []], x=torch.ones(4, 1)).num_nodes == 4
    assert Graph(EDGES, node_ids=list("abcde")).num_nodes == 5


BAD_SPLIT = Split.from_indices(2, [0], [1], [])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"edge_index": [0, 1, 2]}, r"edge_index: shape 2×E is needed \(sources, targets\), got \(3,\)"),
        ({"edge_index": [[0, 1], [1, 2], [2, 0]]}, r"edge_index: shape 2×E is needed .* got \(3, 2\)"),
        ({"edge_index": [[0.5], [1.0]]}, "edge_index: integers are needed, got torch.float32"),
        ({"edge_index": [[0, 1], [2]]}, "edge_index: numbers in rows of equal length are needed"),
        ({"num_nodes": 2}, r"edge_index: edge 1 \(1 → 2\) is outside of the nodes 0 … 1 \(2 such edges\)"),
        ({"edge_index": [[0, -1], [1, 0]]}, r"edge 1 \(-1 → 0\) is outside of the nodes 0 … 1$"),
        ({"edge_weight": [1, 2]}, r"edge_weight: one weight per edge is needed \(3\), got shape \(2,\)"),
        ({"edge_weight": [1, float("nan"), 1]}, r"the weight of edge 1 is not finite \(nan\)"),
        ({"edge_weight": [1, 1, -2]}, r"the weight of edge 2 is negative \(-2.0\)"),
        ({"x": [1, 2, 3]}, r"x: one row per node is needed \(n×d\), got shape \(3,\)"),
        ({"x": [[1], [float("inf")], [1]]}, r"x: row 1, column 0 is not finite \(inf\)"),
        ({"x": sp.csr_array([[0, 1], [0, 0], [np.nan, 0]])}, r"x: row 2, column 0 is not finite \(nan\)"),
        ({"x": [["a"]]}, "x: numbers in rows of equal length are needed"),
        ({"x": torch.ones(4, 1), "y": [0, 1, 0]}, "the parts disagree on the number of nodes: x 4, y 3"),
        ({"y": [0, 1, 0.5]}, "y: class numbers .* are needed, -1 means unlabelled; node 2 has 0.5"),
        ({"y": [0, np.nan, 1]}, "y: class numbers .* are needed, -1 means unlabelled; node 1 has nan"),
        ({"y": [np.inf, 0, 1]}, "node 0 has inf"),
        ({"y": [[0, 1], [0.5, 1], [0, 1]]}, r"node 1 has \[0.5, 1.0\]"),
        ({"y": [0, -2, 1]}, "y: node 1 has label -2; classes are numbered from 0, -1 means unlabelled"),
        ({"y": [-1, -1, -1]}, "y: no labels at all, all 3 entries are -1; give y=None"),
        ({"y": [0, 0, -1]}, r"labels \(y\): a single class"),
        ({"y": [10**9, 10**9, -1]}, r"a single class, every labelled node has label 1000000000"),
        ({"y": [0, 1, 2], "class_names": ["a", "b"]}, "y: node 2 has label 2, but there are only 2 class names"),
        ({"y": ["a", "b", "c"]}, "y: numbers in rows of equal length are needed"),
        ({"y": torch.zeros(3, 1, 1)}, r"y: class numbers \(n\) or 0/1 rows \(n×c\) are needed, got shape \(3, 1, 1\)"),
        ({"y": [[0, 1], [0, 2], [0, 1]]}, r"the row of node 1 must be all 0/1, or all -1 for unlabelled, got \[0, 2\]"),
        ({"y": [[0, 1], [0, 1], [-1, 1]]}, r"the row of node 2 must be all 0/1"),
        ({"y": [[-1, -1]] * 3}, "y: no labels at all, all 3 rows are -1"),
        ({"y": [[0, 1]] * 3, "class_names": ["a"]}, "y: 2 columns, but 1 class names"),
        ({"y": np.zeros((3, 0))}, "y: 0/1 rows need a column for each class, got none"),
        ({"class_names": ["a", "b", "a"]}, "class_names: two classes are named 'a'"),
        ({"x": np.eye(3), "feature_names": ["a", "b", "a"]}, "feature_names: two features are named 'a'"),
        ({"x": np.eye(3), "feature_names": ["a", "b"]}, r"feature_names: one name per feature is needed \(3\), got 2"),
        ({"feature_names": ["a"]}, r"feature_names: one name per feature is needed \(0\), got 1"),
        ({"node_ids": ["a", "b", "a"]}, "node_ids: 'a' is the id of node 0 and of node 2"),
        ({"node_ids": [["a"], ["b"], ["c"]]}, r"node_ids: one id per node is needed \(3 nodes\), got shape \(3, 1\)"),
        ({"node_ids": ["a", "b", "\ud800"]}, "node_ids: texts are needed"),
        ({"splits": [BAD_SPLIT]}, "splits: split 0 is over 2 nodes, the graph has 3"),
        ({"num_nodes": 10**15}, "1000000000000000 nodes are too many: they need 7,450,581 GiB, "),
        ({"edge_index": [[0], [2**62]]}, "4611686018427387905 nodes are too many"),
        ({"num_nodes": 10**10}, "10000000000 nodes are too many: they need 75 GiB, the memory has 16; is the number"),
        ({"x": sp.csr_array((3, 10**15))}, "1000000000000000 columns of x are too many: they need 3,725,290 GiB"),
        ({"edge_index": [[], []]}, "the graph is empty: it has no nodes; give num_nodes"),
        ({"edge_type": [0, 1]}, r"edge_type: a whole number per edge is needed \(3\), got \(2,\)"),
        ({"edge_type": [0, 1, 2], "edge_types": ["a", "b"]}, "edge_type: numbers from 0 to 1 are needed, got 2"),
        ({"edge_type": [0, -1, 1]}, "edge_type: numbers from 0 to 1 are needed, got -1"),
        ({"edge_type": [0, 0, 1], "edge_types": ["a", "a"]}, "edge_types: different texts are needed"),
        ({"time": [0, 1]}, r"time: one number per node is needed \(3\), got int64 of shape \(2,\)"),
        ({"group": [0, 0.5, 1]}, r"group: one number per node is needed \(3\), got float64"),
        ({"table": pa.table({"a": [1, 2]}), "y": [0, 1, 0]}, "number of nodes: y 3, table 2"),
    ],
)
def test_refused(parts, message, monkeypatch):
    monkeypatch.setattr(validate, "memory", lambda: 2**34)
    with pytest.raises(GraphError, match=message):
        Graph(**({"edge_index": EDGES} | parts))


def test_frozen_and_replaced():
    graph = Graph(EDGES, x=torch.ones(3, 2), y=[0, 1, 1], name="before")
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.name = "after"
    changed = graph.replace(name="after")
    assert (graph.name, changed.name) == ("before", "after")
    assert changed.x is graph.x
    assert changed.y is graph.y
    with pytest.raises(GraphError, match="single class"):
        graph.replace(y=[0, 0, 0])
    with pytest.raises(TypeError):
        graph.replace(colour="red")


def test_repr_counts():
    graph = Graph(EDGES, x=torch.ones(3, 2), y=[0, 1, 1], splits=[Split.from_indices(3, [0], [1], [2])], name="g")
    assert repr(graph) == "Graph('g': 3 nodes, 3 edges, 2 features, 2 classes, 1 splits)"


@pytest.mark.parametrize(
    ("edges", "weight", "expected"),
    [
        ([[0, 1], [1, 0]], None, True),
        ([[0, 1, 2], [1, 0, 2]], None, True),
        ([[0], [1]], None, False),
        ([[0, 0, 1], [1, 1, 0]], None, False),
        ([[0, 0, 1, 1], [1, 1, 0, 0]], None, True),
        ([[0, 1], [1, 0]], [1, 2], False),
        ([[0, 0, 1, 1], [1, 1, 0, 0]], [0.1, 0.2, 0.2, 0.1], True),
        ([[0, 0, 1], [1, 1, 0]], [1, 1, 2], False),
        ([[0], [1]], [0], False),
        ([[], []], None, True),
    ],
)
def test_is_undirected(edges, weight, expected):
    assert Graph(edges, edge_weight=weight, num_nodes=3).is_undirected is expected


def test_coalesced_merges_repeats():
    graph = Graph([[2, 0, 0, 1], [0, 1, 1, 0]])
    assert edges_of(graph.coalesced()) == [(0, 1), (1, 0), (2, 0)]
    weighted = graph.replace(edge_weight=[1, 2, 3, 4]).coalesced()
    assert weighted_edges_of(weighted) == {(0, 1): 5, (1, 0): 4, (2, 0): 1}


def test_to_undirected_coalesced():
    graph = Graph([[0, 0, 1, 2, 2], [1, 1, 0, 2, 1]])
    undirected = graph.to_undirected()
    assert edges_of(undirected) == [(0, 1), (1, 0), (1, 2), (2, 1), (2, 2)]
    assert undirected.is_undirected
    weighted = graph.replace(edge_weight=[1, 2, 5, 7, 4]).to_undirected()
    assert weighted_edges_of(weighted) == {(0, 1): 5, (1, 0): 5, (1, 2): 4, (2, 1): 4, (2, 2): 7}


def test_to_undirected_with_repeats():
    graph = Graph([[0, 1, 2], [1, 0, 2]], edge_weight=[1, 2, 3])
    both = graph.to_undirected(coalesce=False)
    assert edges_of(both) == [(0, 1), (1, 0), (2, 2), (1, 0), (0, 1)]
    assert both.edge_weight.tolist() == [1, 2, 3, 1, 2]
    assert both.is_undirected


def test_edges_of_weight_zero():
    graph = Graph([[0, 1], [1, 2]], edge_weight=[0, 1])
    assert weighted_edges_of(graph.coalesced()) == {(0, 1): 0, (1, 2): 1}
    assert weighted_edges_of(graph.to_undirected()) == {(1, 2): 1, (2, 1): 1}


def test_without_self_loops():
    graph = Graph([[0, 1, 1], [0, 1, 2]], edge_weight=[1, 2, 3]).without_self_loops()
    assert weighted_edges_of(graph) == {(1, 2): 3}
    assert graph.num_nodes == 3


def test_without_edges_at():
    graph = Graph([[0, 1, 2, 3], [1, 2, 3, 0]], y=[0, 1, 0, 1], edge_weight=[1, 2, 3, 4])
    inductive = graph.without_edges_at(torch.tensor([False, False, True, False]))
    assert weighted_edges_of(inductive) == {(0, 1): 1, (3, 0): 4}
    assert inductive.num_nodes == 4
    assert inductive.y is graph.y
    for wrong in (torch.tensor([2]), torch.tensor([True, False])):
        with pytest.raises(GraphError, match="nodes: a boolean mask of length 4 is needed"):
            graph.without_edges_at(wrong)


def test_edges_of_different_types_stay_apart():
    edges = [[0, 0, 0, 1, 2], [1, 1, 1, 0, 2]]
    graph = Graph(edges, edge_weight=[1, 2, 4, 8, 1], edge_type=[0, 0, 1, 0, 1], edge_types=["pays", "owns"])
    merged = graph.coalesced()
    assert merged.edge_index.tolist() == [[0, 1, 0, 2], [1, 0, 1, 2]]
    assert merged.edge_type.tolist() == [0, 0, 1, 1]
    assert merged.edge_weight.tolist() == [3, 8, 4, 1]
    both = graph.to_undirected()
    assert both.edge_index.tolist() == [[0, 1, 0, 1, 2], [1, 0, 1, 0, 2]]
    assert both.edge_type.tolist() == [0, 0, 1, 1, 1]
    assert both.edge_weight.tolist() == [8, 8, 4, 4, 1]
    assert both.is_undirected
    appended = graph.to_undirected(coalesce=False)
    assert appended.edge_type.tolist() == [0, 0, 1, 0, 1, 0, 0, 1, 0]
    assert appended.edge_index[:, 5:].tolist() == [[1, 1, 1, 0], [0, 0, 0, 1]]
    assert graph.of_type(1).edge_index.tolist() == [[0, 2], [1, 2]]
    assert graph.of_type(1).edge_types is None
    assert graph.without_self_loops().edge_type.tolist() == [0, 0, 1, 0]
    assert not Graph([[0, 1], [1, 0]], edge_type=[0, 1]).is_undirected
    assert graph.structure().edge_types == ("pays", "owns")
