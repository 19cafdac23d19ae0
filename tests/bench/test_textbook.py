"""The textbook version computes what lignn computes: only then are their times comparable."""

import pytest
import torch

from lignn.bench import textbook
from lignn.bench.graphs import power_law
from lignn.bench.sides import MASK_RATE, Lignn, Task, Textbook, backbone
from lignn.bench.textbook import PlainIGNN
from lignn.equilibrium import Implicit
from lignn.equilibrium.solvers import Picard
from lignn.methods import IGNN, LIGNN, Problem


@pytest.fixture(scope="module")
def problem():
    graph = power_law(1000, num_classes=4, num_features=12)
    return Task(graph, graph.splits[0])


@pytest.mark.parametrize("inductive", [True, False])
def test_forward_states_agree(problem, inductive):
    ours, theirs = Lignn(problem, inductive=inductive), Textbook(problem, inductive=inductive)
    for mine, yours in [(ours.training, theirs.training), (ours.inference, theirs.inference)]:
        state = ours.method.on(mine).solve().solution.value
        assert state.std() > 0.01  # not a state on which anything would agree
        torch.testing.assert_close(theirs.model.solve(yours), state, atol=1e-5, rtol=1e-5)
    assert theirs.evaluate() == pytest.approx(ours.score(ours.method.predict(ours.inference)))


def test_gradients_agree(problem):
    ours, theirs = Lignn(problem), Textbook(problem)
    n = problem.graph.num_nodes
    hidden = torch.rand(n, generator=torch.Generator().manual_seed(3)) < MASK_RATE
    loss = ours.method.epoch(ours.training, torch.Generator().manual_seed(3)).loss
    loss.backward()
    assert theirs.model.backward(theirs.training, hidden) == pytest.approx(loss.item(), rel=1e-5)
    compared = dict(theirs.model.net.named_parameters())
    assert len(compared) == 4
    for name, parameter in ours.method.step.backbone.named_parameters():
        size = parameter.grad.abs().max().item()
        torch.testing.assert_close(compared[name].grad, parameter.grad, atol=1e-5 * size, rtol=1e-5)


def test_epochs_agree(problem):
    """Same masks, same updates: the weights stay together."""
    ours, theirs = Lignn(problem), Textbook(problem)
    for _ in range(3):
        theirs.generator.set_state(ours.generator.get_state())
        assert ours.epoch() == pytest.approx(theirs.epoch())
    weights = theirs.model.net.state_dict()
    for name, weight in ours.method.step.backbone.state_dict().items():
        torch.testing.assert_close(weights[name], weight, atol=1e-4, rtol=1e-4)


def test_solves_stop_at_the_same_step(problem):
    """At the paper's tolerances, which end these solves before the budget does."""
    c = problem.graph.num_classes
    forward, backward = 1e-4 / c, 1e-5 * (c - 1) / c**2
    method = LIGNN(backbone(problem.graph, 0), MASK_RATE, max_steps=100)
    ours = Problem.of(problem.training_graph, problem.split.train)
    theirs = Textbook(problem, textbook.Budget(100, forward), textbook.Budget(100, backward))
    epoch = method.epoch(ours, torch.Generator().manual_seed(0))
    epoch.loss.backward()
    calls = []
    theirs.model.net.register_forward_hook(lambda *_: calls.append(None))
    theirs.epoch()
    solves = epoch.solution.steps + 1 + method.on(ours).solve().solution.steps
    assert epoch.solution.steps < 100
    assert len(calls) == pytest.approx(solves, abs=2)  # the evaluation is on another graph, with other weights


def test_hidden_rows_are_redrawn_until_one_supervises(problem):
    theirs = Textbook(problem)
    theirs.model.mask_rate = 0.01
    losses = [theirs.model.epoch(theirs.training, theirs.optimizer, theirs.generator) for _ in range(5)]
    assert all(0 < loss < 10 for loss in losses)


def test_plain_ignn_agrees(problem):
    graph = problem.graph
    mine = problem.problem
    ours = IGNN(graph.num_features, graph.num_classes, 16, generator=torch.Generator().manual_seed(0))
    radius = ours.kappa / mine.adjacency().spectral_radius()
    x = problem.features
    theirs = PlainIGNN(mine.adjacency().torch_sparse, x, graph.num_classes, 16, radius)
    theirs.load_state_dict(ours.state_dict())
    ours.solver = Picard(tol=1e-7, max_steps=1000, norm="max")
    theirs.tol = 1e-7
    loss = ours.epoch(mine, torch.Generator()).loss
    loss.backward()
    logits = theirs()
    known = problem.split.train
    other = torch.nn.functional.cross_entropy(logits[known], graph.y[known])
    other.backward()
    assert other.item() == pytest.approx(loss.item(), rel=1e-5)
    gradients = dict(ours.named_parameters())
    for name, parameter in theirs.named_parameters():
        size = parameter.grad.abs().max().item()
        torch.testing.assert_close(parameter.grad, gradients[name].grad, atol=1e-3 * size, rtol=1e-3)


def test_the_paper_gradient_is_the_one_compared(problem):
    gradient = Lignn(problem).method.gradient
    assert isinstance(gradient, Implicit)
    assert gradient.form == "paper"
