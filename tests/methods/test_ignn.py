"""IGNN*: projection, contraction, and the implicit gradient against the unrolled one."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.sparse import csr_array

from lignn import Graph
from lignn.backbones import frozen_dropout
from lignn.equilibrium import Status
from lignn.equilibrium.solvers import Anderson, Picard
from lignn.errors import ConfigError
from lignn.methods import IGNN, Problem
from lignn.methods.ignn import project_columns
from tests.methods.small import (
    TIGHT,
    dense_operator,
    directional_error,
    gradients,
    patchwork,
    small_problem,
    solves,
    taped,
)


def ignn(graph, scale=1.0, seed=0, **options):
    generator = torch.Generator().manual_seed(seed)
    method = IGNN(graph.num_features, graph.num_classes, hidden=6, generator=generator, **options).double()
    with torch.no_grad():
        method.weight *= scale
    return method


def nearest_in_l1_ball(v, radius):
    """By the optimality condition `Σ max(|v| - t, 0) = radius`, its root found numerically."""
    if np.abs(v).sum() <= radius:
        return v
    t = brentq(lambda t: np.maximum(np.abs(v) - t, 0).sum() - radius, 0, np.abs(v).max(), xtol=1e-15)
    return np.sign(v) * np.maximum(np.abs(v) - t, 0)


@pytest.mark.parametrize("radius", [0.05, 0.9, 2.5, 50.0])
@pytest.mark.parametrize("shape", [(7, 5), (1, 4), (64, 64)])
def test_projection_of_every_column_onto_the_l1_ball(shape, radius):
    weight = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = np.stack([nearest_in_l1_ball(column, radius) for column in weight.T.numpy()], 1)
    torch.testing.assert_close(project_columns(weight, radius), torch.from_numpy(expected), rtol=0, atol=1e-12)


def test_projection_with_ties_and_zeros():
    weight = torch.tensor([[1.0, 0, -2], [1, 0, 2], [1, 0, 0]], dtype=torch.float64)
    expected = torch.tensor([[1 / 3, 0, -0.5], [1 / 3, 0, 0.5], [1 / 3, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(project_columns(weight, 1.0), expected)


@pytest.mark.parametrize("options", [{}, {"directed": True, "weighted": True}])
def test_every_forward_pass_projects_first(options):
    """In training and in prediction; the largest column sum is κ/ρ(Ã) then."""
    graph, _, problem = small_problem(1, **options)
    method = ignn(graph)
    radius = torch.linalg.eigvals(dense_operator(graph)).abs().max().item()
    for forward in (lambda: gradients(method, problem), lambda: method.predict(problem)):
        with torch.no_grad():
            method.weight.mul_(0).add_(1.0)
        forward()
        assert method.weight.abs().sum(0).max().item() == pytest.approx(0.9 / radius, rel=1e-6)


@pytest.mark.parametrize("options", [{}, {"directed": True}, {"weighted": True}])
@pytest.mark.parametrize("scale", [1, 1000])
def test_the_map_contracts_whatever_the_weights(options, scale):
    graph, _, problem = small_problem(2, **options)
    method = ignn(graph, scale)
    prediction = method.predict(problem)
    assert prediction.solution.status is Status.CONVERGED
    A = dense_operator(graph)
    assert torch.linalg.eigvals(torch.kron(A, method.weight.detach().abs().T.contiguous())).abs().max() <= 0.9 + 1e-9


@pytest.mark.parametrize("options", [{}, {"directed": True, "weighted": True}])
def test_the_equilibrium_is_that_of_dense_loops(options):
    graph, known, _ = patchwork(4, **options)
    problem = Problem.of(graph, known, torch.float64)
    method = ignn(graph, solver=TIGHT)
    method.prepare(problem)
    z = method.represent(problem).value.detach()
    A, expected = dense_operator(graph), torch.zeros_like(z)
    for _ in range(400):
        expected = (A @ expected @ method.weight.detach() + A @ graph.x @ method.omega.detach()).relu()
    torch.testing.assert_close(z, expected, rtol=0, atol=1e-11)
    rows = z / z.norm(dim=1, keepdim=True).clamp(min=1e-12)
    logits = rows @ method.output.weight.detach().T
    torch.testing.assert_close(method.predict(problem).probabilities, logits.softmax(1), rtol=0, atol=1e-11)


def unrolled_gradients(method, problem, steps=300):
    """Backward through every step of the iteration."""
    method.zero_grad()
    adj = problem.adjacency()
    offset = adj @ (problem.x @ method.omega)
    z = torch.zeros_like(offset)
    for _ in range(steps):
        z = (adj @ (z @ method.weight) + offset).relu()
    logits = method.output(torch.nn.functional.normalize(z, dim=1))
    problem.labels.loss(problem.labels.activation(logits), problem.labels.mask).backward()
    return {name: weight.grad.clone() for name, weight in method.named_parameters()}


@pytest.mark.parametrize("options", [{}, {"directed": True}, {"multilabel": True}])
@pytest.mark.parametrize("solver", [TIGHT, Anderson(tol=1e-13)], ids=["picard", "anderson"])
def test_implicit_gradient_equals_the_unrolled_one(options, solver):
    graph, _, problem = small_problem(3, **options)
    method = ignn(graph, solver=solver)
    _, implicit = gradients(method, problem)
    for name, slope in unrolled_gradients(method, problem).items():
        torch.testing.assert_close(implicit[name], slope, rtol=0, atol=1e-9)
    assert solves(taped(method, problem))["backward"]["status"] == "converged"


def test_gradient_of_dense_features_equals_the_unrolled_one():
    graph, split, _ = small_problem(3)
    slopes = []
    for pass_back in (lambda method, problem: gradients(method, problem), unrolled_gradients):
        x = graph.x.double().clone().requires_grad_()
        problem = replace(Problem.of(graph, split.train, torch.float64), x=x)
        method = ignn(graph, solver=TIGHT)
        method.prepare(problem)
        pass_back(method, problem)
        slopes.append(x.grad)
    assert slopes[0].abs().max() > 1e-4
    torch.testing.assert_close(slopes[0], slopes[1], rtol=0, atol=1e-9)


def test_gradient_against_finite_differences():
    """With weights well inside the ball, where the projection is the identity."""
    graph, _, problem = small_problem(5)
    assert directional_error(ignn(graph, 0.2, solver=TIGHT), problem) < 1e-6


def test_sparse_and_dense_features_agree():
    graph, split, _ = small_problem(6)
    x = torch.where(graph.x > 0.5, graph.x, 0)
    results = []
    for features in (x, csr_array(x.numpy())):
        method = ignn(graph)
        results.append(gradients(method, Problem.of(graph.replace(x=features), split.train, torch.float64)))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-12)
    for name, slope in results[0][1].items():
        torch.testing.assert_close(slope, results[1][1][name], rtol=0, atol=1e-12)


def test_a_graph_without_edges():
    graph = Graph(torch.empty(2, 0, dtype=torch.int64), x=torch.eye(4), y=torch.tensor([0, 1, 0, 1]))
    problem = Problem.of(graph, torch.tensor([True, True, False, False]))
    prediction = IGNN(4, 2, hidden=3, generator=torch.Generator().manual_seed(0)).predict(problem)
    assert prediction.probabilities.isfinite().all()
    assert prediction.evidence.tolist() == [True, True, False, False]


def test_settings_of_the_paper():
    method = IGNN(5, 3)
    assert method.kappa == 0.9
    assert method.solver == Picard(tol=3e-6, max_steps=300, norm="max")
    assert method.output.bias is None
    assert method.normalize


@pytest.mark.parametrize("kappa", [0, 1, 1.5])
def test_impossible_kappa(kappa):
    with pytest.raises(ConfigError, match="κ must be between 0 and 1"):
        IGNN(5, 3, kappa=kappa)


def test_training_computes_the_output_of_known_nodes_only_with_the_same_dropout():
    graph, _, problem = small_problem(7)
    method, nodes = ignn(graph, dropout=0.5), problem.labels.mask.nonzero().flatten()
    method.prepare(problem)
    with frozen_dropout(method, torch.Generator().manual_seed(0)):
        everywhere, _ = method.probabilities(problem)
        rows, _ = method.probabilities(problem, nodes=nodes)
    torch.testing.assert_close(rows, everywhere[nodes], rtol=0, atol=1e-14)
    loss = method.epoch(problem, torch.Generator().manual_seed(0)).loss
    torch.testing.assert_close(loss, problem.labels.loss(everywhere, problem.labels.mask), rtol=0, atol=1e-14)
