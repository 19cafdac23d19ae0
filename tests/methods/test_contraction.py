"""The promise of one equilibrium: bounds that hold, weights that are kept below them, and attempts to break it."""

import os

import pytest
import torch

from lignn import Graph, NodeClassifier
from lignn.backbones import GCN, SAGE, resolve
from lignn.backbones.registry import names_with
from lignn.equilibrium.solvers import Picard
from lignn.errors import ConfigError
from lignn.methods import LIGNN, CorrectAndSmooth, Problem
from lignn.methods.contraction import Contraction
from lignn.methods.ensemble import Ensemble
from lignn.propagation import Adjacency
from lignn.propagation.operator_norms import least_norms, norm_bounds
from tests.classifier.small import small_graph, small_split

CAPPED = ["gcn", "sage", "sgc", "mlp", "jknet", "gcnii", "rgcn", "residual gcn", "residual sage", "residual rgcn"]
TRIES = int(os.environ.get("LIGNN_CONTRACTION", "30"))
"""Random graphs for each network; the long form has 1500, which makes 10 500 in all."""


def random_problem(seed, multilabel=False):
    """A small graph, directed or not, with weights or not, and some known labels; weights of very different size."""
    generator = torch.Generator().manual_seed(seed)
    n, c = int(torch.randint(3, 12, (), generator=generator)), int(torch.randint(2, 5, (), generator=generator))
    edges = torch.randint(n, (2, 3 * n), generator=generator)
    weight = torch.rand(3 * n, generator=generator, dtype=torch.float64) * 5 if seed % 3 == 0 else None
    y = torch.randint(2, (n, c), generator=generator) if multilabel else torch.arange(n) % c
    x = torch.randn(n, 3, generator=generator, dtype=torch.float64)
    graph = Graph(edges, x=x, y=y, edge_weight=weight, num_nodes=n)
    graph = graph.to_undirected() if seed % 2 and weight is None else graph
    return Problem.of(graph, torch.arange(n) < n // 3 + 1, torch.float64), generator


def random_method(name, problem, generator, **options):
    c, scale = problem.labels.num_classes, float(10 ** torch.empty(()).uniform_(-1, 1.5, generator=generator))
    kind, options_ = name.split()[-1], {"residual": True, "norm": "batch"} if name.startswith("residual") else {}
    backbone = resolve(kind, 3, c, c, generator, hidden=5, **options_).double()
    with torch.no_grad():
        for weight in backbone.parameters():
            weight.mul_(scale)
        for variance in (value for key, value in backbone.named_buffers() if key.endswith("running_var")):
            variance.uniform_(0.2, 5, generator=generator)
    return LIGNN(backbone, solver=Picard(tol=1e-12, max_steps=2000), **options).double().eval()


def adversarial_starts(problem, generator):
    """Random states, single classes, and far outside of all probabilities."""
    zero = torch.zeros_like(problem.labels.onehot)
    yield zero + torch.eye(zero.shape[1], dtype=zero.dtype)[0]
    yield zero + torch.eye(zero.shape[1], dtype=zero.dtype)[-1]
    yield torch.rand(zero.shape, generator=generator, dtype=zero.dtype)
    yield 100 * torch.randn(zero.shape, generator=generator, dtype=zero.dtype)


def largest_ratios(bound):
    """Return how much a step is at most longer than the one before it, as a matrix and by its longest row."""
    z = torch.zeros_like(bound.problem.labels.onehot)
    lengths = []
    with torch.no_grad():
        for _ in range(100):
            last, z = z, bound.map(z)
            lengths.append([(z - last).norm(), (z - last).norm(dim=1).max()])
    steps = torch.tensor([step for step in lengths if step[0] > 1e-9], dtype=z.dtype)  # smaller ones may be rounding
    return (steps[1:] / steps[:-1]).amax(0).tolist() if len(steps) > 1 else [0.0]


def test_these_are_the_networks_with_a_bound():
    assert {name.split()[-1] for name in CAPPED} == set(names_with("bounded"))


@pytest.mark.parametrize("options", [{"norm": "layer"}, {"norm": "layer", "residual": True}])
def test_layer_normalisation_has_no_bound(options):
    problem, generator = random_problem(1)
    c = problem.labels.num_classes
    method = LIGNN(resolve("gcn", 3, c, c, generator, hidden=5, **options).double())
    assert method.on(problem).lipschitz is None
    with pytest.raises(ConfigError, match="unless norm='layer'; give 'free'"):
        Contraction.of("proved").project(method.step, problem)


def test_a_mean_of_weights_keeps_the_proof():
    """Two weights that keep a bound of products may have a mean that does not."""
    classifier = NodeClassifier(contraction="proved", hidden=8, max_epochs=40, folds=1).fit(small_graph())
    assert classifier._fitted.spec.training.averaged_epochs > 1
    assert classifier._fitted.prediction.bound.lipschitz <= 0.95 + 1e-6


@pytest.mark.parametrize("name", CAPPED)
def test_nobody_finds_a_second_equilibrium_or_an_expanding_step(name):
    for seed in range(TRIES):
        problem, generator = random_problem(seed, multilabel=seed % 4 == 3)
        method = random_method(name, problem, generator, contraction="proved")
        method.project(problem)
        bound = method.on(problem)
        assert bound.lipschitz <= 0.95 + 1e-9
        expected = bound.solve().solution
        assert expected.ok, (name, seed)
        assert min(largest_ratios(bound)) <= 0.95 + 1e-4, (name, seed)
        for start in adversarial_starts(problem, generator):
            found = bound.solve(start).solution.value
            assert (found - expected.value).abs().max() < 1e-9, (name, seed)


@pytest.mark.parametrize("around", [CorrectAndSmooth, lambda method: Ensemble([method, method])])
def test_what_stands_around_a_method_keeps_its_promise(around):
    problem, generator = random_problem(1)
    method = random_method("gcn", problem, generator, contraction="proved")
    with torch.no_grad():
        for weight in method.parameters():
            weight.mul_(10)
    assert method.on(problem).lipschitz > 1
    around(method).project(problem)
    assert method.on(problem).lipschitz <= 0.95 + 1e-9


@pytest.mark.parametrize("name", CAPPED)
def test_the_bound_is_one_of_the_jacobian_in_one_of_the_two_norms(name):
    """Without a cap: no pair of states is moved apart by more than the bound, where one norm must serve all pairs."""
    for seed in range(10):
        problem, generator = random_problem(seed)
        bound = random_method(name, problem, generator).on(problem)
        ratios = {"frobenius": [], "rows": []}
        for _ in range(20):
            one, other = (torch.rand(problem.labels.onehot.shape, generator=generator).double() for _ in range(2))
            one, other = one / one.sum(1, keepdim=True), other / other.sum(1, keepdim=True)
            before, after = one - other, (bound.map(one) - bound.map(other)).detach()
            ratios["frobenius"].append(float(after.norm() / before.norm()))
            ratios["rows"].append(float(after.norm(dim=1).max() / before.norm(dim=1).max()))
        assert min(max(each) for each in ratios.values()) <= bound.lipschitz * (1 + 1e-9)


def test_the_bound_of_a_gcn_is_half_the_product_of_its_centred_norms():
    problem, generator = random_problem(1)
    c = problem.labels.num_classes
    backbone = GCN(3, c, c, hidden=5, generator=generator).double()
    centre = torch.eye(c, dtype=torch.float64) - 1 / c
    first, last = (conv.lin.weight.detach() for conv in backbone.convs)
    expected = 0.5 * torch.linalg.matrix_norm(centre @ last, 2) * torch.linalg.matrix_norm(first[:, :c] @ centre, 2)
    assert LIGNN(backbone).on(problem).lipschitz == pytest.approx(expected.item(), rel=1e-6)


def test_norms_of_operators_are_bounds_and_exact_where_they_can_be():
    for seed in range(20):
        graph = random_problem(seed)[0].edges
        for normalization, loops in (("symmetric", True), ("row", False), ("row", True)):
            adj = Adjacency.normalized(graph, normalization, loops, torch.float64)
            true = torch.linalg.matrix_norm(adj.to_dense(), 2).item()
            (spectral,), (rows,) = norm_bounds(adj, "spectral"), norm_bounds(adj, "rows")
            assert true <= spectral * (1 + 1e-9)
            assert spectral <= 1.3 * true
            assert rows == pytest.approx(adj.to_dense().sum(1).max().item())
            assert min(norms[0] for norms in least_norms(adj)) == min(spectral, rows)
    undirected = Adjacency.normalized(random_problem(1)[0].edges, dtype=torch.float64)
    assert norm_bounds(undirected, "spectral") == (pytest.approx(1.0),)


def test_a_changed_network_has_no_bound():
    class Steeper(SAGE):
        def activate(self, hidden):
            return 100 * hidden

    problem, generator = random_problem(1)
    c = problem.labels.num_classes
    assert LIGNN(Steeper(3, c, c, generator=generator).double()).on(problem).lipschitz is None
    assert LIGNN(resolve("gat", 3, c, c, generator).double()).on(problem).lipschitz is None
    with pytest.raises(ConfigError, match="needs a network with a bound, which gcn, gcnii, jknet"):
        NodeClassifier(backbone="gat", contraction="proved", max_epochs=2).fit(small_graph(), small_split())


def test_promises_are_checked():
    assert Contraction.of("free") == Contraction("free", None)
    with pytest.raises(ConfigError, match=r"contraction 'prooved' is unknown; did you mean 'proved'\?"):
        Contraction.of("prooved")
    with pytest.raises(ConfigError, match=r"contraction 'measured' is gone; use 'proved', .*or 'free'"):
        Contraction.of("measured")
    with pytest.raises(ConfigError, match=r"'proved' needs a number below 1, got 1\.5"):
        Contraction.of("proved", 1.5)


@pytest.mark.parametrize("contraction", ["proved", "free", "auto"])
def test_a_fit_says_in_one_line_what_it_found(contraction):
    classifier = NodeClassifier(contraction=contraction, hidden=8, max_epochs=4).fit(small_graph(), small_split())
    assert classifier.well_posed_.count("\n") == 0
    assert "equilibrium" in classifier.well_posed_
    if contraction in ("proved", "auto"):
        assert classifier.well_posed_.startswith("One equilibrium, proved for any labels")
        assert classifier.update_labels({0: 1}).warm
