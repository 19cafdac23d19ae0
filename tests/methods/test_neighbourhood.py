"""Columns of labels: closed forms with dense matrices, types of edges apart, the own label never counted."""

import numpy as np
import pytest
import torch

from lignn import Graph
from lignn.errors import InputError
from lignn.methods import Problem
from lignn.methods.neighbourhood import LabelColumns
from tests.problems import random_graph

TYPES = ("a", "b")


def dense(graph: Graph, kind: int | None = None) -> np.ndarray:
    """A without self-loops: rows are targets."""
    matrix = np.zeros((graph.num_nodes, graph.num_nodes))
    weight = np.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight.numpy()
    for edge, (source, target) in enumerate(graph.edge_index.T.tolist()):
        if source != target and (kind is None or graph.edge_type[edge] == kind):
            matrix[target, source] += weight[edge]
    return matrix


def problem_of(graph: Graph, share: float = 0.6) -> Problem:
    return Problem.of(graph, torch.arange(graph.num_nodes) < share * graph.num_nodes, torch.float64)


def expected(matrix: np.ndarray, onehot: np.ndarray) -> np.ndarray:
    """Shares and log counts of both hops."""
    blocks = []
    two = matrix @ matrix
    np.fill_diagonal(two, 0)
    for way in (matrix, two):
        count = (way @ onehot).sum(1, keepdims=True)
        shares = np.divide(way @ onehot, count, out=np.zeros_like(onehot), where=count > 0)
        blocks += [shares, np.log1p(way @ onehot)]
    return np.hstack(blocks)


def weighted(graph: Graph) -> Graph:
    weight = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(1))
    return graph.replace(edge_weight=weight.to(torch.float32) + 0.5)


@pytest.mark.parametrize("change", [lambda graph: graph, weighted, Graph.to_undirected])
def test_shares_and_numbers_of_both_hops(change) -> None:
    graph = change(random_graph(n=25, seed=3))
    problem = problem_of(graph)
    columns = LabelColumns(hops=2, shares=True)
    found = columns.of(problem, problem.labels.onehot)
    assert found.shape[1] == columns.width(graph.num_classes) == 4 * graph.num_classes
    assert np.allclose(found, expected(dense(graph), problem.labels.onehot.numpy()), atol=1e-6)


def test_types_of_edges_are_apart_and_have_their_place_by_name() -> None:
    graph = random_graph(n=25, seed=4, edge_types=TYPES)
    problem = problem_of(graph)
    onehot = problem.labels.onehot.numpy()
    wanted = [expected(dense(graph, kind), onehot) for kind in (1, 0)]
    found = LabelColumns(2, TYPES[::-1], True).of(problem, problem.labels.onehot)
    assert np.allclose(found, np.hstack(wanted), atol=1e-6)
    with pytest.raises(InputError, match="does not know edges of type 'b'"):
        LabelColumns(1, ("a",)).of(problem, problem.labels.onehot)


@pytest.mark.parametrize("change", [weighted, Graph.to_undirected])
def test_the_own_label_is_in_no_column_to_the_bit(change) -> None:
    graph = change(random_graph(n=25, seed=5))
    columns = LabelColumns(hops=2, shares=True)
    onehot = problem_of(graph, 1.0).labels.onehot
    before = columns.of(problem_of(graph, 1.0), onehot)
    for node in range(graph.num_nodes):
        other = onehot.clone()
        other[node] = onehot[node].roll(1)
        after = columns.of(problem_of(graph, 1.0), other)
        assert np.allclose(after[node], before[node], rtol=1e-12, atol=0)
        other[node] = 0
        assert np.array_equal(columns.of(problem_of(graph, 1.0), other)[node] > 0, before[node] > 0)


def test_a_permutation_of_the_nodes_permutes_the_rows() -> None:
    graph = random_graph(n=25, seed=6)
    order = torch.randperm(25, generator=torch.Generator().manual_seed(0))
    place = order.argsort()
    moved = graph.replace(edge_index=place[graph.edge_index], x=graph.x[order], y=graph.y[order])
    columns = LabelColumns(hops=2, shares=True)
    one = columns.of(problem_of(graph, 1.0), problem_of(graph, 1.0).labels.onehot)
    other = columns.of(problem_of(moved, 1.0), problem_of(moved, 1.0).labels.onehot)
    assert np.allclose(one[order], other)
