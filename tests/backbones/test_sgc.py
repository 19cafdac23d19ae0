import copy

import pytest
import torch
from torch_geometric.nn import SGConv, models

from lignn.backbones import SGC
from lignn.errors import ConfigError


@pytest.mark.parametrize("hops", [0, 1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_linear_head_equals_pyg_on_the_concatenated_input(assert_same, hops, weighted):
    backbone = SGC(9, 3, 3, hops=hops)
    model = SGConv(12, 3, K=hops)
    model.lin.weight.data.copy_(backbone.head.first.weight.data)
    model.lin.bias.data.copy_(backbone.head.first.bias.data)
    names = {"head.lins.0.weight": model.lin.weight, "head.lins.0.bias": model.lin.bias}

    def call(inputs, graph):
        weight = graph.edge_weight.to(inputs.dtype) if weighted else None
        return model(inputs, graph.edge_index, weight)

    assert_same(backbone, call, names, weighted)


def test_mlp_head_equals_pyg_on_the_propagated_input(assert_same):
    backbone = SGC(9, 3, 3, 8, hops=2, head="mlp", batch_norm=False)
    model = models.MLP(in_channels=12, hidden_channels=8, out_channels=3, num_layers=3, norm=None)
    model.load_state_dict(backbone.head.state_dict())
    propagate = SGConv(12, 12, K=2, bias=False)

    def call(inputs, graph):
        propagate.lin.weight.data = torch.eye(12, dtype=inputs.dtype)
        return model.to(inputs.dtype)(propagate(inputs, graph.edge_index))

    assert_same(backbone, call, {f"head.{name}": parameter for name, parameter in model.named_parameters()})


def test_dense_features_are_propagated_once(graph, state, monkeypatch):
    backbone = SGC(9, 3, 3, hops=2).double()
    adj = backbone.adjacency(graph, torch.float64)
    first = backbone.step(backbone.features(graph.x, adj), state, adj)
    calls = []
    propagate = backbone._propagate
    monkeypatch.setattr(backbone, "_propagate", lambda x, adj: calls.append(1) or propagate(x, adj))
    torch.testing.assert_close(backbone.features(graph.x, adj) + backbone.linear(state, adj, slice(0, 3)), first)
    assert calls == [1]  # of the state alone


def test_kept_features_follow_a_change_of_features_or_graph(graph):
    backbone = SGC(9, 3, hops=1).double()
    adj = backbone.adjacency(graph, torch.float64)
    x = graph.x.clone()
    before = backbone(x, adj)
    x.mul_(2)
    doubled = backbone(x, adj)
    torch.testing.assert_close(doubled - backbone.linear_bias, 2 * (before - backbone.linear_bias))
    other = adj.lazy(0.0)
    torch.testing.assert_close(backbone(x, other), x @ backbone.head.first.weight.T + backbone.linear_bias)
    torch.testing.assert_close(backbone(x, adj), doubled)


def test_other_features_on_the_same_graph_do_not_displace_the_kept_ones(graph):
    backbone = SGC(9, 3, hops=2).double()
    adj = backbone.adjacency(graph, torch.float64)
    out = backbone(graph.x, adj)
    masked = graph.x * 0.5
    torch.testing.assert_close(backbone(masked, adj) - backbone.linear_bias, 0.5 * (out - backbone.linear_bias))
    assert backbone._propagated_once(masked, adj) is None
    kept = backbone._propagated_once(graph.x, adj)
    assert backbone._propagated_once(graph.x, adj) is kept
    assert not copy.deepcopy(backbone)._kept


def test_features_kept_in_inference_mode_can_be_taped(graph):
    backbone = SGC(9, 3).double()
    adj = backbone.adjacency(graph, torch.float64)
    with torch.inference_mode():
        backbone(graph.x, adj)
    backbone(graph.x, adj).sum().backward()
    assert backbone.head.first.weight.grad.any()


def test_unknown_head_is_refused():
    with pytest.raises(ConfigError, match="head: 'mpl' is unknown, choose from linear, mlp"):
        SGC(9, 3, head="mpl")
