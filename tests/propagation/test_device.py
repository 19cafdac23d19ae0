"""Matrices on another device. PyTorch's `meta` device stands for it: it has shapes and types, but no numbers."""

import copy
import pickle

import pytest
import torch

from lignn import Adjacency
from lignn.errors import InputError
from lignn.propagation import SparseMatrix
from lignn.propagation.attention import _attend_elsewhere, _gradient_elsewhere, attend, transposed_pattern
from tests.devices import OneDevice
from tests.problems import random_graph

META = torch.device("meta")
DIRECTED = pytest.mark.parametrize("directed", [False, True])


def adjacency(directed=True, dtype=torch.float32):
    return Adjacency.normalized(random_graph(directed=directed, weighted=True), dtype=dtype)


def on_meta(*shape, dtype=torch.float32):
    return torch.empty(*shape, dtype=dtype, device=META, requires_grad=True)


def same_numbers(mine, other):
    return mine.shape == other.shape and all(map(torch.equal, mine._arrays, other._arrays))


@DIRECTED
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_product_transposed_product_and_two_backward_passes(directed, dtype):
    adj, x = adjacency(directed, dtype).to(META), on_meta(30, 4, dtype=dtype)
    for matrix in (adj, adj.T):
        with OneDevice() as mode:
            out = matrix @ x
            (grad,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
            (second,) = torch.autograd.grad(grad.square().sum(), x)
        for tensor in (out, grad, second):
            assert (tensor.device, tensor.dtype, tensor.shape) == (META, dtype, (30, 4))
        assert mode.operators.count("lignn::spmm") == 4  # forward, backward, and twice in the second order


def test_product_with_a_vector_and_with_a_matrix_that_is_not_square():
    matrix = SparseMatrix.from_scipy(adjacency().to_scipy()[:20]).to(META)
    vector = on_meta(30)
    with OneDevice():
        out = matrix @ vector
        out.sum().backward()
    assert (out.device, out.shape) == (META, (20,))
    assert (vector.grad.device, vector.grad.shape) == (META, (30,))


@pytest.mark.parametrize("dropout", [False, True])
def test_attention_and_its_backward_pass(dropout):
    adj, inputs = adjacency().to(META), [on_meta(30, 3, 5), on_meta(30, 3), on_meta(30, 3)]
    keep = torch.empty(adj.nnz, 3, device=META) if dropout else None
    with OneDevice() as mode:
        out = attend(adj, *inputs, keep=keep)
        out.square().sum().backward()
    assert (out.device, out.shape) == (META, (30, 3, 5))
    for tensor in inputs:
        assert (tensor.grad.device, tensor.grad.shape) == (META, tensor.shape)
    assert {"lignn::attend", "lignn::attend_gradient"} <= set(mode.operators)


@pytest.mark.parametrize("dropout", [False, True])
def test_attention_by_the_operators_of_pytorch_stays_on_the_device(dropout):
    """The mode does not see the operators that `lignn::attend` calls, so its code is called directly."""
    adj, (values, source, target) = adjacency().to(META), [on_meta(30, 3, 5), on_meta(30, 3), on_meta(30, 3)]
    pattern = (adj.indptr, adj.indices, adj.values, transposed_pattern(adj))
    inputs = (*pattern, source, target, values, torch.empty(adj.nnz, 3, device=META) if dropout else None, 0.2)
    with OneDevice(), torch.no_grad():
        out, coefficients = _attend_elsewhere(*inputs)
        grads = _gradient_elsewhere(*inputs, coefficients, out, torch.empty_like(out))
    assert [tensor.shape for tensor in (out, coefficients)] == [(30, 3, 5), (adj.nnz, 3)]
    assert [tensor.shape for tensor in grads] == [(30, 3), (30, 3), (30, 3, 5)]
    assert {tensor.device for tensor in (out, coefficients, *grads)} == {META}


@DIRECTED
def test_moved_matrix_keeps_its_original_and_comes_back(directed):
    adj = adjacency(directed)
    moved = adj.to(META)
    assert isinstance(moved, Adjacency)
    assert (moved.device, moved.dtype, moved.shape, moved.nnz) == (META, adj.dtype, adj.shape, adj.nnz)
    assert {array.device for array in moved._arrays} == {META}
    assert moved.original is adj
    assert moved.to("meta") is moved
    assert moved.to("cpu") is adj
    assert adj.to("cpu:0") is adj
    double = moved.to(torch.float64)
    assert (double.device, double.dtype) == (META, torch.float64)
    assert same_numbers(double.to("cpu"), adj.to(torch.float64))
    assert same_numbers(moved.to("cpu", torch.float64), adj.to(torch.float64))
    for again in (copy.deepcopy(moved), pickle.loads(pickle.dumps(moved))):
        assert again.device == META
        assert same_numbers(again.to("cpu"), adj)


@DIRECTED
def test_transpose_of_a_moved_matrix_is_the_moved_transpose(directed):
    adj = adjacency(directed)
    moved = adj.to(META)
    assert (moved.T is moved) == (adj.T is adj) == (not directed)
    assert moved.T.device == META
    assert moved.T.T is moved
    assert same_numbers(moved.T.to("cpu"), adj.T)


@pytest.mark.parametrize(
    "derive",
    [
        lambda adj: adj.T,
        lambda adj: adj.lazy(0.3),
        lambda adj: adj.without_diagonal(),
        lambda adj: adj.restricted(rows=torch.arange(30) < 9),
        lambda adj: adj.restricted(columns=torch.arange(30) < 9),
        lambda adj: adj.subgraph(torch.arange(30) < 9),
    ],
)
def test_derived_matrices_are_computed_on_the_cpu_and_moved(derive):
    adj = adjacency()
    derived = derive(adj.to(META))
    assert derived.device == META
    assert same_numbers(derived.to("cpu"), derive(adj))


def test_numbers_of_a_moved_matrix_come_from_the_cpu():
    adj = adjacency()
    moved = adj.to(META)
    assert (moved.to_scipy() != adj.to_scipy()).nnz == 0
    assert moved.spectral_radius() == adj.spectral_radius()
    for tensor in (moved.edge_index, moved.edge_weight, moved.to_dense()):
        assert tensor.device == META
    assert moved.edge_index.shape == adj.edge_index.shape
    assert moved.to_dense().shape == (30, 30)


def test_tensors_on_another_device_are_refused():
    adj, message = adjacency(), r"the matrix is on (meta|cpu) and the tensor on (cpu|meta): move one with"
    for matrix, device in ((adj, META), (adj.to(META), torch.device("cpu"))):
        with pytest.raises(InputError, match=message):
            matrix @ torch.ones(30, 2, device=device)
        with pytest.raises(InputError, match=message):
            attend(matrix, *(torch.ones(shape, device=device) for shape in ((30, 1, 2), (30, 1), (30, 1))))


def test_a_new_matrix_must_be_on_the_cpu():
    arrays = adjacency().to(META)._arrays
    with pytest.raises(InputError, match=r"must be on the CPU: move the matrix with .to\(device\)"):
        Adjacency(*arrays, (30, 30))


def test_the_mode_of_these_tests_finds_mixed_devices():
    number, vector = torch.tensor(2.0), torch.ones(3)
    with OneDevice() as mode:
        assert (number * torch.ones(3, device=META)).device == META
        torch.empty(3, device=META).copy_(vector)
        with pytest.raises(AssertionError, match=r"add.*cpu and meta"):
            vector.add(torch.ones(3, device=META))
    assert "aten::mul" in mode.operators
