"""Certificates against dense eigenvalues and tight solutions."""

from dataclasses import replace

import pytest
import torch

from lignn import Graph
from lignn.classifier import certificate
from lignn.classifier.certificate import Starts, certify, try_starts, warn_if_start_matters
from lignn.equilibrium.solvers import Picard
from lignn.errors import ConvergenceWarning
from lignn.methods.steps import BoundLabelInputted
from tests.classifier.small import fitted, small_graph
from tests.problems import half_split, random_graph

ONE_HOP = {"backbone_options": {"num_layers": 1}, "hidden": None}


def dense_radius(prediction):
    """The largest eigenvalue of the map's Jacobian, from the whole matrix."""
    state = prediction.solution.value
    jacobian = torch.autograd.functional.jacobian(prediction.bound.map, state)
    return torch.linalg.eigvals(jacobian.reshape(state.numel(), -1)).abs().max().item()


@pytest.mark.parametrize("method", ["lignn", "lpa"])
def test_spectral_radius_equals_the_dense_one(method):
    classifier = fitted(method, tol=1e-10, max_steps=2000)
    assert classifier.diagnose().spectral_radius == pytest.approx(dense_radius(classifier._fitted.prediction), rel=1e-3)


def test_the_state_is_as_near_as_the_certificate_says():
    classifier = fitted(solver="picard", tol=1e-3, feature_mask=0.8, contraction="free")
    found = classifier.diagnose()
    exact = fitted(solver="picard", tol=1e-3, feature_mask=0.8, contraction="free")._fitted.prediction
    exact.bound.method.inference = Picard(tol=1e-13, max_steps=2000)
    equilibrium = exact.bound.method.on(exact.problem).solve().solution.value
    distance = (classifier._fitted.prediction.solution.value - equilibrium).square().mean().sqrt().item()
    assert found.contraction < 1
    assert 0 < distance <= found.error


def test_verdicts():
    assert fitted("lpa").diagnose().unique == "yes"
    assert "is unique" in str(fitted("lpa").diagnose())
    deep = fitted(backbone="gat", contraction="free").diagnose()
    assert deep.contracts
    assert (deep.unique, deep.bounds) == ("unknown", ())
    assert "not proved" in str(deep)
    proved = fitted(contraction="proved").diagnose()
    assert (proved.unique, proved.bounds[-1].name) == ("yes", "product")
    assert 0 < proved.bounds[-1].value <= 0.95 + 1e-6
    assert "The product of the layers' norms: " in str(proved)
    implicit = fitted("ignn", max_epochs=2).diagnose()
    assert (implicit.unique, implicit.spectral_radius) == ("yes", None)


def test_propagation_keeps_what_it_starts_with_where_no_label_arrives():
    whole = small_graph()
    island = torch.tensor([[90, 91], [91, 90]])
    x, y = torch.cat([whole.x, whole.x[:2]]), torch.cat([whole.y, torch.tensor([-1, -1])])
    graph = Graph(torch.cat([whole.edge_index, island], 1), x=x, y=y, class_names=whole.class_names)
    plain, residual = (fitted(method, graph, max_epochs=2).diagnose() for method in ("lpa", "reslpa"))
    assert (plain.unique, plain.contracts) == ("no", False)
    assert residual.unique == "yes"


def test_theorem_1_of_a_one_hop_network():
    found = fitted(backbone_options={"num_layers": 1}, hidden=None, max_epochs=3)
    certificate = found.diagnose()
    assert [bound.name for bound in certificate.bounds] == ["as stated", "as proved", "spectral", "product"]
    weight = found.method_.step.backbone.convs[0].lin.weight[:, :3].detach()
    spectral = certificate.bounds[2]
    assert spectral.value == pytest.approx(torch.linalg.matrix_norm(weight, 2).item(), rel=1e-6)
    assert spectral.limit == 2
    assert certificate.unique == ("yes" if spectral.holds else "unknown")
    assert str(certificate).count("Theorem 1") == 3


def with_map(prediction, factor, contraction):
    """The same prediction, claimed to be of the map `z ↦ factor z`."""
    bound = replace(prediction.bound)
    vars(bound).update(step=lambda state: factor * state, lipschitz=None)
    return replace(prediction, bound=bound, solution=replace(prediction.solution, contraction=contraction))


def test_a_map_that_expands_is_called_so():
    prediction = fitted(max_epochs=3)._fitted.prediction
    expands = certify(with_map(prediction, 1.5, 0.5), None)
    assert expands.spectral_radius == pytest.approx(1.5)
    assert (expands.unique, expands.contracts) == ("no", False)
    assert "may not be unique: label updates are solved from zero" in str(expands)
    stretched = certify(with_map(prediction, 0.5, 1.2), None)
    assert (stretched.unique, stretched.contracts, stretched.error) == ("unknown", False, float("inf"))
    assert "unknown: label updates are solved from zero" in str(stretched)


@pytest.mark.parametrize("method", ["label_input", "label_reuse", "backbone"])
def test_no_equilibrium_no_certificate(method):
    found = fitted(method, max_epochs=2).diagnose()
    assert not found.solved
    assert not found.contracts
    assert "no equilibrium to certify" in str(found)


def with_step(prediction, step):
    bound = replace(prediction.bound)
    vars(bound).update(step=step, lipschitz=None)
    return replace(prediction, bound=bound)


def test_another_start_that_gives_another_answer_is_told():
    """`softmax(20 z)` keeps the class it starts with, and moves little near it: K̂ of ten steps says nothing."""
    prediction = with_step(
        fitted(max_epochs=3, contraction="free")._fitted.prediction, lambda state: (20 * state).softmax(1)
    )
    starts = try_starts(prediction)
    assert starts.opposite > 0.6
    assert starts.random > 0.3
    found = certify(prediction, starts)
    assert (found.unique, found.contracts) == ("no", False)
    assert f"{starts.opposite:.2%} from other classes than the predicted ones" in str(found)
    with pytest.warns(ConvergenceWarning, match=r"^\d\d\.\d\d% of the predictions would be others") as told:
        warn_if_start_matters(prediction)
    assert len(told) == 1
    assert "\n" not in str(told[0].message)


def test_plain_iteration_is_measured_over_a_hundred_steps():
    """A map whose K̂ passes 1 after the twentieth step only."""
    prediction, count = fitted(max_epochs=3, contraction="free")._fitted.prediction, 0

    def step(state):
        nonlocal count
        count += 1
        return state * (0.9 if count < 20 else 1.2) + 0.01 * count

    assert try_starts(with_step(prediction, step)).contraction > 1
    assert prediction.solution.contraction < 1


def test_a_fit_says_in_one_line_that_the_start_matters(monkeypatch):
    monkeypatch.setattr(certificate, "try_starts", lambda prediction: Starts(1.25, 0.02, 0.034))
    with pytest.warns(ConvergenceWarning, match=r"3\.40% of the predictions would be others.*K̂ 1\.25"):
        fitted(max_epochs=2)
    monkeypatch.setattr(certificate, "try_starts", lambda prediction: Starts(1.25, 0.0, 0.0))
    fitted(max_epochs=2)


@pytest.mark.parametrize(
    ("method", "options"),
    [("lpa", {}), ("reslpa", {}), ("ignn", {}), ("label_reuse", {}), ("backbone", {}), ("lignn", ONE_HOP)],
)
def test_other_starts_are_tried_only_where_they_can_tell_something(method, options, monkeypatch):
    prediction = fitted(method, max_epochs=2, **options)._fitted.prediction
    monkeypatch.setattr(BoundLabelInputted, "solve", None)
    assert try_starts(prediction) is None


def test_other_starts_of_several_classes_a_node():
    graph, split = random_graph(n=30, multilabel=True), half_split(30)
    starts = fitted(graph=graph, split=split, max_epochs=3, backbone="gat").diagnose().starts
    assert (starts.random, starts.opposite) == (0, 0)
    assert 0 < starts.contraction < 1
