"""LaE: the evaluation's equilibrium is the next epoch's state, where that is right; features may be hidden."""

import pytest
import scipy.sparse as sp
import torch

from lignn.equilibrium.solvers import Picard
from lignn.methods import LIGNN, LaE, Problem
from lignn.training import Checkpoints, Training, Watch, scorer, train
from tests.methods.small import directional_error, gcn, gradients, small_problem, solves, taped


def trained(inductive, epochs=4, path=None, progress=None):
    graph, split, problem = small_problem(1)
    seen = Problem.of(graph.without_edges_at(split.held_out), split.train, torch.float64) if inductive else problem
    method = LaE(gcn(graph), 0.4)
    draw = torch.Generator().manual_seed(0)
    settings = Training(max_epochs=epochs)
    hooks = [] if path is None else [Checkpoints(path, seconds=0)]
    hooks += [] if progress is None else [Watch(progress)]
    history = train(method, seen, problem, scorer(graph, split), draw, settings, hooks=hooks)
    return method, history


def test_transductively_only_the_first_epoch_solves():
    _, history = trained(inductive=False)
    steps = [record["forward"]["steps"] for record in history.epochs]
    assert steps[0] > 3
    assert steps[1:] == [0, 0, 0]
    assert all(record["evaluation"]["steps"] > 3 for record in history.epochs)


def test_inductively_every_epoch_solves_on_the_training_graph():
    _, history = trained(inductive=True)
    assert all(record["forward"]["steps"] > 3 for record in history.epochs)


def test_the_state_is_the_equilibrium_of_the_present_weights():
    graph, _, problem = small_problem(1)
    method = LaE(gcn(graph), 0.4, tol=1e-12)
    prediction, carry = method.evaluate(problem, taped(method, problem))  # the first epoch, without its update
    solution = taped(method, problem, carry=carry).solution
    assert solution.steps == 0
    assert torch.equal(solution.value, prediction.solution.value)
    reused, slopes = gradients(method, problem, carry=carry)
    fresh, expected = gradients(LaE(method.step.backbone, 0.4, tol=1e-12), problem)
    assert reused == pytest.approx(fresh, rel=1e-10)
    for name, slope in slopes.items():
        torch.testing.assert_close(slope, expected[name], rtol=0, atol=1e-9)


def test_a_state_of_another_problem_is_not_reused():
    graph, split, problem = small_problem(1)
    method = LaE(gcn(graph), 0.4)
    other = Problem.of(graph, split.train | split.val, torch.float64)
    _, carry = method.evaluate(other, taped(method, other))
    assert taped(method, problem, carry=carry).solution.steps > 3


class KilledError(Exception):
    pass


@pytest.mark.parametrize("inductive", [False, True])
def test_a_killed_run_resumes_to_the_same_end(tmp_path, inductive):
    """To the bit: the state that the next epoch reuses is part of the checkpoint."""
    whole = trained(inductive, 6)[1].epochs

    def kill(history):
        if len(history.epochs) == 4:
            raise KilledError

    path = tmp_path / "run.safetensors"
    with pytest.raises(KilledError):
        trained(inductive, 6, path, kill)
    resumed = trained(inductive, 6, path)[1].epochs
    assert [{**record, "seconds": 0} for record in resumed] == [{**record, "seconds": 0} for record in whole]


def test_exact_gradient():
    graph, _, problem = small_problem(2)
    assert directional_error(LaE(gcn(graph), 0.4, tol=1e-13), problem) < 1e-6


def hidden_at(problem, seed):
    return problem.labels.hide(0.1, torch.Generator().manual_seed(seed)).hidden


def test_the_adjoint_stops_as_soon_as_it_expands(monkeypatch):
    """A chain whose nodes read their predecessor, 6 times as strong: each step of the adjoint doubles it.

    All states are uniform, softmax has the slope 1/3 there, and the forward solve ends after one step a node.
    """
    graph, _, _ = small_problem()
    problem = Problem.of(graph, torch.arange(30) == 29, torch.float64)
    method = LaE(gcn(graph), 0.1)
    first = torch.zeros(1, 3, dtype=torch.float64)
    monkeypatch.setattr(
        method.step.backbone,
        "step",
        lambda features, state, adj: 6 * torch.cat([first, state[:-1]]) + 0 * features.sum(),
    )
    seed = next(s for s in range(99) if not hidden_at(problem, s)[28])
    account = solves(taped(method, problem, seed))
    assert account["forward"]["status"] == "converged"
    assert account["backward"]["status"] == "diverging"
    assert account["backward"]["contraction"] == pytest.approx(2)
    assert account["backward"]["steps"] == 2


def test_settings_of_the_authors():
    graph, _, _ = small_problem()
    method = LaE(gcn(graph))
    assert method.solver == Picard(tol=3e-6, max_steps=300, norm="max")
    assert method.gradient.form == "exact"
    assert method.gradient.solver == Picard(tol=3e-6, max_steps=300, norm="max", growth=1.0)


@pytest.mark.parametrize("make", [LaE, LIGNN])
def test_feature_mask_acts_on_the_taped_step_alone(make):
    graph, _, problem = small_problem(3)
    solver = {} if make is LaE else {"solver": Picard(tol=3e-6, max_steps=300, norm="max")}
    plain, masked = (make(gcn(graph), 0.4, feature_mask=share, **solver) for share in (0.0, 0.6))
    first, second = taped(plain, problem), taped(masked, problem)
    assert first.loss.item() != second.loss.item()
    assert torch.equal(first.solution.value, second.solution.value)


def test_the_loss_with_a_feature_mask_written_out():
    graph, _, problem = small_problem(3)
    method = LaE(gcn(graph), 0.4, tol=1e-12, feature_mask=0.6)
    epoch = taped(method, problem, seed=7)
    draw = torch.Generator().manual_seed(7)
    hidden = problem.labels.hide(0.4, draw)
    torch.randint(2**31, (1,), generator=draw)
    x = graph.x * (torch.rand(30, generator=draw) >= 0.6)[:, None] / 0.4
    backbone, adj = method.step.backbone, problem.adjacency()
    state = epoch.solution.value.clone()
    state[problem.labels.mask] = problem.labels.onehot[problem.labels.mask]
    state[hidden.hidden] = 0
    out = backbone.step(backbone.features(x, adj), state / 0.6, adj).softmax(1)
    nodes = hidden.supervised
    expected = torch.nn.functional.nll_loss(out[nodes].log(), graph.y[nodes]).item()
    assert epoch.loss.item() == pytest.approx(expected, rel=1e-10)


def test_exact_gradient_with_a_feature_mask():
    graph, _, problem = small_problem(4)
    backbone = gcn(graph)
    for conv in backbone.convs:  # else a node without any input would stand on the kink of ReLU
        torch.nn.init.constant_(conv.bias, 0.1)
    assert directional_error(LaE(backbone, 0.4, tol=1e-13, feature_mask=0.5), problem) < 1e-6


def test_feature_mask_of_sparse_and_dense_features_agrees():
    graph, split, _ = small_problem(5)
    x = torch.where(graph.x > 0.3, graph.x, 0)
    results = []
    for features in (x, sp.csr_array(x.numpy())):
        problem = Problem.of(graph.replace(x=features), split.train, torch.float64)
        results.append(gradients(LaE(gcn(graph), 0.4, feature_mask=0.5), problem))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-12)
    for name, slope in results[0][1].items():
        torch.testing.assert_close(slope, results[1][1][name], rtol=0, atol=1e-12)
