"""Gradients of equilibria against finite differences, the unrolled gradient and the closed form."""

from dataclasses import replace

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import lignn
from lignn.equilibrium import (
    Implicit,
    LastStep,
    Maps,
    Status,
    Unrolled,
    adjoint,
    differentiable,
    fixed_point,
    gradient_named,
    solve,
)
from lignn.equilibrium.solvers import Anderson, Broyden, Picard
from lignn.errors import ConfigError, ConvergenceError
from tests.problems import chain_operator

SOLVERS = [Picard(tol=1e-13, max_steps=2000), Anderson(tol=1e-13), Broyden(tol=1e-13)]
S = chain_operator(10)


def example(seed=0):
    generator = torch.Generator().manual_seed(seed)
    w = 0.5 * torch.randn(3, 3, generator=generator, dtype=torch.float64)
    x = torch.randn(10, 3, generator=generator, dtype=torch.float64)
    return w.requires_grad_(), x.requires_grad_()


def equilibrium(w, x, solver, gradient=None):
    return fixed_point(lambda z: torch.tanh(S @ z @ w + x), torch.zeros_like(x), solver, gradient=gradient)


@pytest.mark.parametrize("solver", SOLVERS)
def test_against_finite_differences(solver):
    w, x = example()
    assert torch.autograd.gradcheck(lambda w, x: equilibrium(w, x, solver).value, (w, x), atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_against_the_unrolled_gradient(solver):
    w, x = example(1)
    z = torch.zeros_like(x)
    for _ in range(500):
        z = torch.tanh(S @ z @ w + x)
    target = torch.randn(10, 3, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    unrolled = torch.autograd.grad((z * target).sum(), (w, x))
    solution = equilibrium(w, x, solver)
    implicit = torch.autograd.grad((solution.value * target).sum(), (w, x))
    torch.testing.assert_close(implicit, unrolled, rtol=0, atol=1e-6)
    assert [s.status for s in solution.adjoints] == [Status.CONVERGED]


@pytest.mark.parametrize("solver", SOLVERS)
def test_against_the_closed_form_of_a_linear_map(solver):
    """`z = k S z + x`: `z = (I - kS)^-1 x`, `∂(tᵀz)/∂x = (I - kS)^-T t`, `∂(tᵀz)/∂k = tᵀ (I - kS)^-1 S z`."""
    k = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    _, x = example(2)
    t = torch.ones_like(x)
    solution = fixed_point(lambda z: k * (S @ z) + x, torch.zeros_like(x), solver)
    dk, dx = torch.autograd.grad((solution.value * t).sum(), (k, x))
    inverse = torch.linalg.inv(torch.eye(10, dtype=torch.float64) - 0.8 * S)
    torch.testing.assert_close(solution.value, inverse @ x, rtol=0, atol=1e-6)
    torch.testing.assert_close(dx, inverse.T @ t, rtol=0, atol=1e-6)
    torch.testing.assert_close(dk, (t * (inverse @ S @ inverse @ x)).sum(), rtol=1e-6, atol=1e-6)


def test_backward_twice_gives_the_same_and_is_accounted_for():
    w, x = example()
    solution = equilibrium(w, x, SOLVERS[0])
    first = torch.autograd.grad(solution.value.sum(), w, retain_graph=True)[0]
    second = torch.autograd.grad(solution.value.sum(), w)[0]
    assert torch.equal(first, second)
    assert len(solution.adjoints) == 2


def test_last_step_and_unrolled_approach_the_exact_gradient():
    w, x = example(3)
    exact = torch.autograd.grad(equilibrium(w, x, SOLVERS[0]).value.sum(), w)[0]

    def error(gradient):
        return (torch.autograd.grad(equilibrium(w, x, SOLVERS[0], gradient).value.sum(), w)[0] - exact).norm().item()

    errors = [error(LastStep()), *(error(Unrolled(k)) for k in (1, 10, 200))]
    assert error(Unrolled(0)) == errors[0]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 1e-2
    assert errors[-1] < 1e-9


def test_paper_form_differentiates_the_taped_map_only():
    """`g = T_zᵀ g + b` in closed form, for a solved map U and a taped map T that differ."""
    u, t = 0.5 * S, 0.3 * S
    theta = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    b = torch.arange(10, dtype=torch.float64)
    eye = torch.eye(10, dtype=torch.float64)
    z0 = torch.zeros(10, dtype=torch.float64)
    z = torch.linalg.solve(eye - u, torch.ones(10, dtype=torch.float64))
    solver = Picard(tol=1e-13)
    for form, expected in [
        ("paper", torch.linalg.solve((eye - t).T, b) @ (t @ z)),
        ("exact", b @ (t @ z) + torch.linalg.solve((eye - u).T, t.T @ b) @ (u @ z + 1)),
    ]:
        maps = Maps(lambda z: theta * (u @ z + 1), lambda z: theta * (t @ z))
        solution = solve(maps.solved, z0, solver)
        out = Implicit(form).attach(solution, maps, solver)
        gradient = torch.autograd.grad(out @ b, theta)[0]
        assert gradient.item() == pytest.approx(expected.item(), rel=1e-9), form
        torch.testing.assert_close(out.detach(), t @ z)
        assert solution.adjoints[0].status is Status.CONVERGED


def test_expanding_adjoint_stops_and_falls_back():
    """`Jᵀ b` grows along these directions: the adjoint keeps the last sum before the growth."""
    j = torch.tensor([[0.0, 2.0], [2.0, 0.0]], dtype=torch.float64)
    b = torch.tensor([1.0, 0.0], dtype=torch.float64)
    solution = adjoint(lambda g: j.T @ g, b)
    assert solution.status is Status.DIVERGING
    assert solution.steps == 2
    torch.testing.assert_close(solution.value, b + j.T @ b)


def test_adjoint_that_breaks_at_once_falls_back_to_the_last_step():
    b = torch.ones(3)
    solution = adjoint(lambda g: g / 0, b)
    assert solution.status is Status.NON_FINITE
    assert torch.equal(solution.value, b)


def test_failed_forward_solve_raises_unless_opted_out():
    with pytest.raises(ConvergenceError):
        fixed_point(lambda z: 1 - z, torch.zeros(2), Picard(max_steps=5))
    assert fixed_point(lambda z: 1 - z, torch.zeros(2), Picard(max_steps=5), throw=False).status is Status.BUDGET


def test_a_known_solution_is_not_solved_again():
    w, x = example()
    calls = []

    def fn(z):
        calls.append(1)
        return (z @ w + x).tanh()

    first = fixed_point(fn, torch.zeros_like(x), Picard(tol=1e-12))
    solved, before = len(calls), len(first.adjoints)
    again = differentiable(fn, first, Picard(tol=1e-12))
    assert len(calls) == solved + 1  # the taped step
    expected, slope = (torch.autograd.grad(s.value.sum(), w)[0] for s in (first, again))
    assert torch.equal(expected, slope)
    assert (len(first.adjoints), len(again.adjoints)) == (before + 1, 1)
    start = first.value.detach().requires_grad_()
    out = differentiable(fn, replace(first, value=start), gradient=LastStep()).value.sum()
    assert torch.autograd.grad(out, start, allow_unused=True)[0] is None
    failed = fixed_point(lambda z: 1 - z, torch.zeros(2), Picard(max_steps=5), throw=False)
    with pytest.raises(ConvergenceError):
        differentiable(lambda z: 1 - z, failed.require())


def test_without_gradients_nothing_is_taped():
    w, x = example()
    with torch.no_grad():
        assert not equilibrium(w, x, SOLVERS[0]).value.requires_grad


def test_public_names():
    assert lignn.fixed_point is fixed_point
    assert lignn.solvers.Anderson is Anderson
    with pytest.raises(ConfigError, match="'exact' and 'paper'"):
        Implicit("approximate")


def test_gradients_by_name():
    backward = Anderson(tol=1e-3)
    assert gradient_named("exact", backward) == Implicit("exact", backward)
    assert gradient_named("paper") == Implicit("paper")
    assert gradient_named("last_step", backward) == LastStep()
    with pytest.raises(ConfigError, match="did you mean 'last_step'"):
        gradient_named("laststep")


@pytest.mark.parametrize("kind", [Picard, Anderson, Broyden])
def test_memory_does_not_depend_on_the_number_of_steps(kind):
    """Peak of live tensor bytes as the profiler's allocation events tell it."""
    w = 0.99 * torch.eye(64)
    w.requires_grad_()

    def peak(steps):
        def fn(z):
            return z @ w + 1

        # A slowly converging map that uses the whole budget, forward and backward.
        budget = kind(tol=1e-30, max_steps=steps)
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
            solution = fixed_point(fn, torch.zeros(2000, 64), budget, gradient=Implicit(solver=budget), throw=False)
            solution.value.sum().backward()
        live = top = 0
        for event in prof.profiler.kineto_results.events():
            if event.name() == "[memory]":
                live += event.nbytes()
                top = max(top, live)
        return top

    peak(3)
    short, long = peak(15), peak(300)
    assert short > 3 * 2000 * 64 * 4
    assert long == pytest.approx(short, rel=0.05)


@pytest.mark.parametrize("n", [10, 100_000])
def test_the_adjoint_of_a_mean_is_solved_however_many_nodes_there_are(n):
    """`z = 0.9 z + θ`, whose mean has the derivative 10; each entry of its gradient is as small as 1/n."""
    theta = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    solution = fixed_point(lambda z: 0.9 * z + theta, torch.zeros(n, dtype=torch.float64), Picard(tol=1e-4))
    solution.value.mean().backward()
    assert theta.grad.item() == pytest.approx(10, rel=1e-3)
