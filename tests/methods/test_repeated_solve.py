"""A training solve that would repeat the last prediction's is not run again, and nothing else changes."""

import pytest
import torch
from torch.nn import functional

from lignn.backbones import GCN, MLP
from lignn.equilibrium.solvers import Anderson, Picard
from lignn.methods import EIGNN, IGNN, LIGNN, LabelInputted, LabelReuse, LaE, Problem, label_inputted
from lignn.methods.representation import Representation
from lignn.training import Training, scorer, train
from tests.methods.small import gcn, gradients, small_problem, taped

EPOCHS = 6


@pytest.fixture
def solves(monkeypatch):
    """One entry for each training solve that was run."""
    found = []
    solve = label_inputted.solve
    monkeypatch.setattr(label_inputted, "solve", lambda *args, **options: found.append(1) or solve(*args, **options))
    return found


def trained(make, inductive=False):
    graph, split, problem = small_problem(1)
    seen = Problem.of(graph.without_edges_at(split.held_out), split.train, torch.float64) if inductive else problem
    method, draw = make(graph), torch.Generator().manual_seed(0)
    history = train(method, seen, problem, scorer(graph, split), draw, Training(max_epochs=EPOCHS))
    records = [{**record, "seconds": 0} for record in history.epochs]
    return records, method.state_dict()


@pytest.mark.parametrize(
    "options",
    [{}, {"mask_rate": "adaptive"}, {"solver": Anderson(tol=1e-8)}, {"feature_mask": 0.3}, {"jacobian": "diagonal"}],
    ids=str,
)
def test_to_the_bit_what_solving_again_gives(solves, monkeypatch, options):
    records, weights = trained(lambda graph: LIGNN(gcn(graph), **options))
    assert len(solves) == 1
    monkeypatch.setattr(LabelInputted, "_repeats", lambda *_: False)
    expected, expected_weights = trained(lambda graph: LIGNN(gcn(graph), **options))
    assert len(solves) == 1 + EPOCHS
    assert records == expected
    assert all(record["forward"]["steps"] > 1 for record in records)
    assert all(torch.equal(weights[name], value) for name, value in expected_weights.items())


class WithOwnDropout(GCN):
    """Dropout that nobody can see from outside."""

    def step(self, features, state, adj):
        return functional.dropout(super().step(features, state, adj), 0.3, self.training)


@pytest.mark.parametrize(
    "make",
    [
        lambda graph: LIGNN(gcn(graph, dropout=0.5)),
        lambda graph: LIGNN(WithOwnDropout(graph.num_features, graph.num_classes, graph.num_classes).double()),
        lambda graph: LIGNN(MLP(graph.num_features, graph.num_classes, graph.num_classes, batch_norm=True).double()),
        lambda graph: LIGNN(gcn(graph), forward_mask=True),
        lambda graph: LIGNN(gcn(graph), warm_start=True),
        lambda graph: LabelReuse(gcn(graph), iterations=2),
        lambda graph: LabelReuse(gcn(graph), iterations=2, corrected=True),
    ],
    ids=["dropout", "own dropout", "batch norm", "forward mask", "warm start", "label reuse", "corrected label reuse"],
)
def test_every_epoch_solves_where_the_maps_or_starts_differ(solves, make):
    trained(make)
    assert len(solves) == EPOCHS


def test_every_epoch_solves_on_another_graph_than_predictions(solves):
    trained(lambda graph: LIGNN(gcn(graph)), inductive=True)
    assert len(solves) == EPOCHS


def test_changed_weights_are_noticed(solves):
    graph, _, problem = small_problem(1)
    method = LIGNN(gcn(graph), solver=Picard(tol=1e-10, max_steps=300))
    _, carry = method.evaluate(problem, taped(method, problem))
    gradients(method, problem, carry=carry)
    assert len(solves) == 1
    for weight in method.parameters():
        weight.data.mul_(0.9)
    loss, _ = gradients(method, problem, carry=carry)
    assert len(solves) == 2
    assert loss == gradients(LIGNN(method.step.backbone, solver=method.solver), problem)[0]


@pytest.mark.parametrize("make", [LaE, LIGNN, lambda backbone: LIGNN(backbone, warm_start=True)])
def test_a_method_keeps_nothing_but_its_weights(make):
    graph, _, problem = small_problem(1)
    method = make(gcn(graph))
    before = dict(vars(method))
    method.evaluate(problem, taped(method, problem))
    assert vars(method) == before


@pytest.mark.parametrize("make", [LaE, LabelReuse, lambda backbone: LIGNN(backbone, forward_mask=True)])
def test_predictions_that_training_cannot_repeat_take_no_step_more(make):
    graph, _, problem = small_problem(1)
    method, calls = make(gcn(graph)), []
    epoch = taped(method, problem)
    bound = method.step.bind(problem)
    method.step.bind = lambda _: lambda state: calls.append(1) or bound(state)
    prediction, _ = method.evaluate(problem, epoch)
    assert prediction.solution.steps == len(calls)


def representation(name, graph, **options):
    method = {"ignn": IGNN, "eignn": EIGNN}[name](graph.num_features, graph.num_classes, **options)
    return method.double()


@pytest.fixture
def reused(monkeypatch):
    """For each equilibrium of a representation, whether it was known already."""
    found = []
    known = Representation._known

    def noted(self, carry, problem):
        found.append(solution := known(self, carry, problem))
        return solution

    monkeypatch.setattr(Representation, "_known", noted)
    return found


REPRESENTATIONS = {
    "ignn": lambda graph, seed: representation("ignn", graph, hidden=6, dropout=0.5, generator=seed),
    "eignn iterative": lambda graph, seed: representation("eignn", graph, route="iterative", generator=seed),
    "eignn closed": lambda graph, seed: representation("eignn", graph, route="closed", normalize=True, generator=seed),
}


@pytest.mark.parametrize("make", REPRESENTATIONS.values(), ids=REPRESENTATIONS)
def test_a_representation_is_solved_once_an_epoch(reused, monkeypatch, make):
    def once():
        return trained(lambda graph: make(graph, torch.Generator().manual_seed(3)))

    records, weights = once()
    assert sum(solution is not None for solution in reused) == EPOCHS - 1
    monkeypatch.setattr(Representation, "_known", lambda *_: None)
    expected, expected_weights = once()
    assert records == expected
    assert all(torch.equal(weights[name], value) for name, value in expected_weights.items())


@pytest.mark.parametrize("make", REPRESENTATIONS.values(), ids=REPRESENTATIONS)
def test_a_representation_is_solved_again_on_another_graph_or_with_other_weights(reused, make):
    trained(lambda graph: make(graph, torch.Generator().manual_seed(3)), inductive=True)
    assert not any(reused)
    graph, _, problem = small_problem(1)
    method = make(graph, torch.Generator().manual_seed(3)).eval()
    first, carry = method.evaluate(problem, taped(method, problem))
    for weight in method.parameters():
        weight.data.mul_(0.5)
    gradients(method, problem, carry=carry)
    second = method.predict(problem)
    assert not any(reused)
    assert not torch.equal(first.probabilities, second.probabilities)
