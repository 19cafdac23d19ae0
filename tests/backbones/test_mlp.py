import pytest
import torch
from torch_geometric.nn import models

from lignn.backbones import MLP
from lignn.errors import ConfigError


def pyg_names(names):
    return {
        name: name.removeprefix("layers.").replace("norms.0.", "norms.0.module.").replace("norms.1.", "norms.1.module.")
        for name in names
    }


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_equals_pyg_on_the_concatenated_input(assert_same, batch_norm, training):
    backbone = MLP(9, 3, 3, 8, batch_norm=batch_norm)
    model = models.MLP(
        in_channels=12, hidden_channels=8, out_channels=3, num_layers=3, norm="batch_norm" if batch_norm else None
    )
    names = pyg_names(backbone.state_dict())
    model.load_state_dict({names[name]: value for name, value in backbone.state_dict().items()})
    backbone.train(training)
    model.train(training)
    parameters = dict(model.named_parameters())
    same_names = {name: parameters[names[name]] for name, _ in backbone.named_parameters()}
    assert_same(backbone, lambda inputs, graph: model.to(inputs.dtype)(inputs), same_names)


def test_weights_are_drawn_as_those_of_a_linear_layer():
    backbone = MLP(90, 3, 10, 64, generator=torch.Generator().manual_seed(0))
    for linear, width in zip(backbone.layers.lins, (100, 64, 64), strict=True):
        assert 0.95 / width**0.5 < linear.weight.abs().max().item() <= 1 / width**0.5
        assert linear.bias.abs().max().item() <= 1 / width**0.5


def test_a_network_without_layers_is_refused():
    with pytest.raises(ConfigError, match="num_layers: a network has at least 1 layer, not 0"):
        MLP(9, 3, num_layers=0)
