"""Types of edges in the classifier: every method, saving, checkpoints, new nodes, content, inductive training."""

from functools import cache

import numpy as np
import pytest
import torch

import lignn
from lignn import NodeClassifier
from lignn.classifier import scoring
from lignn.classifier.certificate import theorem1_bounds
from lignn.classifier.spec import Spec
from lignn.declarations import METHODS
from lignn.errors import ConfigError, InputError
from lignn.graph import edges
from tests.classifier.small import first_nodes, fitted, small_graph, small_split

TYPES = ("near", "far")
LABEL_INPUTTED = [name for name, method in METHODS.items() if method.network == "labels"]
TAKES_BACKBONES = [*LABEL_INPUTTED, "backbone", "correct_and_smooth", "reslpa"]
TIGHT = {"tol": 1e-12, "max_steps": 3000}


@cache
def typed_graph(directed=False):
    """The small graph; the edges within a class are near, with a few exceptions."""
    graph = small_graph()
    source, target = graph.edge_index
    kind = ((graph.y[source] != graph.y[target]) ^ ((source + target) % 7 == 0)).long()
    graph = graph.replace(edge_type=kind, edge_types=TYPES)
    assert graph.is_undirected
    return edges.where(graph, source < target) if directed else graph


def fit(method="lignn", graph=None, **options):
    return fitted(method, typed_graph() if graph is None else graph, **({"backbone": "rgcn"} | options))


@pytest.mark.parametrize("method", TAKES_BACKBONES)
def test_every_method_with_a_backbone_sees_the_types_and_is_saved(method, tmp_path):
    classifier = fit(method, max_epochs=3)
    other = typed_graph().replace(edge_type=1 - typed_graph().edge_type, name="other")
    before = classifier.predict_proba()
    assert np.abs(before - classifier.predict_proba(other, known=small_split().train)).max() > 1e-3
    classifier.save(tmp_path)
    again = lignn.load(tmp_path)
    np.testing.assert_array_equal(again.predict_proba(), before)
    assert again.graph_.edge_types == TYPES
    again.update_labels({0: "a"})
    classifier.update_labels({0: "a"})
    np.testing.assert_array_equal(again.predict_proba(), classifier.predict_proba())


def test_types_are_known_by_their_names_elsewhere():
    classifier = fit(max_epochs=3)
    graph = typed_graph()
    renumbered = graph.replace(edge_type=1 - graph.edge_type, edge_types=("far", "near"), x=graph.x + 1)
    same = graph.replace(x=graph.x + 1)
    expected = classifier.predict_proba(same, known=small_split().train)
    np.testing.assert_allclose(classifier.predict_proba(renumbered, known=small_split().train), expected, atol=1e-12)
    with pytest.raises(InputError, match="does not know edges of type 'afar'; did you mean 'far'"):
        classifier.predict(graph.replace(edge_types=("near", "afar"), x=graph.x + 1))
    with pytest.raises(InputError, match="small: the edges have no types, the network needs near, far"):
        classifier.predict(small_graph())


def test_types_are_content():
    graph = typed_graph()
    order = torch.randperm(graph.num_edges, generator=torch.Generator().manual_seed(0))
    renumbered = edges.where(graph, order)
    renumbered = renumbered.replace(edge_type=1 - renumbered.edge_type, edge_types=("far", "near"))
    assert scoring._same_content(graph, renumbered)
    assert scoring._same_content(graph, graph.replace(edge_types=(*TYPES, "unused")))
    swapped = graph.replace(edge_types=("far", "near"))
    changed = graph.edge_type.clone()
    changed[:2] = 1 - changed[:2]
    for other in (swapped, small_graph(), graph.replace(edge_type=changed)):
        assert not scoring._same_content(graph, other)
        assert not scoring._same_content(other, graph)


def test_a_checkpoint_belongs_to_its_types_and_directions():
    graph, split = typed_graph(), small_split()

    def identity(graph, **parameters):
        settings = Spec.resolve({"backbone": "rgcn", **parameters})
        return settings.identity(graph, split)

    changed = graph.replace(edge_type=1 - graph.edge_type)
    found = [identity(graph), identity(changed), identity(small_graph()), identity(graph, both_directions=True)]
    assert len(set(found)) == 4
    assert identity(graph) == found[0]


@pytest.mark.parametrize("inductive", [False, True])
def test_a_checkpoint_goes_on_with_types(tmp_path, inductive):
    """Training that is taken up again ends where training in one go ends."""
    options = {"backbone": "rgcn", "max_epochs": 6, "hidden": 8, "inductive": inductive, "both_directions": True}
    graph, split, file = typed_graph(), small_split(), tmp_path / "checkpoint"

    def stop(history):
        if len(history.epochs) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        NodeClassifier(**options).fit(graph, split, progress=stop, checkpoint=file)
    resumed = NodeClassifier(**options).fit(graph, split, checkpoint=file)
    whole = NodeClassifier(**options).fit(graph, split)
    np.testing.assert_array_equal(resumed.predict_proba(), whole.predict_proba())


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_new_nodes_have_typed_edges(directed, by_name):
    graph, old = typed_graph(directed), 80
    first, others = first_nodes(graph, old)
    joining = others & (graph.edge_index[0] < graph.edge_index[1])
    kinds = graph.edge_type[joining]
    given = [TYPES[kind] for kind in kinds.tolist()] if by_name else kinds
    classifier = fit(graph=first, max_epochs=3, both_directions=directed, **TIGHT)
    known = classifier._fitted.prediction.problem.labels.mask
    arguments = (graph.x[old:], graph.edge_index[:, joining], [f"node{i}" for i in range(old, 90)])
    found = classifier.add_nodes(*arguments, edge_type=given)
    mask = torch.cat([known, torch.zeros(10, dtype=torch.bool)])
    expected = classifier.predict_proba(graph.replace(x=graph.x, name="whole"), known=mask)
    np.testing.assert_allclose(found.probabilities, expected[old:], atol=1e-8)
    ours, theirs = (scoring._sorted_edges(each) for each in (classifier.graph_, graph))
    np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(InputError, match="the graph has types of edges: give edge_type for the new edges"):
        classifier.add_nodes(graph.x[:1], [[0], [90]], ["new"])
    with pytest.raises(InputError, match="'fat' is no type of the graph's edges; did you mean 'far'"):
        classifier.add_nodes(graph.x[:1], [[0], [90]], ["new"], edge_type=["fat"])


def test_types_of_new_edges_are_refused_where_the_graph_has_none():
    classifier = fitted("lpa")
    with pytest.raises(InputError, match="the graph has no types of edges: leave them out for the new edges"):
        classifier.add_nodes(small_graph().x[:1], [[0], [90]], ["new"], edge_type=["near"])


def test_inductive_training_does_not_see_edges_of_held_out_nodes():
    """Whatever the types of these edges are, the weights are the same; the predictions are not."""
    graph, split = typed_graph(), small_split()
    held_out = split.held_out[graph.edge_index].any(0)
    assert 0 < held_out.sum() < graph.num_edges
    other = graph.replace(edge_type=torch.where(held_out, 1 - graph.edge_type, graph.edge_type))
    one, two = (
        fit("backbone", version, inductive=True, max_epochs=3, patience=3, calibrate=False)
        for version in (graph, other)
    )
    losses = [[epoch["loss"] for epoch in classifier.history_.epochs] for classifier in (one, two)]
    assert losses[0] == losses[1]
    assert np.abs(one.predict_proba() - two.predict_proba()).max() > 1e-3


def test_the_certificate_of_one_hop_bounds_the_slope_of_the_map():
    classifier = fit(
        max_epochs=3, lr=1e-4, hidden=None, both_directions=True, backbone_options={"num_layers": 1}, **TIGHT
    )
    spectral, product = classifier.diagnose().bounds
    prediction = classifier._fitted.prediction
    state = prediction.solution.value
    jacobian = torch.autograd.functional.jacobian(prediction.bound.map, state).reshape(state.numel(), -1)
    slope = torch.linalg.matrix_norm(jacobian, 2).item()
    assert 0 < slope <= min(spectral.value * 0.5, product.value)  # softmax: ½
    radius = torch.linalg.eigvals(jacobian).abs().max().item()
    assert classifier.diagnose().spectral_radius == pytest.approx(radius, rel=1e-3)
    assert (spectral.name, spectral.limit) == ("spectral", 2)
    with torch.no_grad():
        for weight in classifier.method_.parameters():
            weight *= 0.01
    (certain,) = theorem1_bounds(classifier._fitted.prediction.bound)
    assert certain.holds
    assert certain.value == pytest.approx(0.01 * spectral.value)


@pytest.mark.parametrize("method", ["lpa", "correct_and_smooth"])
def test_a_weight_a_type_is_that_weight_on_its_edges(method, tmp_path):
    graph = typed_graph()
    options = {} if method == "lpa" else {"max_epochs": 3, "backbone": "mlp"}  # an MLP does not see the weights
    weights = torch.tensor([2.0, 0.25], dtype=torch.float64)[graph.edge_type]
    by_type = fitted(method, graph, method_options={"type_weights": {"near": 2, "far": 0.25}}, **options)
    by_edge = fitted(method, graph.replace(edge_type=None, edge_types=None, edge_weight=weights), **options)
    np.testing.assert_allclose(by_type.predict_proba(), by_edge.predict_proba(), atol=1e-12)
    plain = fitted(method, graph, **options).predict_proba()
    assert np.abs(by_type.predict_proba() - plain).max() > 1e-3
    by_type.save(tmp_path)
    np.testing.assert_array_equal(lignn.load(tmp_path).predict_proba(), by_type.predict_proba())


def test_weights_of_unknown_types_are_refused():
    with pytest.raises(ConfigError, match="'fat' is no type of the edges of small; did you mean 'far'"):
        fitted("lpa", typed_graph(), method_options={"type_weights": {"fat": 2}})
    with pytest.raises(ConfigError, match="weights by the name of the type are needed, got 'far'"):
        fitted("lpa", typed_graph(), method_options={"type_weights": "far"})


def test_both_directions_are_an_option_of_rgcn():
    graph = typed_graph(directed=True)
    one, two = (fit("backbone", graph, both_directions=both, max_epochs=2) for both in (None, True))
    assert [len(each.method_.backbone.convs[0].weight) for each in (one, two)] == [2, 4]
    with pytest.raises(ConfigError, match="backbone GCN has no option 'both_directions'"):
        fit(backbone="gcn", both_directions=True)
    with pytest.raises(ConfigError, match="both_directions: true or false is needed, got 1"):
        fit(both_directions=1)
