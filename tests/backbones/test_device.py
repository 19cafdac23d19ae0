"""Every backbone computes on the device of its inputs; PyTorch's `meta` device, which has no values, stands for it."""

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lignn.backbones import Adapter, Dropout, frozen_dropout
from lignn.propagation import Adjacency, SparseMatrix, attention
from tests.backbones.conftest import CLASSES, NODES, make_graph, make_state
from tests.backbones.test_backbone import build, every_backbone


class OneDevice(TorchDispatchMode):
    """Raise if an operator is given tensors of two devices, which some would accept if one of them is meta."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        devices = {tensor.device.type for tensor in tensors if tensor.ndim or tensor.device.type != "cpu"}
        assert len(devices) < 2 or func is torch.ops.aten.copy_.default, f"{func} on {sorted(devices)}"
        return func(*args, **(kwargs or {}))


class UncheckedMatrix(SparseMatrix):
    """A sparse matrix that may have no values to check."""

    def __post_init__(self):
        pass


class UncheckedAdjacency(UncheckedMatrix, Adjacency):
    """The same for an adjacency."""


def to_meta(matrix):
    """Return a matrix on the meta device that knows its transpose, since that cannot be computed there."""
    kind = UncheckedAdjacency if isinstance(matrix, Adjacency) else UncheckedMatrix
    moved, turned = (
        kind(*(array.to("meta") for array in (m.indptr, m.indices, m.values)), m.shape) for m in (matrix, matrix.T)
    )
    moved.__dict__.update(_transposed=turned, on_cpu=matrix)
    turned.__dict__.update(_transposed=moved, on_cpu=matrix.T)
    return moved


@pytest.fixture(autouse=True)
def pattern_from_cpu(monkeypatch):
    """Let attention sort the entries of the transpose on the CPU."""
    pattern = attention.transposed_pattern

    def moved(adj):
        return [array.to("meta") for array in pattern(adj.on_cpu)]

    monkeypatch.setattr(attention, "transposed_pattern", moved)


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
    with OneDevice(), frozen_dropout(backbone, torch.Generator().manual_seed(0)):
        with torch.inference_mode():
            backbone.step(backbone.features(x, adj), state, adj)
        out = backbone.step(backbone.features(x, adj), state, adj)
        out.sum().backward()
    assert (out.device.type, out.dtype, out.shape) == ("meta", torch.float64, (NODES, CLASSES))
    assert all(leaf.grad.device.type == "meta" for leaf in (state, *backbone.parameters()))


@pytest.mark.parametrize("num_features", [9, 0])
def test_an_adapted_module_stays_on_the_device_and_leaves_the_random_state_alone(num_features):
    module = nn.Sequential(nn.Linear(num_features + 3, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    backbone = Adapter(module, num_features, 3, 3).double().to("meta")
    adj = to_meta(backbone.adjacency(make_graph(), torch.float64))
    features = backbone.features(make_features("dense" if num_features else "none"), adj)
    before = torch.get_rng_state()
    with OneDevice(), frozen_dropout(backbone, torch.Generator().manual_seed(0)):
        for state in (make_state().to("meta"), None):
            out = backbone.step(features, state, adj)
            out.sum().backward()
    assert out.device.type == "meta"
    assert torch.equal(torch.get_rng_state(), before)


def test_a_frozen_mask_follows_its_input_to_another_device():
    dropout, x = Dropout(0.5), torch.ones(50, 4)
    with frozen_dropout(dropout, torch.Generator().manual_seed(0)):
        first = dropout(x)
        assert dropout(x.to("meta")).device.type == "meta"
        assert torch.equal(dropout(x), first)
