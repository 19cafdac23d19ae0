"""Compiled solves against plain ones: the same states, statuses, residuals, gradients and weights after an epoch."""

import copy

import pytest
import torch

from lignn.backbones import GCN, Dropout
from lignn.equilibrium import Implicit, solve
from lignn.equilibrium.solvers import Anderson, Broyden, Picard
from lignn.methods import LIGNN, Carry, LabelInput, LabelReuse, LaE, Problem, steps
from lignn.training import Training, train
from tests.methods.small import gcn, small_problem
from tests.problems import random_graph

ANDERSON = Anderson(tol=1e-10, max_steps=40)
PICARD = Picard(tol=1e-8, max_steps=40)
METHODS = {
    "paper": lambda net: LIGNN(net, 0.4),
    "fixed steps": lambda net: LIGNN(net, 0.4, solver=Picard(tol=0, max_steps=7)),
    "practical": lambda net: LIGNN(
        net, 0.5, max_steps=50, solver="anderson", gradient="exact", warm_start=True, feature_mask=0.5, tol=1e-4,
        adjoint="relative",
    ),
    "forward mask": lambda net: LIGNN(net, 0.3, True, ANDERSON, Implicit("exact", ANDERSON)),
    "diagonal": lambda net: LIGNN(net, 0.4, solver=ANDERSON, gradient=Implicit("paper", PICARD), jacobian="diagonal"),
    "adaptive": lambda net: LIGNN(net, "adaptive"),
    "lae": lambda net: LaE(net, 0.4),
    "label input": lambda net: LabelInput(net, 0.4),
    "label reuse": lambda net: LabelReuse(net, 0.4, iterations=3),
    "label reuse, corrected": lambda net: LabelReuse(net, 0.4, iterations=3, corrected=True),
}  # fmt: skip


@pytest.fixture
def plain(monkeypatch):
    """Return a function that switches the fused steps off."""
    return lambda: monkeypatch.setattr(steps, "step_of", lambda *_: None)


def two_epochs(name, dropout=0.0, **options):
    """Train for two epochs; return losses and accounts of all solves, the weights, and the last prediction."""
    graph, _, problem = small_problem(4, **options)
    method = METHODS[name](gcn(graph, dropout=dropout))
    history = train(method, problem, problem, None, torch.Generator().manual_seed(3), Training(max_epochs=2))
    return history.epochs, dict(method.named_parameters()), history.prediction.probabilities


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("options", [{}, {"dropout": 0.5, "directed": True}, {"multilabel": True}])
def test_epochs_agree_with_the_plain_ones(name, options, plain):
    compiled = two_epochs(name, **options)
    plain()
    reference = two_epochs(name, **options)
    for found, wanted in zip(compiled[0], reference[0], strict=True):
        assert found["loss"] == pytest.approx(wanted["loss"], rel=1e-10)
        for solved in ("forward", "backward", "evaluation"):
            one, other = found[solved], wanted[solved]
            assert (one is None) == (other is None)
            if one is not None:
                assert (one["status"], one["steps"]) == (other["status"], other["steps"])
                assert (one["residual"] or 0.0) == pytest.approx(other["residual"] or 0.0, rel=1e-5, abs=1e-13)
                assert one["contraction"] == pytest.approx(other["contraction"], rel=1e-6, abs=1e-10)
    for weight, wanted in zip(compiled[1].values(), reference[1].values(), strict=True):
        torch.testing.assert_close(weight, wanted, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(compiled[2], reference[2], rtol=1e-9, atol=1e-10)


def bound_map(scale=1.0, **options):
    graph, _, problem = small_problem(2, **options)
    method = LIGNN(gcn(graph), 0.4).eval()
    with torch.no_grad():
        for weight in method.parameters():
            weight *= scale
    return method.on(problem).map, torch.zeros(30, 3, dtype=torch.float64)


SOLVERS = [
    Picard(tol=0, max_steps=9),
    Picard(tol=1e-9, max_steps=200),
    Picard(tol=1e-9, max_steps=3),
    Picard(tol=1e-30, max_steps=300),
    Picard(tol=1e-9, max_steps=50, norm="max"),
    Picard(tol=1e-9, max_steps=50, norm="relative", growth=1.0),
    Picard(tol=0, max_steps=50, growth=0.2),
    Anderson(tol=1e-10, max_steps=50),
    Anderson(tol=1e-10, max_steps=50, memory=1, norm="relative"),
    Anderson(tol=1e-10, max_steps=50, memory=10, norm="max", growth=0.9),
    Anderson(tol=1e-10, max_steps=4),
]


@pytest.mark.parametrize("scale", [1.0, 4.0, 30.0])
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_a_solve_ends_as_the_plain_one(solver, scale):
    fn, start = bound_map(scale)
    assert fn.iterate(start, solver) is not None
    found, wanted = solve(fn, start, solver, throw=False), solve(lambda z: fn(z), start, solver, throw=False)
    if isinstance(solver, Anderson) and scale == 30:  # an expanding map also expands rounding
        assert found.residuals[:4] == pytest.approx(wanted.residuals[:4], rel=1e-6)
        return
    assert found.status == wanted.status
    torch.testing.assert_close(found.value, wanted.value, rtol=1e-9, atol=1e-10)
    if wanted.residual < 1e-14:  # the last steps are rounding
        return
    assert (found.steps, len(found.residuals)) == (wanted.steps, len(wanted.residuals))
    assert found.residuals == pytest.approx(wanted.residuals, rel=1e-3, abs=1e-12)
    assert found.contraction == pytest.approx(wanted.contraction, rel=1e-4)


def test_permuted_nodes_give_permuted_predictions():
    graph, split, problem = small_problem(5)
    order = torch.randperm(30, generator=torch.Generator().manual_seed(0))
    place = order.argsort()
    moved = random_graph(n=30, seed=5).replace(
        edge_index=place[graph.edge_index], x=graph.x[order], y=graph.y[order], edge_weight=graph.edge_weight
    )
    method = LIGNN(gcn(graph), 0.4, solver=ANDERSON).eval()
    here = method.on(problem).solve().probabilities
    there = method.on(Problem.of(moved, split.train[order], torch.float64)).solve().probabilities
    torch.testing.assert_close(there, here[order], rtol=1e-11, atol=1e-12)


class OtherGCN(GCN):
    """A network that may compute anything."""


def watched(net):
    net.convs[0].register_forward_hook(lambda *_: None)
    return net


def own(net):
    other = copy.deepcopy(net)
    other.__class__ = OtherGCN
    return other


@pytest.mark.parametrize("change", [watched, own])
def test_networks_that_are_exchanged_or_watched_take_the_plain_way(change):
    graph, _, problem = small_problem()
    assert LIGNN(gcn(graph), 0.4).eval().on(problem).step.fused is not None
    assert LIGNN(change(gcn(graph)), 0.4).eval().on(problem).step.fused is None


def test_parts_that_only_compute_features_do_not_matter():
    graph, _, problem = small_problem()
    net = gcn(graph)
    net.input_dropout = Dropout(0.5)
    assert LIGNN(net, 0.4).eval().on(problem).step.fused is not None


def test_depth_classes_and_loose_dropout_take_the_plain_way():
    graph, _, problem = small_problem()
    assert LIGNN(gcn(graph, num_layers=3), 0.4).eval().on(problem).step.fused is None
    assert LIGNN(gcn(graph, dropout=0.5), 0.4).train().on(problem).step.fused is None
    many = random_graph(n=30, num_classes=17)
    known = Problem.of(many, torch.ones(30, dtype=torch.bool), torch.float64)
    assert LIGNN(gcn(many), 0.4).eval().on(known).step.fused is None


@pytest.mark.parametrize(
    "solver",
    [Broyden(), Picard(norm=lambda change: change.length), Picard(max_steps=0)],
    ids=["broyden", "own norm", "no steps"],
)
def test_other_solvers_and_norms_take_the_plain_way(solver):
    fn, start = bound_map()
    assert fn.iterate(start, solver) is None
    assert solve(fn, start, solver, throw=False).steps == solve(lambda z: fn(z), start, solver, throw=False).steps


def test_warm_starts_continue_from_the_carried_state(plain):
    def third_solve():
        graph, _, problem = small_problem(6)
        method, carry = METHODS["practical"](gcn(graph)), Carry()
        generator = torch.Generator().manual_seed(0)
        for _ in range(3):
            epoch = method.train().epoch(problem, generator, carry)
            _, carry = method.eval().evaluate(problem, epoch)
        return epoch.solution

    compiled = third_solve()
    plain()
    reference = third_solve()
    assert compiled.steps == reference.steps
    torch.testing.assert_close(compiled.value, reference.value, rtol=1e-9, atol=1e-10)
