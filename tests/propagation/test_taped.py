"""The gradient of a fused step against PyTorch's own, in float64, and its bits for any number of threads."""

import pytest
import torch

from lignn.propagation import Adjacency, fused
from lignn.propagation.taped import Taped, row_gradients
from tests.problems import random_graph


def inputs(n=37, c=3, hidden=7, dropout=True, dtype=torch.float64):
    """Return random P, B, F, W and V (both c×hidden) and D."""
    generator = torch.Generator().manual_seed(n + c)
    shapes = (n, c), (n, c), (n, hidden), (c, hidden), (c, hidden)
    *tensors, mask = (torch.randn(shape, generator=generator, dtype=dtype) for shape in (*shapes, (n, hidden)))
    return *tensors, 2 * (mask > 0).to(dtype) if dropout else None


@pytest.mark.parametrize(("n", "c", "hidden"), [(1, 1, 1), (37, 3, 7), (512, 2, 64), (1030, 16, 65)])
@pytest.mark.parametrize("dropout", [False, True])
def test_rows_have_the_gradients_of_pytorch(n, c, hidden, dropout):
    p, b, features, first, second, mask = inputs(n, c, hidden, dropout)
    leaves = [tensor.clone().requires_grad_() for tensor in (features, p, first, second)]
    units = (leaves[1] @ leaves[2] + leaves[0]).relu()
    out = (units if mask is None else units * mask) @ leaves[3].T
    wanted = torch.autograd.grad(out, leaves, b)
    for found, expected in zip(row_gradients(p, b, features, first, second, mask), wanted, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dropout", [False, True])
def test_a_taped_step_passes_the_check_of_gradients(dropout):
    n, c, hidden = 20, 3, 5
    generator = torch.Generator().manual_seed(1)
    adj = Adjacency.normalized(random_graph(n, directed=True), dtype=torch.float64)
    state, _, features, first, second, mask = inputs(n, c, hidden, dropout)
    scale, offset = (torch.randn(n, width, generator=generator, dtype=torch.float64) for width in (1, c))
    bias = torch.randn(c, generator=generator, dtype=torch.float64)

    def logits(state, features, first, second, bias):
        tiles = None if mask is None else fused.tiled(mask)
        weights = first.detach().contiguous(), second.detach().T.contiguous()
        step = fused.FusedStep(
            adj, *weights, fused.tiled(features.detach()), scale.expand(n, c), offset, bias.detach(), tiles, False, mask
        )
        return Taped.apply(state, features, first, second, bias, step, step.tape(state.detach()), scale)

    leaves = [tensor.requires_grad_() for tensor in (state, features, first.T.contiguous(), second, bias)]
    assert torch.autograd.gradcheck(logits, leaves)


def test_the_number_of_threads_does_not_change_a_bit():
    tensors, before = inputs(3000, 5, 64, dtype=torch.float32), torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(row_gradients(*tensors))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))
