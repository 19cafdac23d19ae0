"""What holds for every backbone."""

import copy
import inspect
import pickle
import pydoc

import pytest
import scipy.sparse as sp
import torch

from lignn import Graph, backbones
from lignn.backbones.registry import BACKBONES
from lignn.propagation import SparseMatrix
from tests.backbones.conftest import CLASSES, FEATURES, NODES, make_graph, make_state

STACKS = ("gat", "gcn", "gin", "rgcn", "sage")
ALL = [
    ("gat", {"heads": 2}),
    ("gat", {"heads": 2, "activation": "elu"}),
    ("gcn", {}),
    ("gcnii", {"num_layers": 3}),
    ("gin", {}),
    ("gin", {"train_eps": True, "eps": 0.2}),
    ("jknet", {"num_layers": 3}),
    ("mlp", {}),
    ("rgcn", {}),
    ("rgcn", {"both_directions": True, "num_bases": 3}),
    ("sage", {}),
    ("sgc", {}),
    ("sgc", {"head": "mlp"}),
    *((name, {"num_layers": 2, "residual": True, "norm": "batch"}) for name in STACKS),
    *((name, {"num_layers": 3, "norm": "layer"}) for name in STACKS),
    ("gcn", {"num_layers": 12, "residual": True, "norm": "layer"}),
]
every_backbone = pytest.mark.parametrize(("name", "options"), ALL, ids=lambda value: str(value))


def build(name, options, num_features=FEATURES, label_inputs=CLASSES):
    generator = torch.Generator().manual_seed(0)
    backbone = backbones.resolve(name, num_features, CLASSES, label_inputs, generator, hidden=8, **options)
    return backbone.double()


def test_these_are_all_backbones():
    assert {name for name, _ in ALL} == set(backbones.names())


@every_backbone
@pytest.mark.parametrize("weighted", [False, True])
def test_step_has_the_derivatives_of_finite_differences(name, options, weighted):
    backbone, graph = build(name, options), make_graph(weighted)
    adj = backbone.adjacency(graph, torch.float64)
    features = backbone.features(graph.x, adj).detach()
    assert torch.autograd.gradcheck(lambda s: backbone.step(features, s, adj), make_state().requires_grad_())


@every_backbone
def test_permuted_nodes_give_permuted_logits(name, options, state):
    backbone, graph = build(name, options), make_graph(weighted=True)
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(4))
    place = order.argsort()
    permuted = graph.replace(edge_index=place[graph.edge_index], x=graph.x[order])
    out = []
    for g, s in ((graph, state), (permuted, state[order])):
        adj = backbone.adjacency(g, torch.float64)
        out.append(backbone.step(backbone.features(g.x, adj), s, adj))
    torch.testing.assert_close(out[1], out[0][order])


@every_backbone
def test_no_state_is_a_state_of_zeros_and_the_ordinary_network(name, options, graph, state):
    backbone = build(name, options)
    adj = backbone.adjacency(graph, torch.float64)
    features = backbone.features(graph.x, adj)
    without = backbone.step(features, None, adj)
    torch.testing.assert_close(backbone.step(features, torch.zeros_like(state), adj), without)
    torch.testing.assert_close(backbone(graph.x, adj), without)


@every_backbone
def test_sparse_features_give_what_dense_ones_give(name, options, graph):
    backbone = build(name, options)
    adj = backbone.adjacency(graph, torch.float64)
    sparse = SparseMatrix.from_scipy(sp.csr_array(graph.x.numpy()))
    torch.testing.assert_close(backbone(sparse, adj), backbone(graph.x, adj))


@every_backbone
def test_a_graph_without_features_has_the_state_alone(name, options, graph, state):
    backbone = build(name, options, num_features=0)
    adj = backbone.adjacency(graph, torch.float64)
    out = backbone.step(backbone.features(None, adj), state, adj)
    as_features = build(name, options, num_features=CLASSES, label_inputs=0)
    as_features.load_state_dict(backbone.state_dict())
    torch.testing.assert_close(out, as_features(state, adj))


@every_backbone
def test_isolated_nodes_see_only_themselves(name, options, graph, state):
    backbone = build(name, options).eval()
    alone = Graph(torch.empty(2, 0, dtype=torch.int64), x=graph.x[-1:])
    out = []
    for g, s in ((graph, state), (alone, state[-1:])):
        adj = backbone.adjacency(g, torch.float64)
        out.append(backbone.step(backbone.features(g.x, adj), s, adj)[-1])
    assert out[0].isfinite().all()
    torch.testing.assert_close(*out)


@every_backbone
def test_weights_come_from_the_generator_alone(name, options):
    torch.manual_seed(1)
    first = build(name, options).state_dict()
    before = torch.get_rng_state()
    second = build(name, options).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[key], second[key]) for key in first)


@every_backbone
def test_a_copy_computes_the_same(name, options, graph):
    backbone = build(name, options).eval()
    adj = backbone.adjacency(graph, torch.float64)
    out = backbone(graph.x, adj)
    copied = build(name, options).eval()
    copied.load_state_dict(backbone.state_dict())
    assert torch.equal(copied(graph.x, adj), out)


REQUIRED = inspect.Parameter.empty
SHARED = {"label_inputs": 0, "hidden": 64, "num_layers": 2, "dropout": 0.0}
OWN = {
    "gat": {"heads": 8, "activation": "relu"},
    "gcn": {},
    "gcnii": {"alpha": 0.1, "theta": 0.5},
    "gin": {"eps": 0.0, "train_eps": False},
    "jknet": {},
    "mlp": {"num_layers": 3, "batch_norm": True},
    "rgcn": {"edge_types": (), "both_directions": False, "num_bases": 0},
    "sage": {},
    "sgc": {"num_layers": 3, "hops": 2, "head": "linear", "batch_norm": True},
}


@pytest.mark.parametrize("name", OWN)
def test_the_signature_tells_every_option(name):
    parameters = inspect.signature(BACKBONES[name]).parameters
    stack = {"residual": False, "norm": "none"} if name in STACKS else {}
    expected = {"num_features": REQUIRED, "num_classes": REQUIRED, **SHARED, **OWN[name], "generator": None, **stack}
    assert {key: value.default for key, value in parameters.items()} == expected
    assert [key for key in parameters if key not in ("generator", *stack)] == [*expected][: -1 - len(stack)]
    for key, default in expected.items():
        if isinstance(default, int | float):  # what `check_options` checks
            assert parameters[key].annotation == type(default).__name__
    text = pydoc.render_doc(BACKBONES[name])
    assert all(f"{key}: " in text for key in expected)


@pytest.mark.parametrize("name", OWN)
def test_an_unknown_argument_is_refused(name):
    with pytest.raises(TypeError, match=r"__init__\(\) got an unexpected keyword argument 'hiden'"):
        BACKBONES[name](9, 3, hiden=8)


@every_backbone
def test_copies_and_pickles_compute_the_same(name, options, graph):
    backbone = build(name, options).eval()
    adj = backbone.adjacency(graph, torch.float64)
    out = backbone(graph.x, adj)
    for other in (copy.deepcopy(backbone), pickle.loads(pickle.dumps(backbone))):
        assert torch.equal(other(graph.x, adj), out)


@pytest.mark.parametrize(("name", "options"), [("gcn", {"num_layers": 1}), ("sgc", {"hops": 1})])
def test_label_weight_is_that_of_one_linear_hop(name, options, graph, state):
    backbone = build(name, options)
    adj = backbone.adjacency(graph, torch.float64)
    features, weight = backbone.features(graph.x, adj), backbone.label_weight
    assert weight.shape == (CLASSES, CLASSES)
    assert not weight.requires_grad
    change = backbone.step(features, state, adj) - backbone.step(features, None, adj)
    torch.testing.assert_close(change, adj.to_dense() @ state @ weight.T)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *ALL,
        ("sgc", {"hops": 1, "head": "mlp"}),
        *((name, {"num_layers": 1}) for name in sorted(set(OWN) - {"gcn", "rgcn"})),
    ],
    ids=str,
)
def test_other_networks_have_no_label_weight(name, options):
    assert build(name, options).label_weight is None


def test_an_mlp_head_of_one_layer_is_linear():
    assert build("sgc", {"hops": 1, "head": "mlp", "num_layers": 1}).label_weight.shape == (CLASSES, CLASSES)
