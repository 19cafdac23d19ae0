import pytest
import scipy.sparse as sp
import torch
from torch import nn
from torch_geometric.nn import models
from torch_geometric.nn.conv import SimpleConv

from lignn.backbones import GCN, Adapter
from lignn.errors import ConfigError
from lignn.propagation import SparseMatrix
from tests.backbones.conftest import make_graph

DEGREES = torch.tensor([1, 4, 3, 3, 2, 1, 1])
MODELS = {
    "GCN": lambda: models.GCN(12, 8, 2, 3),
    "GAT": lambda: models.GAT(12, 8, 2, 3, heads=2),
    "GATv2": lambda: models.GAT(12, 8, 2, 3, heads=2, v2=True),
    "GraphSAGE": lambda: models.GraphSAGE(12, 8, 2, 3),
    "GIN": lambda: models.GIN(12, 8, 2, 3),
    "EdgeCNN": lambda: models.EdgeCNN(12, 8, 2, 3),
    "PNA": lambda: models.PNA(12, 8, 2, 3, aggregators=["mean", "max"], scalers=["identity", "linear"], deg=DEGREES),
    "LINKX": lambda: models.LINKX(15, 12, 8, 3, 1),
}


@pytest.mark.parametrize("name", MODELS)
def test_equals_the_model_on_the_concatenated_input(name, state):
    graph = make_graph().coalesced()
    model = MODELS[name]().double().eval()
    backbone = Adapter(model, 9, 3, 3).eval()
    adj = backbone.adjacency(graph, torch.float64)
    out = backbone.step(backbone.features(graph.x, adj), state.requires_grad_(), adj)
    expected = model(torch.cat([state, graph.x], 1), graph.edge_index)
    torch.testing.assert_close(out, expected)
    grads = [torch.autograd.grad(y.square().sum(), state)[0] for y in (out, expected)]
    torch.testing.assert_close(*grads)


def test_equals_the_backbone_of_the_same_name_on_a_weighted_graph_with_repeated_edges(state):
    graph = make_graph(weighted=True)
    ours = GCN(9, 3, 3, 8).double()
    model = models.GCN(12, 8, 2, 3).double()
    model.load_state_dict(ours.state_dict())
    backbone = Adapter(model, 9, 3, 3)
    plain, normalized = backbone.adjacency(graph, torch.float64), ours.adjacency(graph, torch.float64)
    out = backbone.step(backbone.features(graph.x, plain), state, plain)
    torch.testing.assert_close(out, ours.step(ours.features(graph.x, normalized), state, normalized))


def test_a_module_that_names_its_argument_adj_t_gets_the_sparse_matrix(graph, state):
    class Module(nn.Module):
        def forward(self, x, adj_t):
            return adj_t @ x

    backbone = Adapter(Module(), 9, 12, 3)
    adj = backbone.adjacency(graph, torch.float64)
    out = backbone.step(backbone.features(graph.x, adj), state, adj)
    torch.testing.assert_close(out, adj.to_dense() @ torch.cat([state, graph.x], 1))


def test_the_kind_of_graph_can_be_chosen(graph, state):
    conv = SimpleConv()
    outs = []
    for kind in ("edge_index", "adj_t"):
        backbone = Adapter(conv, 9, 12, 3, graph=kind)
        adj = backbone.adjacency(graph, torch.float64)
        outs.append(backbone.step(backbone.features(graph.x, adj), state, adj))
    torch.testing.assert_close(*outs)
    with pytest.raises(ConfigError, match="graph: 'edges' is unknown, choose from edge_index, adj_t, none"):
        Adapter(conv, 9, 12, 3, graph="edges")


def test_sparse_missing_features_and_missing_state(graph, state):
    module = nn.Linear(12, 3).double()
    backbone = Adapter(module, 9, 3, 3)
    adj = backbone.adjacency(graph, torch.float64)
    sparse = SparseMatrix.from_scipy(sp.csr_array(graph.x.numpy()))
    zeros = torch.zeros_like(state)
    torch.testing.assert_close(backbone(sparse, adj), module(torch.cat([zeros, graph.x], 1)))
    narrow = Adapter(nn.Linear(3, 3).double(), 0, 3, 3)
    torch.testing.assert_close(narrow.step(narrow.features(None, adj), state, adj), narrow.module(state))


def test_outputs_that_are_no_logits_are_refused(graph, state):
    backbone = Adapter(nn.Linear(12, 64).double(), 9, 3, 3)
    message = r"backbone: Linear gives outputs of shape \(15, 64\), logits \(15, 3\) are needed"
    with pytest.raises(ConfigError, match=message):
        backbone.step(graph.x, state, backbone.adjacency(graph, torch.float64))
