"""LPA and ResLPA: closed forms by a sparse direct solve, λ, and how ResLPA is trained."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import spsolve

from lignn import Graph
from lignn.backbones import GCN, MLP
from lignn.equilibrium import Implicit
from lignn.equilibrium.solvers import Anderson, Broyden, Picard
from lignn.errors import ConfigError
from lignn.methods import LPA, Problem, ResLPA
from lignn.training import Training, scorer, train
from tests.methods.small import dense_operator, directional_error, gradients, patchwork, taped
from tests.problems import half_split, random_graph

SOLVERS = [Anderson(tol=1e-12, max_steps=2000), Picard(tol=1e-13, max_steps=20000), Broyden(tol=1e-12, max_steps=5000)]
EXACT = SOLVERS[0]


def two_components(seed=0, **options):
    """Two components with known labels in both, and their known nodes."""
    one, two = (random_graph(n=n, seed=seed + n, **options) for n in (16, 12))
    edges = torch.cat([one.edge_index, two.edge_index + 16], 1)
    weight = None if one.edge_weight is None else torch.cat([one.edge_weight, two.edge_weight])
    x, y = torch.cat([one.x, two.x]), torch.cat([one.y, two.y])
    known = torch.rand(28, generator=torch.Generator().manual_seed(seed)) < 0.3
    known[[0, 20]] = True
    return Graph(edges, x=x, y=y, edge_weight=weight, num_nodes=28), known


def closed_form(graph, known, lam, offset=None):
    """`(I - A_λ,uu)^-1 (A_λ,ul Y_l + offset_u)` on unlabelled rows, `A_λ Ỹ + offset` on the others."""
    A = sp.csc_array(dense_operator(graph, lam).numpy())
    u, labelled = (~known).numpy().nonzero()[0], known.numpy().nonzero()[0]
    Y = graph.y.double().numpy() if graph.is_multilabel else np.eye(graph.num_classes)[graph.y.numpy()]
    offset = np.zeros(Y.shape) if offset is None else offset.numpy()
    pseudo = Y.copy()
    right = A[u][:, labelled] @ Y[labelled] + offset[u]
    pseudo[u] = spsolve(sp.eye_array(len(u), format="csc") - A[u][:, u], right)
    return torch.from_numpy(A @ pseudo + offset)


KINDS = [{}, {"weighted": True}, {"directed": True}, {"multilabel": True}]


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_lpa_is_its_closed_form(solver, options):
    graph, known = two_components(**options)
    value = LPA(0.8, solver).on(Problem.of(graph, known, torch.float64)).solve().solution.value
    torch.testing.assert_close(value, closed_form(graph, known, 0.8), rtol=0, atol=1e-9)


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize("lam", [0.3, 0.9])
def test_reslpa_is_its_closed_form(lam, options):
    graph, known = two_components(1, **options)
    problem = Problem.of(graph, known, torch.float64)
    network = GCN(5, 3, hidden=8, generator=torch.Generator().manual_seed(2)).double()
    with torch.no_grad():
        offset = lam * network(problem.x, problem.adjacency())
    value = ResLPA(network, lam, solver=EXACT).on(problem).solve().solution.value
    torch.testing.assert_close(value, closed_form(graph, known, lam, offset), rtol=0, atol=1e-9)


def test_where_labels_are_unknown_lambda_changes_only_the_way():
    graph, known = two_components()
    problem = Problem.of(graph, known, torch.float64)
    slow, fast = (LPA(lam, EXACT).on(problem).solve().solution.value for lam in (0.2, 1.0))
    torch.testing.assert_close(slow[~known], fast[~known], rtol=0, atol=1e-9)
    assert (slow - fast)[known].abs().max() > 0.1


def test_lpa_rows_do_not_sum_to_one_but_its_probabilities_do():
    graph, known = two_components()
    method = LPA(0.9)
    problem = Problem.of(graph, known)
    state = method.on(problem).solve().solution.value
    assert (state.sum(1) - 1).abs().max() > 0.05
    expected = state / state.sum(1, keepdim=True)
    torch.testing.assert_close(method.predict(problem).probabilities, expected)


def test_k_propagations():
    graph, known = two_components()
    problem = Problem.of(graph, known, torch.float64)
    A, Y = dense_operator(graph, 0.9), problem.labels.onehot
    expected = A @ Y
    expected = A @ torch.where(known[:, None], Y, expected)
    value = LPA(solver=Picard(tol=0, max_steps=2)).on(problem).solve().solution.value
    torch.testing.assert_close(value, expected, rtol=0, atol=1e-12)


def test_where_no_label_arrives_the_state_is_the_limit_from_zero():
    """`I - A_λ,uu` is singular there: other starts give other equilibria."""
    graph, known, reached = patchwork()
    problem = Problem.of(graph, known, torch.float64)
    method = LPA(0.9, EXACT)
    assert not method.on(problem).solve().solution.value[~reached].any()
    one = torch.ones(21, 3, dtype=torch.float64)
    elsewhere = method.on(problem).solve(one).solution.value
    assert elsewhere[~reached].abs().max() > 0.5
    torch.testing.assert_close(
        elsewhere[reached], method.on(problem).solve().solution.value[reached], rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("seed", range(3))
def test_reslpa_gradient_against_finite_differences(seed):
    """In an epoch in which all labels of a component are hidden, too: its supervised node 20 stays at zero."""
    graph, known, _ = patchwork(seed)
    problem = Problem.of(graph, known, torch.float64)
    network = GCN(5, 3, hidden=8, generator=torch.Generator().manual_seed(seed)).double()
    method = ResLPA(network, 0.9, 0.5, solver=EXACT)
    hiding = next(
        s for s in range(99) if problem.labels.hide(0.5, torch.Generator().manual_seed(s)).supervised[20].item()
    )
    assert directional_error(method, problem, seed=hiding) < 1e-3
    method.gradient = Implicit("exact", EXACT)
    assert directional_error(method, problem, seed=hiding) < 1e-6
    gradients(method, problem, hiding)
    solution = taped(method, problem).solution
    assert solution.ok
    assert solution.adjoints[-1].ok


def test_reslpa_learns_what_propagation_cannot():
    """Every edge joins two classes, so plain propagation is wrong almost everywhere; the residuals are learnt."""
    draw = torch.Generator().manual_seed(0)
    source, target = torch.randint(30, (2, 200), generator=draw)
    y = torch.arange(60) % 2
    x = torch.nn.functional.one_hot(y).float() + 0.1 * torch.randn(60, 2, generator=draw)
    graph = Graph(torch.stack([2 * source, 2 * target + 1]), x=x, y=y, num_nodes=60).to_undirected()
    split = half_split(60, 3)
    problem, score = Problem.of(graph, split.train), scorer(graph, split)
    method = ResLPA(MLP(2, 2, num_layers=1, generator=draw))
    history = train(method, problem, problem, score, draw, Training(lr=0.1, max_epochs=80, patience=80))
    assert history.final["test"] > 0.9
    assert score(LPA().predict(problem))["test"] < 0.3


@pytest.mark.parametrize("lam", [0, -0.1, 1.1])
def test_impossible_lambda(lam):
    with pytest.raises(ConfigError, match="λ must be above 0"):
        LPA(lam)
