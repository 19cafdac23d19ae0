import math

import pytest
import scipy.sparse as sp
import torch

from lignn.backbones.layers import Linear
from lignn.propagation import Adjacency, SparseMatrix


@pytest.mark.parametrize(("width", "out"), [(2, 7), (7, 2), (4, 4)])
@pytest.mark.parametrize("sparse", [False, True])
def test_propagated_equals_the_dense_product(graph, width, out, sparse):
    layer = Linear(width + 3, out).double()
    adj = Adjacency.normalized(graph, dtype=torch.float64)
    x = torch.randn(graph.num_nodes, width, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    inputs = SparseMatrix.from_scipy(sp.csr_array(x.numpy())) if sparse else x
    expected = adj.to_dense() @ x @ layer.weight[:, 3:].T
    torch.testing.assert_close(layer.propagated(inputs, adj, slice(3, None)), expected)


@pytest.mark.parametrize(("width", "propagated"), [(2, 2), (7, 5), (5, 5)])
def test_the_narrower_side_is_propagated(graph, width, propagated):
    widths = []

    class Recorder:
        def __matmul__(self, dense):
            widths.append(dense.shape[1])
            return dense

    Linear(width, 5).propagated(torch.ones(graph.num_nodes, width), Recorder())
    assert widths == [propagated]


def test_both_draws_fill_their_range():
    generator = torch.Generator().manual_seed(0)
    glorot = Linear(300, 100, bias=False, glorot=True, generator=generator).weight
    plain = Linear(300, 100, generator=generator).weight
    for weight, bound in ((glorot, math.sqrt(6 / 400)), (plain, 1 / math.sqrt(300))):
        assert 0.999 * bound < weight.abs().max().item() <= bound
        assert weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.01)
