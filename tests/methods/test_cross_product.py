"""Every backbone, and a foreign PyG model, under every method that takes one: it trains, and its gradient is right."""

import pytest
import torch
from torch_geometric.nn.models import EdgeCNN

from lignn.backbones import names, resolve
from lignn.equilibrium import Implicit
from lignn.equilibrium.solvers import Picard
from lignn.methods import LIGNN, CorrectAndSmooth, LabelInput, LabelReuse, LaE, Network, Problem
from lignn.training import Training, scorer, train
from tests.methods.small import directional_error, gradients, taped
from tests.problems import half_split, random_graph

N = 12
SOLVER = Picard(tol=1e-13, max_steps=500)
EXACT, PAPER = (Implicit(form, SOLVER) for form in ("exact", "paper"))

BACKBONES = [*names(), "foreign"]
EXACT_GRADIENT = {
    "label input": lambda b: LabelInput(b, 0.4),
    "lignn exact": lambda b: LIGNN(b, 0.4, False, SOLVER, EXACT),
    "lignn exact, forward mask": lambda b: LIGNN(b, 0.4, True, SOLVER, EXACT),
    "lae": lambda b: LaE(b, 0.4, tol=1e-13),
}
PAPER_GRADIENT = {
    "lignn paper": lambda b: LIGNN(b, 0.4, False, SOLVER, PAPER),
    "lignn paper, forward mask": lambda b: LIGNN(b, 0.4, True, SOLVER, PAPER),
}
METHODS = {
    **EXACT_GRADIENT,
    **PAPER_GRADIENT,
    "label reuse": lambda b: LabelReuse(b, 0.4, 2),
    "label reuse corrected": lambda b: LabelReuse(b, 0.4, 2, corrected=True),
    "correct and smooth": lambda b: CorrectAndSmooth(Network(b), steps=3),
}


def network(name, label_inputs=3):
    """Small, in float64, with weights so large that the labels matter and so small that the map contracts."""
    spec = EdgeCNN if name == "foreign" else name
    backbone = resolve(spec, 4, 3, label_inputs, torch.Generator().manual_seed(2), hidden=8).double()
    with torch.no_grad():
        for weight in backbone.parameters():
            weight *= 1.5
    return backbone


def problem_of(seed=1):
    graph = random_graph(n=N, num_features=4, seed=seed)
    split = half_split(N, seed)
    return graph, split, Problem.of(graph, split.train, torch.float64)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("backbone", BACKBONES)
def test_trains(backbone, method):
    graph, split, problem = problem_of()
    model = METHODS[method](network(backbone, 0 if method == "correct and smooth" else 3))
    start = {name: value.clone() for name, value in model.state_dict().items()}
    draw = torch.Generator().manual_seed(0)
    history = train(model, problem, problem, scorer(graph, split), draw, Training(max_epochs=2))
    assert len(history.epochs) == 2
    assert all(0 < record["loss"] < 10 for record in history.epochs)
    assert any(not torch.equal(value, start[name]) for name, value in model.state_dict().items())
    p = model.predict(problem).probabilities
    torch.testing.assert_close(p.sum(1), torch.ones(N, dtype=torch.float64))


@pytest.mark.parametrize("method", EXACT_GRADIENT)
@pytest.mark.parametrize("backbone", BACKBONES)
def test_exact_gradients_against_finite_differences(backbone, method):
    _, _, problem = problem_of()
    model = EXACT_GRADIENT[method](network(backbone))
    assert directional_error(model, problem, seed=3, step=1e-6) < 1e-7
    solution = taped(model, problem, seed=3).solution
    assert solution.ok
    assert method == "label input" or solution.contraction > 0.01


@pytest.mark.parametrize("method", EXACT_GRADIENT)
@pytest.mark.parametrize("both_directions", [False, True])
def test_exact_gradients_through_types_of_edges(method, both_directions):
    graph = random_graph(n=N, num_features=4, seed=1, directed=True, weighted=True, edge_types=("a", "b"))
    problem = Problem.of(graph, half_split(N, 1).train, torch.float64)
    options = {"edge_types": graph.edge_types, "both_directions": both_directions, "num_bases": 2, "hidden": 8}
    backbone = resolve("rgcn", 4, 3, 3, torch.Generator().manual_seed(2), **options).double()
    model = EXACT_GRADIENT[method](backbone)
    assert directional_error(model, problem, seed=3, step=1e-6) < 1e-7
    solution = taped(model, problem, seed=3).solution
    assert solution.ok
    assert method == "label input" or solution.contraction > 0.01


@pytest.mark.parametrize("method", PAPER_GRADIENT)
@pytest.mark.parametrize("backbone", BACKBONES)
def test_the_paper_s_gradient_against_the_dense_adjoint(backbone, method):
    """`g = (I - P Jᵀ)^-1 b` at the solved state, then one vector-Jacobian product for θ."""
    _, _, problem = problem_of()
    model = PAPER_GRADIENT[method](network(backbone))
    _, slopes = gradients(model, problem, seed=3)
    solution = taped(model, problem, seed=3).solution
    assert solution.ok
    assert solution.adjoints[-1].ok
    assert solution.adjoints[-1].steps > 3

    hidden = problem.labels.hide(0.4, torch.Generator().manual_seed(3))
    masked = hidden.mask(solution.value, constant_scale=False).detach()
    step = model.step.bind(problem)
    jacobian = torch.autograd.functional.jacobian(step, masked).reshape(3 * N, 3 * N)
    carries = (~hidden.hidden & ~problem.labels.mask).double().repeat_interleave(3)
    out = step(masked)
    b = torch.autograd.grad(problem.labels.loss(out, hidden.supervised), out, retain_graph=True)[0].flatten()
    g = torch.linalg.solve(torch.eye(3 * N, dtype=torch.float64) - carries[:, None] * jacobian.T, b)
    expected = torch.autograd.grad(out, list(model.parameters()), g.view(N, 3))
    for slope, wanted in zip(slopes.values(), expected, strict=True):
        torch.testing.assert_close(slope, wanted, rtol=1e-7, atol=1e-10)
