"""Residual networks and normalisation: the equation, its place in the stack, and networks of one's own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import lignn
from lignn import NodeClassifier, backbones
from lignn.backbones import GCN, Backbone, JKNet
from lignn.backbones.registry import BACKBONES, names_with
from lignn.errors import ConfigError, InputError
from tests.backbones.conftest import CLASSES, FEATURES
from tests.classifier.small import small_graph

STACKS = ["gat", "gcn", "gin", "rgcn", "sage"]
DEEP = {"num_layers": 12, "residual": True}


def resolved(name, **options):
    generator = torch.Generator().manual_seed(0)
    return backbones.resolve(name, FEATURES, CLASSES, CLASSES, generator, hidden=8, **options).double()


def normalised(hidden, norm):
    axis = {"batch": 0, "layer": 1}[norm]
    return (hidden - hidden.mean(axis, keepdim=True)) / (hidden.var(axis, correction=0, keepdim=True) + 1e-5).sqrt()


@pytest.mark.parametrize("norm", ["batch", "layer"])
@pytest.mark.parametrize("residual", [False, True])
def test_a_gcn_is_its_equation(graph, state, norm, residual):
    network = resolved("gcn", num_layers=3, residual=residual, norm=norm)
    adj = network.adjacency(graph, torch.float64)
    dense, hidden = adj.torch_sparse.to_dense(), torch.cat([state, graph.x], 1)
    for number, layer in enumerate(network.convs):
        if isinstance(layer, backbones.stack.Pointwise):
            hidden = hidden @ layer.lin.weight.T + layer.lin.bias
        else:
            conv = layer.conv if residual else layer
            skipped = hidden @ layer.lin.weight.T if residual else 0
            hidden = dense @ hidden @ conv.lin.weight.T + conv.bias + skipped
        if number < len(network.convs) - 1:
            hidden = normalised(hidden, norm).relu()
    torch.testing.assert_close(network.step(network.features(graph.x, adj), state, adj), hidden)


@pytest.mark.parametrize("name", STACKS)
def test_layers_are_counted_without_the_linear_maps(name):
    plain, residual = resolved(name, num_layers=3), resolved(name, num_layers=3, residual=True)
    assert (len(plain.convs), len(residual.convs)) == (3, 5)
    assert not any(key.startswith("norms") for key in plain.state_dict())


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("name", STACKS)
def test_twelve_layers_reach_the_first_weight(name, norm, graph, state):
    network = resolved(name, **DEEP, norm=norm)
    adj = network.adjacency(graph, torch.float64)
    network.step(network.features(graph.x, adj), state, adj).square().sum().backward()
    first = network.convs[0].lin.weight.grad
    assert first.isfinite().all()
    assert first[:, :CLASSES].abs().sum() > 0


def test_other_networks_have_no_such_options():
    for name in set(backbones.names()) - set(STACKS):
        with pytest.raises(ConfigError, match="has no option 'residual'"):
            resolved(name, residual=True)
    with pytest.raises(ConfigError, match="norm: 'bach' is unknown, choose from none, batch, layer"):
        resolved("gcn", norm="bach")
    with pytest.raises(ConfigError, match="residual: true or false is needed"):
        resolved("gcn", residual="yes")


def test_one_node_has_no_batch_statistics(graph):
    network, alone = resolved("gcn", norm="batch"), graph.replace(edge_index=graph.edge_index[:, :0])
    adj = network.adjacency(alone, torch.float64)
    with pytest.raises(InputError, match="at least two nodes; give the backbone option norm='layer'"):
        network.after_linear(torch.ones(1, 8, dtype=torch.float64), adj)


def test_what_a_network_is_follows_from_its_class():
    assert set(names_with("streams")) == set(backbones.names()) - {"gat"}
    assert [name for name in backbones.names() if not BACKBONES[name].uses_edges] == ["mlp"]
    assert names_with("knows_types") == ["rgcn"]
    deep = {name for name in backbones.names() if resolved(name, num_layers=2).is_deep}
    assert deep == {"jknet", "gcnii"}
    assert {name for name in STACKS if resolved(name, num_layers=3).is_deep} == set(STACKS)
    assert resolved("gcn", num_layers=1, residual=True).is_deep
    assert issubclass(JKNet, Backbone)


class OneHop(GCN):
    """A network of one's own, of one layer whatever is asked for."""

    bounded = True

    def __init__(self, num_features, num_classes, label_inputs=0, *, generator=None):
        super().__init__(num_features, num_classes, label_inputs, num_layers=1, generator=generator)


class Unsaid(OneHop):
    """The same network, whose class does not say that it has a bound."""

    bounded = False

    def gain(self, norms, centred):
        raise AssertionError("nobody may ask")


def test_a_network_of_ones_own_is_one_class(monkeypatch):
    monkeypatch.setitem(BACKBONES, "one_hop", OneHop)
    monkeypatch.setitem(BACKBONES, "unsaid", Unsaid)
    assert "one_hop" in backbones.names()
    assert "one_hop" in names_with("streams")
    proved = NodeClassifier(backbone="one_hop", contraction="proved", max_epochs=5).fit(small_graph())
    assert proved._fitted.prediction.bound.lipschitz <= 0.95 + 1e-6
    with pytest.raises(ConfigError, match=r"which gcn, .* one_hop have"):
        NodeClassifier(backbone="unsaid", contraction="proved", max_epochs=5).fit(small_graph())


NEW = """
from lignn.backbones.gcn import GCNConv
from lignn.backbones.stack import ConvolutionStack


class Directed(ConvolutionStack):
    normalization = "row"
    tried_from = "fast"
    bounded = True

    def convolution(self, width, out, generator):
        return GCNConv(width, out, generator)
"""
USE = """
from typer.testing import CliRunner
from lignn import NodeClassifier
from lignn.classifier.race.candidates import candidates
from lignn.cli import app
from tests.classifier.small import small_graph

graph = small_graph()
deep = {"num_layers": 3, "residual": True}
model = NodeClassifier(backbone="directed", backbone_options=deep, contraction="proved", max_epochs=5).fit(graph)
assert model._fitted.prediction.bound.lipschitz <= 0.95 + 1e-6
names = {each.name for each in candidates(graph, "fast")}
assert {"directed", "directed/label_input"} <= names
assert "directed" in CliRunner().invoke(app, ["fit", "--help"], env={"COLUMNS": "200"}).output
"""


def test_a_built_in_network_is_one_file(tmp_path):
    package = Path(lignn.__file__).parent
    shutil.copytree(package, tmp_path / "lignn", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "lignn" / "backbones" / "directed.py").write_text(NEW)
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    subprocess.run([sys.executable, "-c", USE], env={**os.environ, "PYTHONPATH": paths}, check=True)
