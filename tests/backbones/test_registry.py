import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.nn import models

from lignn import backbones
from lignn.backbones import GCN, Adapter
from lignn.backbones.registry import check_options
from lignn.errors import ConfigError


def test_names_are_those_of_the_design():
    assert backbones.names() == ["gat", "gcn", "gcnii", "gin", "jknet", "mlp", "rgcn", "sage", "sgc"]


@pytest.mark.parametrize("spec", ["gcn", GCN, partial(GCN, dropout=0.5)])
def test_by_name_class_and_factory(spec):
    backbone = backbones.resolve(spec, 9, 3, 2, hidden=16)
    assert isinstance(backbone, GCN)
    assert backbone.convs[0].lin.weight.shape == (16, 11)


def test_an_instance_is_taken_as_it_is():
    backbone = GCN(9, 3, 2)
    assert backbones.resolve(backbone, 9, 3, 2) is backbone


def test_a_foreign_instance_is_adapted():
    module = nn.Linear(11, 3)
    backbone = backbones.resolve(module, 9, 3, 2)
    assert isinstance(backbone, Adapter)
    assert backbone.module is module


def test_a_foreign_class_gets_sizes_and_options_by_pyg_names():
    backbone = backbones.resolve(models.GAT, 9, 3, 2, hidden=16, heads=4)
    first, last = backbone.module.convs
    assert (first.in_channels, first.heads, first.out_channels, last.out_channels) == (11, 4, 4, 3)


def test_a_foreign_factory_without_a_generator_draws_anew():
    first, second = (backbones.resolve(models.GCN, 9, 3).module.convs[0].lin.weight for _ in range(2))
    assert not torch.equal(first, second)


def test_a_foreign_factory_draws_from_the_generator_alone():
    draws = []
    before = torch.get_rng_state()
    for seed in (0, 0, 1):
        generator = torch.Generator().manual_seed(seed)
        backbone = backbones.resolve(models.GCN, 9, 3, 2, generator)
        draws.append(backbone.module.convs[0].lin.weight)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_a_plain_factory():
    backbone = backbones.resolve(lambda in_channels, out_channels: nn.Linear(in_channels, out_channels), 9, 3, 2)
    assert backbone.module.weight.shape == (3, 11)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: backbones.resolve("gatt", 9, 3), "backbone 'gatt' is unknown; did you mean 'gat'?"),
        (lambda: backbones.resolve("gcn", 9, 3, hiden=8), "backbone GCN has no option 'hiden'; did you mean 'hidden'?"),
        (lambda: backbones.resolve("sgc", 9, 3, hop=8), "backbone SGC has no option 'hop'; did you mean 'hops'?"),
        (lambda: backbones.resolve(GCN(9, 3), 9, 3, hidden=8), "backbone: GCN is built already and cannot take hidden"),
        (
            lambda: backbones.resolve(GCN(9, 3), 9, 3, 3),
            "backbone: GCN was built for 9 features, 3 classes and 0 label inputs, but 9, 3 and 3 are needed; "
            "give its class instead",
        ),
        (
            lambda: backbones.resolve(lambda in_channels, out_channels, width: nn.Linear(1, 1), 9, 3, widht=1),
            "backbone <lambda> has no option 'widht'; did you mean 'width'?",
        ),
    ],
)
def test_mistakes_are_explained(call, message):
    with pytest.raises(ConfigError) as error:
        call()
    assert str(error.value) == message


def test_the_import_is_light():
    code = "import sys, lignn.backbones; print({'numba', 'torch_geometric'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def factory(size: int = 1, rate: float = 0.5, on: bool = False, anything=None):
    return size, rate, on, anything


@pytest.mark.parametrize(
    "options", [{}, {"size": np.int64(3)}, {"rate": 1}, {"on": True}, {"anything": "x"}, {"anything": 1.5}]
)
def test_options_that_fit(options):
    check_options("it", factory, options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sise": 1}, "it has no option 'sise'; did you mean 'size'?"),
        ({"size": 1.5}, "it: size: a whole number is needed, got 1.5"),
        ({"size": True}, "it: size: a whole number is needed, got True"),
        ({"rate": "high"}, "it: rate: a number is needed, got 'high'"),
        ({"on": 1}, "it: on: true or false is needed, got 1"),
    ],
)
def test_options_that_do_not_fit(options, message):
    with pytest.raises(ConfigError) as error:
        check_options("it", factory, options)
    assert str(error.value) == message


def test_only_some_options_may_be_given():
    with pytest.raises(ConfigError, match="it has no option 'rate'; choose from size"):
        check_options("it", factory, {"rate": 0.5}, ["size"])
    with pytest.raises(ConfigError, match="it has no option 'rate'; it has none"):
        check_options("it", factory, {"rate": 0.5}, [])
