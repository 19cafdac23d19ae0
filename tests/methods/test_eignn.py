"""EIGNN: the closed form and the iterative route are one equilibrium with one gradient."""

import pytest
import torch

from lignn import Graph
from lignn.equilibrium import Status
from lignn.equilibrium.solvers import Anderson, Picard
from lignn.errors import ConfigError
from lignn.methods import EIGNN, Problem
from tests.methods.small import TIGHT, dense_operator, directional_error, gradients, patchwork, small_problem, taped


def eignn(graph, route="closed", **options):
    generator = torch.Generator().manual_seed(0)
    options = {"solver": TIGHT} | options
    return EIGNN(graph.num_features, graph.num_classes, route=route, generator=generator, **options).double()


def complete(n=12):
    """Ã = 1/n everywhere: the eigenvalue 0 is repeated n-1 times."""
    edges = torch.cartesian_prod(torch.arange(n), torch.arange(n)).T
    x = torch.randn(n, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return Graph(edges[:, edges[0] != edges[1]], x=x, y=torch.arange(n) % 3)


@pytest.mark.parametrize("route", ["closed", "iterative"])
def test_the_equilibrium_by_a_dense_linear_solve(route):
    """`vec(Z) = (I - γ g(F) ⊗ Ã)^-1 vec(X)`."""
    graph, known, _ = patchwork(weighted=True)
    method = eignn(graph, route)
    z = method.represent(Problem.of(graph, known, torch.float64)).value.detach()
    gram = method.weight.detach().T @ method.weight.detach()
    kron = torch.kron(dense_operator(graph), gram / (gram.norm() + 1e-12))
    expected = torch.linalg.solve(torch.eye(len(kron), dtype=torch.float64) - 0.8 * kron, graph.x.flatten())
    torch.testing.assert_close(z.flatten(), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("multilabel", [False, True])
def test_both_routes_agree(dtype, normalize, multilabel):
    """With the paper's own tolerance, in single precision too: predictions, losses and gradients to 1e-5."""
    graph, split, _ = small_problem(1, multilabel=multilabel)
    problem = Problem.of(graph, split.train, dtype)
    found = []
    for route in ("closed", "iterative"):
        method = eignn(graph, route, normalize=normalize, solver=None).to(dtype)
        found.append((method.predict(problem).probabilities, *gradients(method, problem)))
    (p, loss, slopes), (q, other, others) = found
    torch.testing.assert_close(p, q, rtol=0, atol=1e-5)
    assert loss == pytest.approx(other, abs=1e-5)
    for name, slope in slopes.items():
        torch.testing.assert_close(slope, others[name], rtol=0, atol=1e-5)


@pytest.mark.parametrize("route", ["closed", "iterative"])
@pytest.mark.parametrize("normalize", [False, True])
def test_gradient_against_finite_differences(route, normalize):
    graph, _, problem = small_problem(2)
    assert directional_error(eignn(graph, route, normalize=normalize), problem) < 1e-6


def test_repeated_eigenvalues_of_both_matrices():
    """A complete graph and an F with orthogonal columns: the gradient of `eigh` would not be finite."""
    graph = complete()
    problem = Problem.of(graph, torch.arange(12) < 6, torch.float64)
    slopes = {}
    for route in ("closed", "iterative"):
        method = eignn(graph, route)
        with torch.no_grad():
            method.weight.copy_(torch.eye(4))
        _, slopes[route] = gradients(method, problem)
    assert slopes["closed"]["weight"].abs().max() > 1e-4
    for name, slope in slopes["closed"].items():
        assert slope.isfinite().all()
        torch.testing.assert_close(slope, slopes["iterative"][name], rtol=0, atol=1e-10)


def test_dropout_is_drawn_from_the_generator():
    graph, _, problem = small_problem(2)
    method = eignn(graph, dropout=0.5).train()
    losses = [method.epoch(problem, torch.Generator().manual_seed(seed)).loss.item() for seed in (0, 0, 1)]
    assert losses[0] == losses[1] != losses[2]
    assert directional_error(method, problem) < 1e-6


def test_more_than_ten_thousand_nodes_without_an_eigendecomposition_of_the_graph(monkeypatch):
    n = 12_000
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(n, (2, 4 * n), generator=generator)
    graph = Graph(edges, x=torch.randn(n, 4, generator=generator), y=torch.arange(n) % 3).to_undirected()
    problem = Problem.of(graph, torch.arange(n) < 100)
    method = EIGNN(4, 3, generator=generator)
    sizes = []
    eigh = torch.linalg.eigh
    monkeypatch.setattr(torch.linalg, "eigh", lambda m: sizes.append(m.shape[-1]) or eigh(m))
    solution = taped(method, problem).solution
    assert solution.status is Status.CONVERGED
    assert solution.steps > 3
    assert all(weight.grad.isfinite().all() for weight in method.parameters())
    assert sizes == [4]


def test_the_route_is_chosen_by_size_and_direction():
    steps = {}
    for name, (graph, options) in {
        "small": (complete(), {}),
        "forced": (complete(), {"route": "iterative"}),
        "directed": (small_problem(directed=True)[0], {}),
    }.items():
        method = EIGNN(graph.num_features, 3, generator=torch.Generator().manual_seed(0), **options).double()
        known = torch.arange(graph.num_nodes) < 6
        steps[name] = method.predict(Problem.of(graph, known, torch.float64)).solution.steps
    assert steps["small"] == 0 < min(steps["forced"], steps["directed"])


def test_the_eigendecomposition_of_the_graph_is_computed_once(monkeypatch):
    graph, _, problem = small_problem(3)
    method = eignn(graph)
    sizes = []
    eigh = torch.linalg.eigh
    monkeypatch.setattr(torch.linalg, "eigh", lambda m: sizes.append(m.shape[-1]) or eigh(m))
    for _ in range(3):
        gradients(method, problem)
    assert sizes.count(5) == 3
    assert sizes.count(30) == 1
    assert len(sizes) == 4


def islands():
    """Components of 1, 2, 3, 4 and once more 3 and 1 nodes, their nodes mixed."""
    links = [(1, 2), (3, 4), (4, 5), (6, 7), (7, 8), (8, 9), (9, 6), (10, 11), (11, 12), (10, 12)]
    order = torch.randperm(14, generator=torch.Generator().manual_seed(1))
    x = torch.randn(14, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    return Graph(order[torch.tensor(links).T], x=x, y=torch.arange(14) % 3).to_undirected()


def test_components_are_decomposed_one_by_one(monkeypatch):
    graph = islands()
    problem = Problem.of(graph, torch.arange(14) < 7, torch.float64)
    shapes = []
    eigh = torch.linalg.eigh
    monkeypatch.setattr(torch.linalg, "eigh", lambda m: shapes.append(tuple(m.shape)) or eigh(m))
    found = [gradients(eignn(graph, route), problem) for route in ("closed", "iterative")]
    assert sorted(shapes) == [(1, 2, 2), (1, 4, 4), (2, 1, 1), (2, 3, 3), (4, 4), (4, 4)]
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-10)
    for name, slope in found[0][1].items():
        torch.testing.assert_close(slope, found[1][1][name], rtol=0, atol=1e-10)


def test_many_small_components_have_the_closed_form():
    """Chains of 100,000 nodes together."""
    link = torch.arange(100_000).view(-1, 10)
    edges = torch.stack([link[:, :-1].flatten(), link[:, 1:].flatten()])
    x = torch.randn(100_000, 4, generator=torch.Generator().manual_seed(0))
    graph = Graph(edges, x=x, y=torch.arange(100_000) % 3).to_undirected()
    problem = Problem.of(graph, torch.arange(100_000) < 100)
    assert EIGNN(4, 3, generator=torch.Generator().manual_seed(0)).predict(problem).solution.steps == 0


def chain(n=40):
    """Features on the first node only."""
    edges = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    x = torch.zeros(n, 4).index_fill(0, torch.tensor([0]), 1.0)
    return Graph(edges, x=x, y=torch.arange(n) % 3).to_undirected()


def test_rows_far_from_every_feature_are_right_by_iteration_only():
    """The closed form leaves rounding there, as normalised rows would show: then "auto" iterates."""
    graph, rows = chain(), {}
    for name, dtype, options in [
        ("truth", torch.float64, {"route": "iterative", "solver": Picard(tol=0, max_steps=300)}),
        ("iterative", torch.float32, {"route": "iterative", "solver": Picard(tol=0, max_steps=300)}),
        ("closed", torch.float32, {"route": "closed"}),
    ]:
        problem = Problem.of(graph, torch.arange(40) < 6, dtype)
        rows[name] = eignn(graph, **options).to(dtype).represent(problem).value.detach().double()
    error = {name: (rows[name] - rows["truth"]).norm(dim=1) / rows["truth"].norm(dim=1) for name in rows}
    assert error["iterative"].max() < 1e-4
    assert error["closed"][0] < 1e-6
    assert error["closed"][-1] > 1
    problem = Problem.of(graph, torch.arange(40) < 6)
    assert EIGNN(4, 3).predict(problem).solution.steps == 0
    assert EIGNN(4, 3, normalize=True).predict(problem).solution.steps > 0


def test_directed_graphs_have_no_closed_form():
    graph, _, problem = small_problem(directed=True)
    with pytest.raises(ConfigError, match="closed form needs an undirected graph; use route='iterative'"):
        eignn(graph).predict(problem)
    assert eignn(graph, "iterative", solver=Anderson(tol=1e-10)).predict(problem).solution.ok


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 1.0}, "γ must be between"),
        ({"gamma": 0}, "γ must be between"),
        ({"route": "close"}, "did you mean 'closed'"),
    ],
)
def test_impossible_settings(options, message):
    with pytest.raises(ConfigError, match=message):
        EIGNN(5, 3, **options)


def test_settings_of_the_paper():
    method = EIGNN(5, 3)
    assert method.gamma == 0.8
    assert method.solver == Picard(tol=3e-6, max_steps=300, norm="max")
    assert method.output.bias is None
