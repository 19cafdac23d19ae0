"""Operators by type of edges."""

import numpy as np
import pytest
import torch

from lignn import Adjacency, Graph
from lignn.propagation import TypedAdjacency
from tests.devices import OneDevice
from tests.problems import random_graph

TYPES = ("a", "b")


def typed(dtype=torch.float64, **options):
    graph = random_graph(directed=True, weighted=True, edge_types=TYPES)
    return graph, TypedAdjacency.of(graph, TYPES, dtype=dtype, **options)


def mean_by_type(graph, number, reverse=False):
    """`D^-1 A` of one type, edge by edge."""
    a = np.zeros((graph.num_nodes,) * 2)
    for (s, t), w, kind in zip(graph.edge_index.T.tolist(), graph.edge_weight, graph.edge_type, strict=True):
        if kind == number:
            a[(s, t) if reverse else (t, s)] += w
    return a / np.maximum(a.sum(1, keepdims=True), 1e-300)


def test_parts_are_means_by_type_and_direction():
    graph, adj = typed(both_directions=True)
    expected = [mean_by_type(graph, number, reverse) for reverse in (False, True) for number in range(2)]
    for part, wanted in zip(adj.parts, expected, strict=True):
        np.testing.assert_allclose(part.to_dense(), wanted, rtol=1e-12)
    np.testing.assert_allclose(adj.to_dense(), sum(expected), rtol=1e-12)


def test_as_an_adjacency_it_is_the_sum():
    graph, adj = typed()
    x = graph.x.clone().requires_grad_()
    product = adj @ x
    torch.testing.assert_close(product, sum(part @ x for part in adj.parts))
    (gradient,) = torch.autograd.grad(product.sum(), x)
    torch.testing.assert_close(gradient, adj.to_dense().T @ torch.ones_like(x))
    torch.testing.assert_close(adj.T.to_dense(), adj.to_dense().T)
    assert type(adj.T) is type(adj.without_diagonal()) is Adjacency
    torch.testing.assert_close(adj.lazy(0.5).to_dense(), (torch.eye(30) + adj.to_dense()) / 2)


def test_without_types_it_is_the_row_normalised_operator():
    graph = random_graph(directed=True)
    adj = TypedAdjacency.of(graph, dtype=torch.float64)
    row = Adjacency.normalized(graph, "row", self_loops=False, dtype=torch.float64)
    assert len(adj.parts) == 1
    assert all(map(torch.equal, adj._arrays, row._arrays))


def test_a_graph_without_edges_has_empty_operators():
    adj = TypedAdjacency.of(Graph([[], []], num_nodes=3, edge_type=[], edge_types=TYPES), TYPES)
    assert [part.nnz for part in adj.parts] == [0, 0]
    assert (adj @ torch.ones(3, 2)).tolist() == [[0, 0]] * 3
    assert adj.stacked_norm() == 1


@pytest.mark.parametrize("to", [("meta",), (torch.float32,), ("meta", torch.float32)])
def test_parts_move_with_the_sum_and_come_back(to):
    _, adj = typed()
    moved = adj.to(*to)
    assert {(part.device, part.dtype) for part in moved.parts} == {(moved.device, moved.dtype)}
    x = torch.empty(30, 2, device=moved.device, dtype=moved.dtype, requires_grad=True)
    with OneDevice():
        (sum(part @ x for part in moved.parts) + moved @ x).sum().backward()
    back = moved.to("cpu")
    assert [part.device.type for part in (back, *back.parts)] == ["cpu"] * 3
    assert adj.to("cpu") is adj
    for mine, other in zip(back.parts, adj.parts, strict=True):
        torch.testing.assert_close(mine.to_dense(), other.to_dense().to(mine.dtype))
