import math
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch_geometric.nn import RGCNConv

from lignn import Graph
from lignn.backbones import RGCN, resolve
from lignn.errors import ConfigError, InputError
from tests.backbones.conftest import CLASSES, FEATURES, NODES, make_graph, make_state

TYPES = ("pays", "uses", "owns")


def typed_graph(weighted=False):
    """The third type has no edges into most nodes, and the last node is isolated."""
    graph = make_graph(weighted)
    draw = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(5))
    return graph.replace(edge_type=(draw > 0.5).long() + (draw > 0.95).long(), edge_types=TYPES)


def pyg_edges(graph, both_directions):
    """Edges and types as PyG takes them: a reversed edge has a type of its own."""
    if not both_directions:
        return graph.edge_index, graph.edge_type
    edges = torch.cat([graph.edge_index, graph.edge_index.flip(0)], 1)
    return edges, torch.cat([graph.edge_type, graph.edge_type + len(TYPES)])


@pytest.mark.parametrize("hidden", [4, 16])
@pytest.mark.parametrize("num_bases", [0, 2])
@pytest.mark.parametrize("both_directions", [False, True])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_equals_pyg_on_the_concatenated_input(hidden, num_bases, both_directions, num_layers):
    graph = typed_graph()
    options = {"edge_types": TYPES, "both_directions": both_directions, "num_bases": num_bases}
    backbone = RGCN(FEATURES, CLASSES, CLASSES, hidden, num_layers, **options).double()
    widths = [CLASSES + FEATURES, *[hidden] * (num_layers - 1), CLASSES]
    relations = len(TYPES) * (2 if both_directions else 1)
    theirs = nn.ModuleList(RGCNConv(width, out, relations, num_bases or None) for width, out in pairwise(widths))
    theirs.load_state_dict(backbone.convs.state_dict())
    theirs = theirs.double()
    adj = backbone.adjacency(graph, torch.float64)
    inputs = [(graph.x.clone().requires_grad_(), make_state().requires_grad_()) for _ in range(2)]
    out = backbone.step(backbone.features(inputs[0][0], adj), inputs[0][1], adj)
    hidden_state = torch.cat(inputs[1][::-1], 1)
    for number, conv in enumerate(theirs):
        hidden_state = conv(hidden_state.relu() if number else hidden_state, *pyg_edges(graph, both_directions))
    torch.testing.assert_close(out, hidden_state, atol=1e-12, rtol=1e-12)
    along = torch.randn(out.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    for result in (out, hidden_state):
        (result * along).sum().backward()
    expected = dict(theirs.named_parameters())
    for name, parameter in backbone.convs.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name].grad, atol=1e-12, rtol=1e-12)
    for ours, other in zip(*inputs, strict=True):
        torch.testing.assert_close(ours.grad, other.grad, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_of_one_type_and_one_layer_it_is_a_closed_form(weighted):
    graph, backbone = make_graph(weighted), RGCN(FEATURES, CLASSES, num_layers=1).double()
    matrix = torch.from_numpy(graph.to_scipy().toarray().T).double()
    mean = matrix / matrix.sum(1, keepdim=True).clamp(min=1e-300)
    conv = backbone.convs[0]
    with torch.no_grad():
        conv.bias += 1
    expected = graph.x @ conv.root + mean @ graph.x @ conv.weight[0] + conv.bias
    torch.testing.assert_close(backbone(graph.x, backbone.adjacency(graph, torch.float64)), expected)
    typed = graph.replace(edge_type=torch.zeros(graph.num_edges, dtype=torch.int64), edge_types=["only"])
    same = RGCN(FEATURES, CLASSES, num_layers=1, edge_types=["only"]).double()
    same.load_state_dict(backbone.state_dict())
    torch.testing.assert_close(same(graph.x, same.adjacency(typed, torch.float64)), expected)


def test_permuted_nodes_and_renumbered_types_give_permuted_logits():
    graph, state = typed_graph(weighted=True), make_state()
    backbone = RGCN(FEATURES, CLASSES, CLASSES, edge_types=TYPES, both_directions=True).double()
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(4))
    renumbered = torch.tensor([1, 2, 0])[graph.edge_type]
    permuted = graph.replace(
        edge_index=order.argsort()[graph.edge_index], x=graph.x[order], edge_type=renumbered,
        edge_types=["owns", "pays", "uses"],
    )  # fmt: skip
    out = []
    for g, s in ((graph, state), (permuted, state[order])):
        adj = backbone.adjacency(g, torch.float64)
        out.append(backbone.step(backbone.features(g.x, adj), s, adj))
    torch.testing.assert_close(out[1], out[0][order])


def test_the_narrow_side_is_propagated(monkeypatch):
    """A step on c label columns costs as many columns as there are types times c, in the first layer and the last."""
    graph, columns = typed_graph(), []
    backbone = RGCN(FEATURES, CLASSES, CLASSES, hidden=32, edge_types=TYPES).double()
    adj = backbone.adjacency(graph, torch.float64)
    features = backbone.features(graph.x, adj)
    part = type(adj.parts[0])
    product = part.__matmul__

    def counted(matrix, dense):
        columns.append(dense.shape[1])
        return product(matrix, dense)

    monkeypatch.setattr(part, "__matmul__", counted)
    with torch.no_grad():  # with gradients, a product is called once more, inside its autograd function
        backbone.step(features, make_state(), adj)
    assert columns == [CLASSES] * 2 * len(TYPES)


def test_the_label_weight_multiplies_the_stacked_operators():
    graph, state = typed_graph(weighted=True), make_state()
    backbone = RGCN(FEATURES, CLASSES, CLASSES, num_layers=1, edge_types=TYPES, num_bases=2).double()
    adj = backbone.adjacency(graph, torch.float64)
    features, weight = backbone.features(graph.x, adj), backbone.label_weight
    change = backbone.step(features, state, adj) - backbone.step(features, None, adj)
    stacked = torch.cat([state, *(part @ state for part in adj.parts)], 1)
    torch.testing.assert_close(change, stacked @ weight.T)
    assert not weight.requires_grad
    dense = torch.cat([torch.eye(NODES, dtype=torch.float64), *(part.to_dense() for part in adj.parts)])
    exact = torch.linalg.matrix_norm(dense, 2).item()
    assert exact <= adj.stacked_norm() <= math.sqrt(NODES * 4) * exact
    assert adj.stacked_norm() == pytest.approx(math.sqrt(dense.sum(0).max() * dense.sum(1).max()))


def test_types_are_found_by_name_and_unknown_ones_refused():
    graph = typed_graph()
    backbone = resolve("rgcn", FEATURES, CLASSES, edge_types=(*TYPES, "sends")).double()
    assert backbone.convs[0].weight.shape[0] == 4
    adj = backbone.adjacency(graph, torch.float64)
    assert [part.nnz > 0 for part in adj.parts] == [True, True, True, False]
    assert backbone(graph.x, adj).isfinite().all()
    with pytest.raises(InputError, match="does not know edges of type 'uses'; did you mean 'use'"):
        RGCN(FEATURES, CLASSES, edge_types=("pays", "use", "owns")).adjacency(graph)
    with pytest.raises(InputError, match="edges have no types, the network needs pays, uses, owns"):
        RGCN(FEATURES, CLASSES, edge_types=TYPES).adjacency(make_graph())
    with pytest.raises(InputError, match="'pays'; it was built for edges without types"):
        RGCN(FEATURES, CLASSES).adjacency(graph)
    unused = graph.replace(edge_types=[*TYPES, "never"])
    assert len(RGCN(FEATURES, CLASSES, edge_types=TYPES).adjacency(unused).parts) == 3


def test_options_are_checked():
    with pytest.raises(ConfigError, match="num_bases: a number of at least 0 is needed, got -1"):
        RGCN(9, 3, num_bases=-1)
    with pytest.raises(ConfigError, match="backbone RGCN has no option 'num_base'; did you mean 'num_bases'"):
        resolve("rgcn", 9, 3, num_base=3)
    assert not hasattr(resolve("gcn", 9, 3, edge_types=TYPES), "edge_types")


def test_messages_against_an_edge_reach_its_source_with_both_directions_only():
    graph = Graph([[0], [1]], x=torch.eye(2, dtype=torch.float64))
    changed = torch.tensor([[1.0, 0], [0, 5]], dtype=torch.float64)
    for both, reaches in ((False, False), (True, True)):
        backbone = RGCN(2, 2, num_layers=1, both_directions=both).double()
        adj = backbone.adjacency(graph, torch.float64)
        assert torch.equal(backbone(graph.x, adj)[0], backbone(changed, adj)[0]) != reaches
