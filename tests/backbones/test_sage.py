import pytest
import torch
from torch_geometric.nn import GraphSAGE

from lignn import Graph
from lignn.backbones import SAGE


@pytest.mark.parametrize("hidden", [4, 16])
def test_equals_pyg_on_the_concatenated_input(assert_same_as_pyg, hidden):
    assert_same_as_pyg(SAGE(9, 3, 3, hidden), GraphSAGE(12, hidden, 2, 3))


def test_edge_weights_make_a_weighted_mean():
    graph = Graph([[0, 1], [2, 2]], x=torch.tensor([[1.0], [5.0], [7.0]]), edge_weight=[3.0, 1.0])
    backbone = SAGE(1, 1, num_layers=1)
    with torch.no_grad():
        backbone.convs[0].lin_l.weight.fill_(1)
        backbone.convs[0].lin_l.bias.fill_(0)
        backbone.convs[0].lin_r.weight.fill_(10)
    out = backbone(graph.x, backbone.adjacency(graph))
    torch.testing.assert_close(out, torch.tensor([[10.0], [50.0], [70 + (3 * 1 + 5) / 4]]))
