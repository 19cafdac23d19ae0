"""A state whose rows are spread over two threads is solved and differentiated as if one held it whole."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier

import pytest
import torch

from lignn.equilibrium import WHOLE, Implicit, Space, Status, adjoint, fixed_point, solve
from lignn.equilibrium.norms import Spread
from lignn.equilibrium.solvers import Anderson, Broyden, Picard
from lignn.processes import Processes

N, C = 40, 3
SOLVERS = [Picard(tol=1e-10), Anderson(tol=1e-10), Broyden(tol=1e-10)]


class Exchange:
    """What two threads tell each other: each puts in its part, all get both."""

    def __init__(self):
        self.parts = [None, None]
        self.barrier = Barrier(2, timeout=30)

    def __call__(self, rank, part):
        self.parts[rank] = part
        self.barrier.wait()
        parts = list(self.parts)
        self.barrier.wait()
        return parts


@dataclass(frozen=True)
class Halves(Space):
    """The reductions over a state of which this thread holds the rows of `rank`."""

    exchange: Exchange
    rank: int

    def norm(self, x):
        return math.hypot(*self.exchange(self.rank, super().norm(x)))

    def largest(self, x):
        return max(self.exchange(self.rank, super().largest(x)))

    def entries(self, x):
        return sum(self.exchange(self.rank, super().entries(x)))

    def inner(self, rows, x):
        return sum(self.exchange(self.rank, super().inner(rows, x)))


class Product(torch.autograd.Function):
    """This thread's rows of `J z`, for a z of which each thread has its rows; backward those of `Jᵀ g`."""

    @staticmethod
    def forward(ctx, z, j, space):
        ctx.j, ctx.space = j, space
        return rows_of(j @ torch.cat(space.exchange(space.rank, z)), space.rank)

    @staticmethod
    def backward(ctx, g):
        return rows_of(ctx.j.T @ torch.cat(ctx.space.exchange(ctx.space.rank, g)), ctx.space.rank), None, None


def rows_of(x, rank):
    return x.tensor_split(2)[rank]


def problem():
    """`J` of spectral radius 0.7 and `b`."""
    generator = torch.Generator().manual_seed(3)
    j = torch.randn(N, N, generator=generator, dtype=torch.float64)
    j *= 0.7 / torch.linalg.eigvals(j).abs().max()
    return j, torch.randn(N, C, generator=generator, dtype=torch.float64)


def both(work):
    """What `work(space)` gives in each of two threads that share a state."""
    exchange = Exchange()

    def guarded(rank):
        try:
            return work(Halves(exchange, rank))
        except BaseException:
            exchange.barrier.abort()
            raise

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(guarded, range(2)))


def assert_same(halves, whole):
    for half in halves:
        assert (half.status, half.steps) == (whole.status, whole.steps)
        assert half.residuals == pytest.approx(whole.residuals, rel=1e-4)
        assert half.contraction == pytest.approx(whole.contraction, rel=1e-4)
    assert halves[0].residuals == halves[1].residuals
    torch.testing.assert_close(torch.cat([half.value for half in halves]), whole.value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", ["rms", "max", "relative"])
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_two_halves_solve_the_whole(solver, norm):
    solver = type(solver)(tol=solver.tol, norm=norm)
    j, b = problem()
    whole = solve(lambda z: j @ z + b, torch.zeros_like(b), solver)

    def work(space):
        own = rows_of(b, space.rank)
        return solve(lambda z: Product.apply(z, j, space) + own, torch.zeros_like(own), solver, space=space)

    assert whole.status is Status.CONVERGED
    assert_same(both(work), whole)
    closed = torch.linalg.solve(torch.eye(N, dtype=torch.float64) - j, b)
    torch.testing.assert_close(whole.value, closed, rtol=0, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_two_halves_solve_the_adjoint(solver):
    j, b = problem()
    whole = adjoint(lambda g: j.T @ g, b, solver)

    def work(space):
        def vjp(g):
            return rows_of(j.T @ torch.cat(space.exchange(space.rank, g)), space.rank)

        return adjoint(vjp, rows_of(b, space.rank), solver, space=space)

    assert_same(both(work), whole)


def test_two_halves_have_the_gradient_of_the_whole():
    """`∂(tᵀz)/∂b = (I - J)^-T t`; the adjoint is solved in the space of the forward solve."""
    j, b = problem()
    t = torch.arange(N * C, dtype=torch.float64).view(N, C) / (N * C)
    solver = Anderson(tol=1e-10)

    def gradient(fn, b, t, space=WHOLE):
        b = b.clone().requires_grad_()
        strategy = Implicit(solver=solver)
        solution = fixed_point(lambda z: fn(z) + b, torch.zeros_like(b), solver, gradient=strategy, space=space)
        (solution.value * t).sum().backward()
        return b.grad, solution.adjoints[0]

    whole, whole_adjoint = gradient(lambda z: j @ z, b, t)
    halves = both(
        lambda space: gradient(
            lambda z: Product.apply(z, j, space), rows_of(b, space.rank), rows_of(t, space.rank), space
        )
    )
    assert_same([backward for _, backward in halves], whole_adjoint)
    torch.testing.assert_close(torch.cat([slope for slope, _ in halves]), whole, rtol=0, atol=1e-12)
    closed = torch.linalg.solve((torch.eye(N, dtype=torch.float64) - j).T, t)
    torch.testing.assert_close(whole, closed, rtol=0, atol=1e-9)


def test_a_broken_half_stops_both():
    """A value that is not finite in one half ends both solves at the same step."""

    def work(space):
        return solve(lambda z: z / 0 if space.rank else 0.5 * z + 1, torch.zeros(3), space=space, throw=False)

    assert [(half.status, half.steps) for half in both(work)] == [(Status.NON_FINITE, 1)] * 2


@pytest.mark.parametrize("norm", ["rms", "relative"])
def test_a_step_sums_once_over_processes(norm):
    class Counting(Processes):
        calls = 0

        def sum(self, x):
            self.calls += 1
            return x

    processes, z0, solver = Counting(), torch.zeros(3, 2, dtype=torch.float64), Picard(norm=norm)
    whole, spread = (solve(lambda z: 0.5 * z + 1, z0, solver, space=each) for each in (WHOLE, Spread(processes, 3)))
    assert processes.calls == spread.steps == whole.steps
    assert spread.residuals == pytest.approx(whole.residuals)
    assert spread.contraction == pytest.approx(whole.contraction)
