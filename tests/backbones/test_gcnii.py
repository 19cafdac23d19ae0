import math

import pytest
import torch
from torch_geometric.nn import GCN2Conv

from lignn.backbones import GCNII
from lignn.errors import ConfigError


@pytest.mark.parametrize("num_layers", [1, 2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_pyg_layers_on_the_concatenated_input(assert_same, num_layers, weighted):
    backbone = GCNII(9, 3, 3, 8, num_layers, alpha=0.3, theta=1.5)
    convs = [GCN2Conv(8, 0.3, 1.5, layer) for layer in range(1, num_layers + 1)]
    inner, outer = torch.nn.Linear(12, 8), torch.nn.Linear(8, 3)
    model = torch.nn.ModuleDict({"lin_in": inner, "convs": torch.nn.ModuleList(convs), "lin_out": outer})
    model.load_state_dict(backbone.state_dict())

    def call(inputs, graph):
        weight = graph.edge_weight.to(inputs.dtype) if weighted else None
        first = hidden = inner(inputs).relu()
        for conv in convs:
            hidden = conv(hidden, first, graph.edge_index, weight).relu()
        return outer(hidden)

    assert_same(backbone, call, dict(model.named_parameters()), weighted)


def test_weights_are_drawn_by_glorot():
    backbone = GCNII(9, 3, hidden=64, generator=torch.Generator().manual_seed(0))
    largest = backbone.convs[0].weight1.abs().max().item()
    assert 0.99 * math.sqrt(6 / 128) < largest <= math.sqrt(6 / 128)


def test_a_network_without_layers_is_refused():
    with pytest.raises(ConfigError, match="num_layers: a network has at least 1 layer, not 0"):
        GCNII(9, 3, num_layers=0)
