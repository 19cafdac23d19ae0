"""Every backbone computes on the device of its inputs; PyTorch's `meta` device, which has no values, stands for it."""

import pytest
import scipy.sparse as sp
import torch
from torch import nn

from lignn.backbones import Adapter, Dropout, frozen_dropout
from lignn.propagation import SparseMatrix
from tests.backbones.conftest import CLASSES, NODES, make_graph, make_state
from tests.backbones.test_backbone import build, every_backbone
from tests.devices import OneDevice


def make_features(kind):
    x = make_graph().x
    if kind == "none":
        return None
    return x.to("meta") if kind == "dense" else SparseMatrix.from_scipy(sp.csr_array(x.numpy())).to("meta")


@every_backbone
@pytest.mark.parametrize("kind", ["dense", "sparse", "none"])
def test_forward_and_backward_stay_on_the_device(name, options, kind):
    x = make_features(kind)
    backbone = build(name, {"dropout": 0.5, **options}, 0 if x is None else x.shape[1])
    adj = backbone.adjacency(make_graph(weighted=True), torch.float64).to("meta")
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
    adj = backbone.adjacency(make_graph(), torch.float64).to("meta")
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
