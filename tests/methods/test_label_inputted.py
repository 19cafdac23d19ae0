"""LI-GNN, Label Input and Label Reuse: states against plain loops, gradients against finite differences."""

from dataclasses import replace

import pytest
import torch
from torch.nn import BatchNorm1d

from lignn.backbones import MLP
from lignn.equilibrium import Implicit, LastStep, Status, Unrolled, wellposed
from lignn.equilibrium.solvers import Anderson, Broyden, Picard
from lignn.errors import ConfigError
from lignn.methods import LIGNN, LabelInput, LabelReuse, LaE, Problem
from tests.methods.small import TIGHT, directional_error, gcn, gradients, small_problem, solves, taped
from tests.problems import half_split, random_graph

EXACT = Implicit("exact", TIGHT)
PAPER = Implicit("paper", TIGHT)


def plain_step(backbone, problem, state):
    return torch.softmax(
        backbone.step(backbone.features(problem.x, problem.adjacency()), state, problem.adjacency()), 1
    )


@pytest.mark.parametrize("forward_mask", [False, True])
def test_forward_pass_is_algorithm_1(forward_mask):
    """Lines 1 to 11 written out."""
    graph, _, problem = small_problem()
    backbone = gcn(graph)
    method = LIGNN(backbone, 0.4, forward_mask, Picard(tol=0, max_steps=7), PAPER)
    loss, _ = gradients(method, problem, seed=5)

    known = problem.labels
    hidden = known.hide(0.4, torch.Generator().manual_seed(5))
    state = torch.zeros(30, 3, dtype=torch.float64)

    def masked(state):
        clamped = state.clone()
        clamped[known.mask] = known.onehot[known.mask]
        clamped[hidden.hidden] = 0
        return clamped / (1 - 0.4)

    for _ in range(7):
        state = plain_step(backbone, problem, masked(state) if forward_mask else known.clamp(state))
    out = plain_step(backbone, problem, masked(state))
    nodes = hidden.hidden & known.mask
    truth = graph.y[nodes]
    assert loss == pytest.approx(torch.nn.functional.nll_loss(out[nodes].log(), truth).item(), rel=1e-12)


@pytest.mark.parametrize("forward_mask", [False, True])
def test_paper_gradient_against_the_dense_adjoint(forward_mask):
    """`g = (I - P Jᵀ)^-1 b`, then one vector-Jacobian product for θ."""
    graph, _, problem = small_problem(1)
    backbone = gcn(graph)
    method = LIGNN(backbone, 0.4, forward_mask, TIGHT, PAPER)
    _, slopes = gradients(method, problem, seed=2)

    hidden = problem.labels.hide(0.4, torch.Generator().manual_seed(2))
    masked = hidden.mask(taped(method, problem, seed=2).solution.value, constant_scale=False).detach()
    jacobian = torch.autograd.functional.jacobian(lambda s: plain_step(backbone, problem, s), masked).reshape(90, 90)
    carries = (~hidden.hidden & ~problem.labels.mask).double()[:, None].expand(30, 3).flatten()
    out = plain_step(backbone, problem, masked)
    b = torch.autograd.grad(problem.labels.loss(out, hidden.supervised), out, retain_graph=True)[0].flatten()
    g = torch.linalg.solve(torch.eye(90, dtype=torch.float64) - carries[:, None] * jacobian.T, b)
    expected = torch.autograd.grad(out, list(backbone.parameters()), g.view(30, 3))
    for slope, wanted in zip(slopes.values(), expected, strict=True):
        torch.testing.assert_close(slope, wanted, rtol=1e-8, atol=1e-10)


def test_diagonal_softmax_jacobian_against_the_dense_adjoint():
    """The loss exactly through the taped step, `h = S b`; what loops, `u = P Lᵀ (h + D u)`, with `D = p (1-p)`."""
    graph, _, problem = small_problem(1)
    backbone = gcn(graph)
    method = LIGNN(backbone, 0.4, False, TIGHT, PAPER, jacobian="diagonal")
    _, slopes = gradients(method, problem, seed=2)

    hidden = problem.labels.hide(0.4, torch.Generator().manual_seed(2))
    masked = hidden.mask(taped(method, problem, seed=2).solution.value, constant_scale=False).detach()
    adj = problem.adjacency()
    features = backbone.features(problem.x, adj)
    logits = backbone.step(features, masked, adj)
    p = logits.softmax(1).detach()
    h = torch.zeros(30, 3, dtype=torch.float64)
    nodes = hidden.supervised
    h[nodes] = (p - problem.labels.onehot)[nodes].detach() / nodes.sum()
    linear = torch.autograd.functional.jacobian(lambda s: backbone.step(features, s, adj), masked).reshape(90, 90)
    D = (p * (1 - p)).flatten()
    carries = (~hidden.hidden & ~problem.labels.mask).double()[:, None].expand(30, 3).flatten()
    loop = carries[:, None] * linear.T
    u = torch.linalg.solve(torch.eye(90, dtype=torch.float64) - loop * D, loop @ h.flatten())
    expected = torch.autograd.grad(logits, list(backbone.parameters()), h + (D * u).view(30, 3))
    for found, wanted in zip(slopes.values(), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-8, atol=1e-10)


def test_the_diagonal_is_in_the_adjoint_only():
    """The loss, predictions and their derivatives are the same, and for several labels all is."""
    graph, _, problem = small_problem(1)
    exact, diagonal = (LIGNN(gcn(graph), 0.4, False, TIGHT, PAPER, jacobian=kind) for kind in ("exact", "diagonal"))
    assert gradients(exact, problem)[0] == gradients(diagonal, problem)[0]
    state = torch.rand(30, 3, dtype=torch.float64, requires_grad=True)
    slopes = [torch.autograd.grad(m.on(problem).map(state)[:, 0].sum(), state)[0] for m in (exact, diagonal)]
    assert torch.equal(*slopes)

    graph, _, problem = small_problem(1, multilabel=True)
    exact, diagonal = (LIGNN(gcn(graph), 0.4, False, TIGHT, PAPER, jacobian=kind) for kind in ("exact", "diagonal"))
    for slope, wanted in zip(*(gradients(m, problem)[1].values() for m in (diagonal, exact)), strict=True):
        torch.testing.assert_close(slope, wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("gradient", [EXACT, LastStep()])
def test_the_diagonal_is_for_the_papers_gradient(gradient):
    graph, _, _ = small_problem()
    with pytest.raises(ConfigError, match="jacobian 'diagonal' is for the paper's gradient only"):
        LIGNN(gcn(graph), gradient=gradient, jacobian="diagonal")


@pytest.mark.parametrize("forward_mask", [False, True])
@pytest.mark.parametrize("multilabel", [False, True])
def test_exact_gradient_against_finite_differences(forward_mask, multilabel):
    graph, _, problem = small_problem(3, multilabel=multilabel)
    method = LIGNN(gcn(graph), 0.4, forward_mask, TIGHT, EXACT)
    assert directional_error(method, problem) < 1e-6


@pytest.mark.parametrize("solver", [Anderson(tol=1e-13), Broyden(tol=1e-13)])
def test_exact_gradient_with_other_solvers(solver):
    graph, _, problem = small_problem(3)
    assert directional_error(LIGNN(gcn(graph), 0.4, False, solver, Implicit("exact", solver)), problem) < 1e-6


def test_exact_gradient_equals_the_unrolled_one():
    graph, _, problem = small_problem(4)
    backbone = gcn(graph)
    _, exact = gradients(LIGNN(backbone, 0.4, False, TIGHT, EXACT), problem)
    _, unrolled = gradients(LIGNN(backbone, 0.4, False, TIGHT, Unrolled(200)), problem)
    for name, slope in exact.items():
        torch.testing.assert_close(slope, unrolled[name], rtol=0, atol=1e-9)


def test_label_input_gradient_against_finite_differences():
    graph, _, problem = small_problem(5)
    assert directional_error(LabelInput(gcn(graph), 0.4), problem) < 1e-6


def test_how_far_each_gradient_is_from_the_exact_one():
    """The paper's form lies between the last step and the exact gradient, on average over problems."""
    errors = {}
    for name, gradient in {"last step": LastStep(), "paper": PAPER, "exact": EXACT}.items():
        found = []
        for seed in range(6):
            graph, _, problem = small_problem(seed)
            found.append(directional_error(LIGNN(gcn(graph), 0.4, False, TIGHT, gradient), problem))
        errors[name] = sum(found) / len(found)
    assert errors["exact"] < 1e-6 < errors["paper"] < errors["last step"]


def test_label_reuse_is_k_passes_from_the_given_labels():
    graph, _, problem = small_problem(6)
    backbone = gcn(graph)
    loss, _ = gradients(LabelReuse(backbone, 0.4, iterations=3), problem, seed=8)
    hidden = problem.labels.hide(0.4, torch.Generator().manual_seed(8))
    state = torch.zeros(30, 3, dtype=torch.float64)
    for _ in range(4):
        state = plain_step(backbone, problem, hidden.given.clamp(state))
    assert loss == pytest.approx(problem.labels.loss(state, hidden.supervised).item(), rel=1e-12)


def test_corrected_label_reuse_is_lignn_with_k_steps_and_the_last_step_gradient():
    graph, _, problem = small_problem(6)
    backbone = gcn(graph)
    reuse = gradients(LabelReuse(backbone, 0.4, iterations=3, corrected=True), problem)
    lignn = gradients(LIGNN(backbone, 0.4, False, Picard(tol=0, max_steps=3), LastStep()), problem)
    assert reuse[0] == lignn[0]
    assert all(torch.equal(reuse[1][name], lignn[1][name]) for name in reuse[1])


def test_prediction_is_the_unmasked_equilibrium():
    graph, _, problem = small_problem(7)
    backbone = gcn(graph)
    prediction = LIGNN(backbone, 0.4, True, TIGHT).eval().predict(problem)
    value = prediction.probabilities
    torch.testing.assert_close(value, plain_step(backbone, problem, problem.labels.clamp(value)), rtol=0, atol=1e-10)
    assert prediction.solution.status is Status.CONVERGED
    assert prediction.evidence.all()


def test_label_input_predicts_in_one_pass_with_all_labels():
    graph, _, problem = small_problem(7)
    backbone = gcn(graph)
    expected = plain_step(backbone, problem, problem.labels.onehot)
    torch.testing.assert_close(LabelInput(backbone).eval().predict(problem).probabilities, expected)


def test_adaptive_mask_rate_follows_the_backward_contraction():
    graph, _, problem = small_problem()
    method = LIGNN(gcn(graph), mask_rate="adaptive", max_steps=100)
    epoch = taped(method, problem)
    assert epoch.mask_rate == 0.5
    contraction = epoch.solution.adjoints[-1].contraction
    _, carry = method.evaluate(problem, epoch)
    assert carry.mask_rate == min(max(contraction - 0.1, 0.1), 0.9)
    assert taped(method, problem, carry=carry).mask_rate == carry.mask_rate
    assert (method.solver.growth, method.gradient.solver.growth) == (None, 1.1)


def test_settings_of_the_paper():
    graph, _, _ = small_problem()
    method = LIGNN(gcn(graph), 0.25)
    assert method.solver == Picard(tol=1e-4 / 3, max_steps=10)
    assert method.gradient == Implicit("paper", Picard(tol=1e-5 * 2 / 9, max_steps=10))


def test_warm_start_begins_with_the_last_state():
    graph, _, problem = small_problem()
    method = LIGNN(gcn(graph), 0.4, False, Picard(tol=1e-8, max_steps=500), PAPER, warm_start=True).eval()
    epoch = taped(method, problem)
    cold, carry = method.evaluate(problem, epoch)
    warm, _ = method.evaluate(problem, replace(epoch, carry=carry))
    assert warm.solution.steps <= 2 < cold.solution.steps
    torch.testing.assert_close(warm.probabilities, cold.probabilities, rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", [LIGNN, LaE])
def test_after_training_a_prediction_does_not_depend_on_the_ones_before(kind):
    graph, _, problem = small_problem()
    method = kind(gcn(graph), 0.4, warm_start=True) if kind is LIGNN else kind(gcn(graph), 0.4)
    method.eval().evaluate(problem, taped(method, problem))
    first, second = method.predict(problem), method.predict(problem)
    assert first.solution.steps == second.solution.steps > 2
    assert torch.equal(first.probabilities, second.probabilities)


def test_dropout_is_one_function_for_the_whole_epoch():
    """With masks frozen over solve, taped step and adjoint, the exact gradient is that of the loss with these masks."""
    graph, _, problem = small_problem(8)
    method = LIGNN(gcn(graph, dropout=0.5), 0.4, False, TIGHT, EXACT).train()
    assert directional_error(method, problem) < 1e-6
    assert taped(method, problem).solution.status is Status.CONVERGED
    first, second = (gradients(method, problem, seed)[0] for seed in (0, 1))
    assert first != second
    method.eval()
    assert torch.equal(method.predict(problem).probabilities, method.predict(problem).probabilities)


def test_a_map_without_equilibrium_is_recorded_not_raised(monkeypatch):
    """Each class hands over to the next, for ever."""
    tilt = torch.arange(3.0, dtype=torch.float64)
    graph, _, problem = small_problem()
    backbone = gcn(graph)
    monkeypatch.setattr(
        backbone, "step", lambda features, state, adj: 20 * state.roll(1, 1) + tilt + 0 * features.sum()
    )
    method = LIGNN(backbone, 0.4, False, Picard(tol=1e-12, max_steps=20))
    account = solves(taped(method, problem))
    assert account["forward"]["status"] == "budget used up"
    assert account["forward"]["contraction"] >= 1
    assert account["backward"]["status"] == "converged"


@pytest.mark.parametrize("scale", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"directed": True}, {"multilabel": True}])
def test_spectral_radius_at_the_equilibrium_against_dense_eigenvalues(options, scale):
    """30 nodes × 3 classes: Arnoldi's method on vector-Jacobian products, not the dense path for small states."""
    graph, _, problem = small_problem(9, **options)
    method = LIGNN(gcn(graph), 0.4, False, TIGHT).eval()
    with torch.no_grad():
        for weight in method.parameters():
            weight *= scale
    solution = method.on(problem).solve().solution
    fn = method.on(problem).map
    dense = torch.autograd.functional.jacobian(fn, solution.value).reshape(90, 90)
    expected = torch.linalg.eigvals(dense).abs().max().item()
    assert wellposed.spectral_radius(fn, solution.value, tol=1e-8) == pytest.approx(expected, rel=1e-5)
    assert expected < 1
    assert solution.ok


def test_the_spectral_bound_of_theorem_1_holds_for_a_one_hop_backbone():
    """`‖W_z‖₂ ‖Ã‖₂ / 2` bounds the measured K̂ of the forward solve."""
    graph, _, problem = small_problem(9)
    backbone = gcn(graph, num_layers=1)
    method = LIGNN(backbone, 0.4, False, TIGHT).eval()
    *_, spectral = wellposed.theorem1(backbone.convs[0].lin.weight[:, :3].detach(), 30)
    assert spectral.holds
    assert 0 < method.on(problem).solve().solution.contraction <= spectral.value / spectral.limit


def test_a_warm_start_of_another_size_starts_cold():
    graph, _, problem = small_problem()
    method = LIGNN(gcn(graph), 0.4, False, TIGHT, warm_start=True).eval()
    epoch = taped(method, problem)
    _, carry = method.evaluate(problem, epoch)
    fewer = Problem.of(random_graph(n=20, seed=1), half_split(20).train, torch.float64)
    prediction, _ = method.evaluate(fewer, replace(epoch, carry=carry))
    assert torch.equal(prediction.probabilities, method.predict(fewer).probabilities)


def test_an_adaptive_mask_rate_needs_an_adjoint_to_follow():
    graph, _, _ = small_problem()
    with pytest.raises(ConfigError, match="needs an implicit gradient, because it follows the adjoint solve"):
        LIGNN(gcn(graph), "adaptive", gradient=LastStep())


@pytest.mark.parametrize("rate", [0, 1.0, 1, "adaptative", None, -0.1])
def test_impossible_mask_rates(rate):
    graph, _, _ = small_problem()
    with pytest.raises(ConfigError, match="mask_rate"):
        LIGNN(gcn(graph), rate)


@pytest.mark.parametrize("jacobian", ["exact", "diagonal"])
def test_batch_normalisation_counts_one_pass_an_epoch(jacobian):
    graph, _, problem = small_problem(1)
    backbone = MLP(graph.num_features, graph.num_classes, graph.num_classes, batch_norm=True).double()
    gradients(LIGNN(backbone, jacobian=jacobian), problem)
    assert {part.num_batches_tracked.item() for part in backbone.modules() if isinstance(part, BatchNorm1d)} == {1}
