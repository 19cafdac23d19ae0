"""Steps of label propagation without the entries of A_λ, against products with A_λ."""

import numpy as np
import pytest
import torch

from lignn.bench.power_law import power_law_graph
from lignn.graph import Graph
from lignn.propagation import Adjacency, walk
from lignn.propagation.threads import PARALLEL_ABOVE
from lignn.propagation.walk import WIDEST, last_states, propagate


def problem(columns=5, dtype=torch.float64, nodes=300, entries=3000):
    generator = torch.Generator().manual_seed(0)
    lazy = Adjacency.normalized(power_law_graph(nodes, entries), dtype=dtype).lazy(0.9)
    known = torch.randperm(nodes, generator=generator)[:20]
    start, rows = (torch.rand(count, columns, generator=generator, dtype=dtype) for count in (nodes, 20))
    return lazy, start, known, rows


def by_products(lazy, start, known, rows, count):
    dense, last, state = lazy.to_dense(), start, start
    for _ in range(count):
        last, state = state, dense @ state.index_copy(0, known, rows)
    return last, state


@pytest.mark.parametrize("columns", [1, 3, 5, 10])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_states_are_those_of_products(columns, count):
    lazy, *inputs = problem(columns)
    assert lazy.walk is not None
    for found, expected in zip(last_states(lazy, *inputs, count), by_products(lazy, *inputs, count), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def test_single_precision():
    lazy, *inputs = problem(dtype=torch.float32)
    found, expected = propagate(lazy, *inputs, 50), by_products(lazy, *inputs, 50)[1]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("columns", [3, WIDEST + 1])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_last_state_alone_and_from_zero(columns, count):
    lazy, start, known, rows = problem(columns)
    expected = last_states(lazy, start, known, rows, count)[1]
    torch.testing.assert_close(propagate(lazy, start, known, rows, count), expected, rtol=0, atol=0)
    zeros = torch.zeros_like(start)
    for method in (propagate, lambda *inputs: last_states(*inputs)[1]):
        assert torch.equal(method(lazy, None, known, rows, count), method(lazy, zeros, known, rows, count))


@pytest.mark.parametrize("self_loops", [True, False])
def test_graphs_in_which_some_nodes_have_self_loops(self_loops):
    graph = power_law_graph(300, 3000)
    loops = torch.arange(0, 300, 3).expand(2, -1)
    graph = Graph(torch.cat([graph.edge_index, loops], 1), num_nodes=300)
    lazy = Adjacency.normalized(graph, self_loops=self_loops, dtype=torch.float64).lazy(0.9)
    assert lazy.walk is not None
    assert len(lazy.walk.indices) < lazy.nnz
    _, *inputs = problem()
    expected = by_products(lazy, *inputs, 5)[1]
    torch.testing.assert_close(propagate(lazy, *inputs, 5), expected, rtol=1e-10, atol=1e-12)


def test_inputs_are_not_changed():
    lazy, start, known, rows = problem()
    copies = start.clone(), rows.clone()
    propagate(lazy, start, known, rows, 3)
    assert torch.equal(start, copies[0])
    assert torch.equal(rows, copies[1])


def test_number_of_threads_changes_no_bit(threads):
    lazy, *inputs = problem(nodes=5000, entries=150_000)
    assert lazy.nnz * 5 > PARALLEL_ABOVE
    results = []
    for count in (1, 2, 3):
        threads(count)
        results.append(propagate(lazy, *inputs, 3))
    assert all(torch.equal(result, results[0]) for result in results)


def test_steps_in_several_calls_change_no_bit(monkeypatch):
    lazy, *inputs = problem()
    expected = last_states(lazy, *inputs, 9)
    monkeypatch.setattr(walk, "BURST", 2 * lazy.nnz * 8)  # fewer than three steps
    assert all(map(torch.equal, last_states(lazy, *inputs, 9), expected))


def test_more_nodes_than_half_width_indices_can_count():
    lazy, start, known, rows = problem(columns=2, nodes=70_000, entries=140_000)
    assert lazy.walk.indices.dtype == torch.int32
    expected = start
    for _ in range(3):
        expected = lazy @ expected.index_copy(0, known, rows)
    torch.testing.assert_close(propagate(lazy, start, known, rows, 3), expected, rtol=1e-10, atol=1e-12)


def test_nodes_that_are_all_known():
    lazy, start, _, _ = problem()
    known = torch.randperm(300, generator=torch.Generator().manual_seed(1))
    last, value = last_states(lazy, start, known, start[known].contiguous(), 5)
    torch.testing.assert_close(last, lazy @ start, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(value, last, rtol=1e-10, atol=1e-12)


def test_order_of_the_nodes_changes_only_the_order_of_the_result():
    graph = power_law_graph(300, 3000)
    _, start, known, rows = problem()
    mixed = torch.randperm(300, generator=torch.Generator().manual_seed(1))
    place = mixed.argsort()
    lazy = Adjacency.normalized(graph, dtype=torch.float64).lazy(0.9)
    other = Adjacency.normalized(Graph(place[graph.edge_index], num_nodes=300), dtype=torch.float64).lazy(0.9)
    expected = propagate(lazy, start, known, rows, 9)
    found = propagate(other, start[mixed], place[known], rows, 9)
    torch.testing.assert_close(found, expected[mixed], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("reason", ["weights", "row", "no self-loop", "λ = 0", "wide", "no step", "other"])
def test_other_matrices_take_steps_with_products(reason):
    lazy, start, known, rows = problem(WIDEST + 1 if reason == "wide" else 5)
    graph, count = power_law_graph(300, 3000), 0 if reason == "no step" else 4
    if reason == "weights":
        weights = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        lazy = Adjacency.normalized(Graph(graph.edge_index, edge_weight=weights), dtype=torch.float64).lazy(0.9)
    elif reason == "row":
        lazy = Adjacency.normalized(graph, "row", dtype=torch.float64).lazy(0.9)
    elif reason == "no self-loop":
        alone = Graph(graph.edge_index[:, (graph.edge_index != 7).all(0)], num_nodes=300)
        lazy = Adjacency.normalized(alone, self_loops=False, dtype=torch.float64).lazy(0.9)
    elif reason == "λ = 0":
        lazy = Adjacency.normalized(graph, dtype=torch.float64).lazy(0.0)
    elif reason == "other":
        lazy = lazy.restricted(rows=torch.arange(300) < 200)
    assert (lazy.walk is None) == (reason not in ("wide", "no step"))
    for found, expected in zip(
        last_states(lazy, start, known, rows, count), by_products(lazy, start, known, rows, count), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_repeated_edges_and_directed_edges():
    edges = torch.tensor([[0, 0, 1, 2, 3], [1, 1, 2, 0, 0]])
    repeated = Adjacency.normalized(Graph(edges, num_nodes=5), dtype=torch.float64).lazy(0.5)
    assert repeated.walk is None  # an edge that is given twice has the weight 2
    directed = Adjacency.normalized(Graph(edges[:, 1:], num_nodes=5), dtype=torch.float64).lazy(0.5)
    inputs = torch.rand(5, 2, dtype=torch.float64), torch.tensor([1]), torch.ones(1, 2, dtype=torch.float64)
    torch.testing.assert_close(propagate(directed, *inputs, 3), by_products(directed, *inputs, 3)[1])
