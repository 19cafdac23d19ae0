"""Every backbone computes on the device of its inputs.

PyTorch's `meta` device stands for any other than the CPU: its tensors have no values, and an operation that mixes them
with tensors of the CPU, or reads a value, raises.
"""

import pytest
import scipy.sparse as sp
import torch
from torch import nn

from lignn.backbones import Adapter, Dropout, frozen_dropout
from lignn.propagation import Adjacency, SparseMatrix, attention
from tests.backbones.conftest import CLASSES, NODES, make_graph, make_state
from tests.backbones.test_backbone import build, every_backbone


class UncheckedMatrix(SparseMatrix):
    """A sparse matrix that may have no values to check."""

    def __post_init__(self):
        pass


class UncheckedAdjacency(UncheckedMatrix, Adjacency):
    """The same for an adjacency."""


def to_meta(matrix):
    """Return a matrix on the meta device, with its transpose."""
    kind = UncheckedAdjacency if isinstance(matrix, Adjacency) else UncheckedMatrix
    moved, turned = (
        kind(*(array.to("meta") for array in (m.indptr, m.indices, m.values)), m.shape) for m in (matrix, matrix.T)
    )
    moved.__dict__["_transposed"] = turned
    turned.__dict__["_transposed"] = moved
    if isinstance(matrix, Adjacency):
        attention._transposed[moved] = [array.to("meta") for array in attention.transposed_pattern(matrix)]
    return moved


def make_features(kind):
    x = make_graph().x
    if kind == "none":
        return None
    return x.to("meta") if kind == "dense" else to_meta(SparseMatrix.from_scipy(sp.csr_array(x.numpy())))


@every_backbone
@pytest.mark.parametrize("kind", ["dense", "sparse", "none"])
def test_forward_and_backward_stay_on_the_device(name, options, kind):
    x = make_features(kind)
    backbone = build(name, {"dropout": 0.5, **options}, 0 if x is None else x.shape[1])
    adj = to_meta(backbone.adjacency(make_graph(weighted=True), torch.float64))
    backbone, state = backbone.to("meta"), make_state().to("meta").requires_grad_()
    with frozen_dropout(backbone, torch.Generator().manual_seed(0)):
        with torch.inference_mode():
            backbone.step(backbone.features(x, adj), state, adj)
        out = backbone.step(backbone.features(x, adj), state, adj)
    assert (out.device.type, out.dtype, out.shape) == ("meta", torch.float64, (NODES, CLASSES))
    out.sum().backward()
    assert state.grad.device.type == "meta"
    for parameter in backbone.parameters():
        assert parameter.grad.device.type == "meta"


def test_an_adapted_module_stays_on_the_device_and_leaves_the_random_state_alone():
    module = nn.Sequential(nn.Linear(12, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    backbone = Adapter(module, 9, 3, 3).double().to("meta")
    adj = to_meta(backbone.adjacency(make_graph(), torch.float64))
    before = torch.get_rng_state()
    with frozen_dropout(backbone, torch.Generator().manual_seed(0)):
        out = backbone.step(backbone.features(make_features("dense"), adj), None, adj)
    assert out.device.type == "meta"
    out.sum().backward()
    assert torch.equal(torch.get_rng_state(), before)


def test_an_adapted_module_without_features_stays_on_the_device():
    backbone = Adapter(nn.Linear(3, 3).double().to("meta"), 0, 3, 3)
    adj = to_meta(backbone.adjacency(make_graph(), torch.float64))
    state = make_state().to("meta").requires_grad_()
    backbone.step(backbone.features(None, adj), state, adj).sum().backward()
    assert state.grad.device.type == "meta"


def test_a_frozen_mask_follows_its_input_to_another_device():
    dropout, x = Dropout(0.5), torch.ones(50, 4)
    with frozen_dropout(dropout, torch.Generator().manual_seed(0)):
        first = dropout(x)
        assert dropout(x.to("meta")).device.type == "meta"
        assert torch.equal(dropout(x), first)
