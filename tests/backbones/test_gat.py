import pytest
import torch
from torch_geometric.nn import models

from lignn import Graph
from lignn.backbones import GAT, frozen_dropout
from lignn.errors import ConfigError


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("activation", ["relu", "elu"])
def test_equals_pyg_on_the_concatenated_input(assert_same_as_pyg, num_layers, activation):
    backbone = GAT(9, 3, 3, 8, num_layers, heads=2, activation=activation)
    assert_same_as_pyg(backbone, models.GAT(12, 8, num_layers, 3, heads=2, act=activation))


def test_weights_count_as_parallel_edges(graph):
    backbone = GAT(9, 3, hidden=8, heads=2).double()
    doubled = graph.replace(edge_index=torch.cat([graph.edge_index, graph.edge_index[:, :7]], 1))
    weight = torch.ones(graph.num_edges)
    weight[:7] = 2
    weighted = graph.replace(edge_weight=weight)
    out = [backbone(graph.x, backbone.adjacency(g, torch.float64)) for g in (doubled, weighted)]
    torch.testing.assert_close(*out)


def test_dropout_acts_on_the_attention_coefficients():
    graph = Graph([[0, 1, 2], [3, 3, 3]], x=torch.eye(4))
    backbone = GAT(4, 1, num_layers=1, heads=1, dropout=0.5)
    with torch.no_grad():
        backbone.convs[0].lin.weight.copy_(torch.tensor([[1.0, 10.0, 100.0, 1000.0]]))
        backbone.convs[0].att_src.zero_()
        backbone.convs[0].att_dst.zero_()
    adj = backbone.adjacency(graph)
    sums = set()
    for seed in range(40):
        with frozen_dropout(backbone, torch.Generator().manual_seed(seed)):
            sums.add(round(backbone(graph.x, adj)[3].item() * 2))  # coefficients are 1/4, kept ones are doubled
    assert sums <= {int(f"{number:04b}") for number in range(16)}
    assert len(sums) > 8


def test_heads_must_divide_the_hidden_width():
    with pytest.raises(ConfigError, match="64 hidden channels cannot be shared by 7 heads"):
        GAT(9, 3, heads=7)
