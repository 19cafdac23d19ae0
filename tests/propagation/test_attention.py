import threading

import pytest
import torch

from lignn import Graph
from lignn.errors import InputError, LignnError
from lignn.propagation import Adjacency
from lignn.propagation.attention import _attend_elsewhere, _gradient_elsewhere, attend, transposed_pattern

SLOPE = 0.2


def problem(nodes=9, edges=30, heads=3, channels=4, dtype=torch.float64, seed=0):
    """Return a directed weighted graph whose last two nodes have no edges, and random inputs."""
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(nodes - 2, (2, edges), generator=generator)
    weight = torch.rand(edges, generator=generator)
    adj = Adjacency.normalized(Graph(edge_index, edge_weight=weight, num_nodes=nodes), "none", False, dtype)
    shapes = (nodes, heads, channels), (nodes, heads), (nodes, heads)
    return adj, [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def dense(adj, values, source, target, keep=None):
    """Compute attention by its definition, with dense matrices."""
    scores = torch.nn.functional.leaky_relu(target[:, None] + source[None], SLOPE)
    coefficients = adj.to_dense()[:, :, None] * scores.exp()
    total = coefficients.sum(1, keepdim=True)
    coefficients = coefficients / torch.where(total > 0, total, 1)
    if keep is not None:
        rows = torch.repeat_interleave(torch.arange(adj.shape[0]), adj.indptr.diff().long())
        mask = torch.zeros_like(coefficients).index_put((rows, adj.indices.long()), keep)
        coefficients = coefficients * mask
    return torch.einsum("ijh,jhc->ihc", coefficients, values)


def draw_keep(adj, heads=3):
    return (torch.rand(adj.nnz, heads, generator=torch.Generator().manual_seed(7)) > 0.3).double() / 0.7


@pytest.mark.parametrize(("heads", "channels"), [(1, 1), (1, 64), (3, 4), (8, 8), (2, 13)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_equals_the_definition(heads, channels, dtype, tolerance):
    adj, inputs = problem(heads=heads, channels=channels, dtype=dtype)
    torch.testing.assert_close(attend(adj, *inputs), dense(adj, *inputs), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("dropout", [False, True])
def test_has_the_derivatives_of_finite_differences_and_of_the_definition(dropout):
    adj, inputs = problem()
    keep = draw_keep(adj) if dropout else None
    for tensor in inputs:
        tensor.requires_grad_()
    assert torch.autograd.gradcheck(lambda *inputs: attend(adj, *inputs, SLOPE, keep), inputs)
    out, expected = attend(adj, *inputs, SLOPE, keep), dense(adj, *inputs, keep)
    torch.testing.assert_close(out, expected)
    along = torch.randn(out.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for mine, other in zip(*(torch.autograd.grad(y, inputs, along) for y in (out, expected)), strict=True):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("dropout", [False, True])
def test_other_devices_compute_the_same(dropout):
    adj, (values, source, target) = problem()
    pattern = (adj.indptr, adj.indices, adj.values, transposed_pattern(adj))
    inputs = (*pattern, source, target, values, draw_keep(adj) if dropout else None, SLOPE)
    ours, other = torch.ops.lignn.attend(*inputs), _attend_elsewhere(*inputs)
    torch.testing.assert_close(ours, other)
    out, coefficients = ours
    grad = torch.randn(out.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    backward = (*inputs, coefficients, out, grad)
    torch.testing.assert_close(torch.ops.lignn.attend_gradient(*backward), _gradient_elsewhere(*backward))


def test_is_a_proper_operator():
    adj, (values, source, target) = problem()
    for tensor in (values, source, target):
        tensor.requires_grad_()
    arguments = (adj.indptr, adj.indices, adj.values, transposed_pattern(adj), source, target, values, None, SLOPE)
    torch.library.opcheck(torch.ops.lignn.attend.default, arguments)


def test_a_second_derivative_is_refused():
    adj, inputs = problem()
    values = inputs[0].requires_grad_()
    (grad,) = torch.autograd.grad(attend(adj, *inputs).square().sum(), values, create_graph=True)
    with pytest.raises(LignnError, match="attention has no second derivative"):
        torch.autograd.grad(grad.sum(), values)


def test_rows_without_entries_and_entries_of_weight_zero_count_nothing():
    graph = Graph([[0, 1, 1], [2, 2, 3]], edge_weight=[1.0, 0.0, 0.0], num_nodes=4)
    adj = Adjacency.normalized(graph, "none", False)
    assert adj.nnz == 3
    values = torch.tensor([[[3.0]], [[5.0]], [[7.0]], [[9.0]]], requires_grad=True)
    source = torch.tensor([[0.0], [1000.0], [0.0], [0.0]])
    out = attend(adj, values, source, torch.zeros(4, 1))
    torch.testing.assert_close(out.flatten(), torch.tensor([0.0, 0.0, 3.0, 0.0]))
    out.sum().backward()
    torch.testing.assert_close(values.grad.flatten(), torch.tensor([1.0, 0.0, 0.0, 0.0]))


def test_large_scores_do_not_overflow():
    adj, (values, source, target) = problem(dtype=torch.float32)
    out = attend(adj, values, 1000 * source, 1000 * target)
    assert out.isfinite().all()
    assert out.abs().max() <= values.abs().max()


def test_a_graph_without_edges():
    adj = Adjacency.normalized(Graph(torch.empty(2, 0, dtype=torch.int64), num_nodes=3), "none", False)
    values = torch.ones(3, 2, 2, requires_grad=True)
    out = attend(adj, values, torch.ones(3, 2), torch.ones(3, 2))
    out.sum().backward()
    assert not out.any()
    assert not values.grad.any()


def test_types_must_agree():
    adj, inputs = problem()
    with pytest.raises(InputError, match=r"the matrix is torch.float64 and the values torch.float32"):
        attend(adj, *(tensor.float() for tensor in inputs))


def test_non_contiguous_inputs():
    adj, inputs = problem()
    expected = attend(adj, *inputs)
    strided = [torch.stack([tensor, tensor], -1)[..., 0] for tensor in inputs]
    assert not strided[0].is_contiguous()
    assert torch.equal(attend(adj, *strided), expected)


def run(adj, inputs):
    inputs = [tensor.clone().requires_grad_() for tensor in inputs]
    out = attend(adj, *inputs)
    out.square().sum().backward()
    return [out.detach(), *(tensor.grad for tensor in inputs)]


def test_is_the_same_to_the_bit_for_any_number_of_threads_and_concurrent_callers():
    adj, inputs = problem(nodes=900, edges=20_000, heads=8, channels=8, dtype=torch.float32)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            results.append(run(adj, inputs))
        callers = [threading.Thread(target=lambda: results.append(run(adj, inputs))) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    finally:
        torch.set_num_threads(threads)
    assert len(results) == 7
    for result in results[1:]:
        assert all(torch.equal(mine, first) for mine, first in zip(result, results[0], strict=True))


def test_no_tensor_of_entry_by_head_by_channel_is_made():
    adj, inputs = problem(nodes=80, edges=6000, heads=4, channels=32)
    run(adj, inputs)
    with torch.profiler.profile(profile_memory=True) as profiler:
        run(adj, inputs)
    allocated = sum(max(event.self_cpu_memory_usage, 0) for event in profiler.events())
    assert adj.nnz * 4 * 8 * 2 < allocated < adj.nnz * 4 * 32 * 8
