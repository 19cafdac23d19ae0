import pytest
import torch
from torch_geometric.nn import models

from lignn import Graph
from lignn.backbones import GIN


@pytest.mark.parametrize("hidden", [4, 16])
@pytest.mark.parametrize("train_eps", [False, True])
def test_equals_pyg_on_the_concatenated_input(assert_same_as_pyg, hidden, train_eps):
    model = models.GIN(12, hidden, 2, 3, eps=0.3, train_eps=train_eps)
    assert_same_as_pyg(GIN(9, 3, 3, hidden, eps=0.3, train_eps=train_eps), model)


def test_edge_weights_scale_the_terms_of_the_sum():
    graph = Graph([[0, 1], [2, 2]], x=torch.tensor([[1.0], [5.0], [7.0]]), edge_weight=[3.0, 0.5])
    backbone = GIN(1, 1, num_layers=1, eps=1.0)
    with torch.no_grad():
        for parameter in backbone.parameters():
            parameter.fill_(1.0 if parameter.ndim == 2 else 0.0)
    out = backbone(graph.x, backbone.adjacency(graph))
    torch.testing.assert_close(out, torch.tensor([[2.0], [10.0], [14 + 3 * 1 + 0.5 * 5]]))
