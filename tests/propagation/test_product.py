"""Which way a product takes, and that no choice changes a bit of it."""

import copy
import ctypes
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from lignn.bench.graphs import graph_with_communities
from lignn.propagation import Adjacency, SparseMatrix, locality
from lignn.propagation import threads as parallel
from lignn.propagation.threads import ThreadFunction, run_in_threads


class Operators(TorchDispatchMode):
    """Names of the operators that were called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, _types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


@pytest.fixture
def matrix():
    return SparseMatrix.from_scipy(sp.random_array((50, 40), density=0.2, rng=np.random.default_rng(0)), torch.float32)


@pytest.fixture
def ordering(monkeypatch):
    """Order the rows of small matrices too, after the third product."""
    monkeypatch.setattr(locality, "WORTH_ABOVE", 100 * 3 * 8)
    monkeypatch.setattr(locality, "REPAID_AFTER", 3)
    monkeypatch.setattr(locality, "WINDOW", 1000)
    monkeypatch.setattr(parallel, "PARALLEL_ABOVE", 0)


@pytest.mark.parametrize(
    ("width", "dtype"),
    [(1, torch.float64), (3, torch.float32), (5, torch.float32), (8, torch.float32), (70, torch.float64)],
)
def test_product_without_the_dispatcher_is_that_of_the_operator(matrix, width, dtype):
    matrix = matrix.to(dtype)
    dense = torch.rand(40, width, generator=torch.Generator().manual_seed(0), dtype=dtype)
    expected = torch.ops.lignn.spmm(*matrix._arrays, dense, [])
    assert torch.equal(matrix @ dense, expected)
    tolerance = 1e-6 if dtype == torch.float32 else 1e-14
    np.testing.assert_allclose(expected, matrix.to_scipy() @ dense.numpy(), rtol=tolerance)


def test_factors_that_are_not_contiguous_and_of_one_column(matrix):
    dense = torch.rand(7, 40, generator=torch.Generator().manual_seed(0))
    assert torch.equal(matrix @ dense.T, matrix @ dense.T.contiguous())
    assert torch.equal(matrix @ dense[3], (matrix @ dense.T)[:, 3])
    assert (matrix @ torch.empty(40, 0)).shape == (50, 0)


def test_whoever_watches_operators_sees_the_product(matrix):
    dense = torch.rand(40, 3)
    with Operators() as seen:
        matrix @ dense
    assert seen.names == ["lignn.spmm.default"]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        matrix @ dense
    assert "lignn::spmm" in {event.key for event in profiler.key_averages()}


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace.*:DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_traced_product_is_not_a_constant(matrix):
    traced = torch.jit.trace(lambda x: matrix @ x, torch.zeros(40, 3), check_trace=False)
    dense = torch.rand(40, 3)
    assert torch.equal(traced(dense), matrix @ dense)


def test_gradients_of_both_ways_agree(matrix):
    dense = torch.rand(40, 3, requires_grad=True)
    cotangent = torch.rand(50, 3)
    (here,) = torch.autograd.grad(matrix @ dense, dense, cotangent)
    with Operators():
        (operator,) = torch.autograd.grad(matrix @ dense, dense, cotangent)
    assert torch.equal(here, operator)
    torch.testing.assert_close(here, matrix.to_dense().T @ cotangent)


def test_second_derivatives():
    matrix = SparseMatrix.from_scipy(sp.random_array((6, 6), density=0.5, rng=np.random.default_rng(0)))
    dense = torch.rand(6, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: (matrix @ x) ** 3, dense)


def test_what_was_chosen_is_not_copied(matrix):
    dense = torch.rand(40, 3)
    expected = matrix @ dense
    for other in (copy.copy(matrix), copy.deepcopy(matrix), pickle.loads(pickle.dumps(matrix))):
        assert "product" not in vars(other)
        assert torch.equal(other @ dense, expected)


@pytest.mark.parametrize(("rows", "columns", "ordered"), [(101, 101, True), (100, 100, False), (101, 102, False)])
def test_only_large_square_matrices_are_ordered(rows, columns, ordered, ordering, monkeypatch):
    calls = []
    monkeypatch.setattr(locality, "ordered", lambda *arrays: calls.append(arrays) or (*arrays, None))
    matrix = SparseMatrix.from_scipy(sp.random_array((rows, columns), density=0.2, rng=np.random.default_rng(0)))
    counts = [matrix @ torch.rand(columns, 3).double() is not None and len(calls) for _ in range(5)]
    assert counts == ([0, 0, 1, 1, 1] if ordered else [0] * 5)


def test_order_of_the_rows_changes_no_bit(ordering, threads):
    adj = Adjacency.normalized(graph_with_communities(5000, 60_000))
    dense = torch.rand(5000, 8, generator=torch.Generator().manual_seed(0))
    results = [adj @ dense for _ in range(2)]
    assert adj.product.arrays[3] is None
    for count in (1, 2, 3):
        threads(count)
        results.append(adj @ dense)
    assert not torch.equal(adj.product.arrays[3], torch.arange(5000, dtype=torch.int32))
    assert all(torch.equal(result, results[0]) for result in results)


def test_order_of_the_nodes_changes_only_the_order_of_the_result(ordering):
    graph = graph_with_communities(5000, 60_000)
    mixed = torch.randperm(5000, generator=torch.Generator().manual_seed(0))
    place = mixed.argsort()
    first = Adjacency.normalized(graph, dtype=torch.float64)
    second = Adjacency.normalized(type(graph)(place[graph.edge_index], num_nodes=5000), dtype=torch.float64)
    dense = torch.rand(5000, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for _ in range(4):
        torch.testing.assert_close((first @ dense)[mixed], second @ dense[mixed], rtol=1e-12, atol=1e-14)
    assert first.product.arrays[3] is not None
    assert second.product.arrays[3] is not None


def test_a_prepared_product_can_be_repeated(ordering):
    adj = Adjacency.normalized(graph_with_communities(5000, 60_000))
    dense = torch.rand(5000, 8, generator=torch.Generator().manual_seed(0))
    expected, out = adj @ dense, torch.empty(5000, 8)
    [(function, task)] = adj.product.prepared(dense, out, 2, expected=10)
    assert adj.product.arrays[3] is not None
    for _ in range(2):
        out.zero_()
        task[0] = 0
        run_in_threads(ThreadFunction(ctypes.cast(function, ctypes.c_void_p).value), task.ctypes.data, 2)
        assert torch.equal(out, expected)
