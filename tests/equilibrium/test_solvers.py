"""Every solver against closed forms; statuses of maps that do not converge."""

import math

import pytest
import torch

from lignn.equilibrium import Space, Status, solve
from lignn.equilibrium.norms import Change, largest, relative, rms
from lignn.equilibrium.solvers import BY_NAME, Anderson, Broyden, Picard, Solver, by_name
from lignn.errors import ConfigError, ConvergenceError
from tests.problems import chain_operator

SOLVERS = [Picard, Anderson, Broyden]


@pytest.mark.parametrize("kind", SOLVERS)
def test_chain_with_one_label_at_the_end(kind):
    """`f(z) = 0.9 S z + b`: information must travel the whole chain, so row-wise stopping or mixing would fail."""
    s = 0.9 * chain_operator(10)
    b = torch.zeros(10, 1, dtype=torch.float64)
    b[-1] = 1
    solution = solve(lambda z: s @ z + b, torch.zeros_like(b), kind(tol=1e-10, max_steps=1000))
    closed = torch.linalg.solve(torch.eye(10, dtype=torch.float64) - s, b)
    assert solution.status is Status.CONVERGED
    assert (solution.value - closed).abs().max() < 1e-6


@pytest.mark.parametrize("kind", SOLVERS)
@pytest.mark.parametrize("norm", ["rms", "max", "relative"])
def test_linear_maps_against_the_inverse(kind, norm):
    generator = torch.Generator().manual_seed(3)
    j = torch.randn(40, 40, generator=generator, dtype=torch.float64)
    j *= 0.9 / torch.linalg.eigvals(j).abs().max()
    b = torch.randn(40, 3, generator=generator, dtype=torch.float64)
    solution = solve(lambda z: j @ z + b, torch.zeros_like(b), kind(tol=1e-11, max_steps=3000, norm=norm))
    closed = torch.linalg.solve(torch.eye(40, dtype=torch.float64) - j, b)
    assert solution.ok
    torch.testing.assert_close(solution.value, closed, rtol=0, atol=1e-7)
    assert len(solution.residuals) == solution.steps


@pytest.mark.parametrize("kind", [Anderson, Broyden])
def test_acceleration_takes_fewer_steps(kind):
    s = 0.99 * chain_operator(60)
    b = torch.ones(60, 1, dtype=torch.float64)
    b[::7] = -1
    run = {k: solve(lambda z: s @ z + b, torch.zeros_like(b), k(tol=1e-8, max_steps=5000)) for k in (Picard, kind)}
    assert run[kind].steps < 0.5 * run[Picard].steps
    torch.testing.assert_close(run[kind].value, run[Picard].value, rtol=0, atol=1e-5)


def test_contraction_is_the_largest_ratio_of_changes():
    """For `z ↦ k z` every ratio is k, for every solver."""
    for kind in SOLVERS:
        solution = solve(lambda z: 0.7 * z + 1, torch.zeros(5, dtype=torch.float64), kind(tol=1e-9))
        assert solution.contraction == pytest.approx(0.7, abs=1e-5), kind


def test_picard_contraction_follows_the_paper():
    j = torch.diag(torch.tensor([0.9, 0.1], dtype=torch.float64))
    states = [torch.ones(2, dtype=torch.float64)]
    for _ in range(6):
        states.append(j @ states[-1])
    ratios = [
        ((states[i + 1] - states[i]).norm() / (states[i] - states[i - 1]).norm()).item()
        for i in range(1, len(states) - 1)
    ]
    solution = solve(lambda z: j @ z, states[0], Picard(tol=1e-300, max_steps=6), throw=False)
    assert solution.contraction == pytest.approx(max(ratios), rel=1e-12)


def test_a_fixed_number_of_steps_is_not_a_failure():
    solution = solve(lambda z: z + 1, torch.zeros(3), Picard(tol=0, max_steps=4))
    assert solution.ok
    assert solution.status is Status.BUDGET
    assert solution.value.tolist() == [4, 4, 4]
    assert (solution.steps, solution.residual) == (4, pytest.approx(1))
    broken = solve(lambda z: z / 0 if z[0] > 2 else z + 1, torch.ones(3), Picard(tol=0, max_steps=9), throw=False)
    assert broken.status is Status.NON_FINITE
    assert solve(lambda z: z + 1, torch.zeros(3), Picard(tol=0, max_steps=0)).value.tolist() == [0, 0, 0]


def test_oscillation_uses_up_the_budget_and_says_so():
    with pytest.raises(ConvergenceError, match=r"budget used up.*oscillates") as caught:
        solve(lambda z: 1 - z, torch.zeros(3), Picard(max_steps=50))
    assert caught.value.solution.contraction == pytest.approx(1)
    assert caught.value.solution.steps == 50


def test_slow_convergence_uses_up_the_budget_and_asks_for_more():
    with pytest.raises(ConvergenceError, match="raise max_steps or tol"):
        solve(lambda z: 0.99 * z + 1, torch.zeros(3), Picard(max_steps=10))


@pytest.mark.parametrize("kind", [Picard, Broyden])
def test_divergence(kind):
    def expanding(z):
        return 3 * z + z**3 + 1

    solution = solve(expanding, torch.ones(3, dtype=torch.float64), kind(max_steps=500), throw=False)
    assert solution.status is Status.DIVERGING
    assert solution.value.isfinite().all()
    with pytest.raises(ConvergenceError, match="the map expands"):
        solution.require()


def test_growth_limit_stops_at_the_first_expanding_step():
    solution = solve(lambda z: 1.2 * z + 1, torch.zeros(3), Picard(growth=1.1), throw=False)
    assert (solution.status, solution.steps) == (Status.DIVERGING, 2)
    assert solution.value.tolist() == [1, 1, 1]


@pytest.mark.parametrize("kind", SOLVERS)
def test_non_finite(kind):
    def breaks(z):
        return z / 0 if z[0] > 1.5 else 0.5 * z + 1

    solution = solve(breaks, torch.zeros(3), kind(), throw=False)
    assert solution.status is Status.NON_FINITE
    assert solution.value.isfinite().all()
    assert "NaN" in solution.message


@pytest.mark.parametrize("kind", SOLVERS)
def test_stalled_at_rounding(kind):
    s = (0.9 * chain_operator(50)).float()
    b = torch.rand(50, 1, generator=torch.Generator().manual_seed(0))
    solution = solve(lambda z: s @ z + b, torch.zeros_like(b), kind(tol=1e-30, max_steps=2000))
    closed = torch.linalg.solve(torch.eye(50, dtype=torch.float64) - s.double(), b.double())
    # A state that float32 maps to itself exactly is an equilibrium to any tolerance.
    assert solution.status in (Status.STALLED, Status.CONVERGED)
    assert solution.contraction < 1.01
    torch.testing.assert_close(solution.value.double(), closed, rtol=0, atol=1e-5)


def test_stall_is_seen_when_rounding_never_cancels():
    scale = torch.linspace(0.5, 0.9, 100)

    def noisy(z):
        noisy.sign = -noisy.sign
        return scale * z + 1 + noisy.sign * 4e-7

    noisy.sign = 1.0
    solution = solve(noisy, torch.zeros(100), Picard(tol=1e-12, max_steps=2000))
    assert solution.status is Status.STALLED


def test_norms_measure_what_they_say():
    change = Change(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 10.0]))
    assert rms(change) == pytest.approx(5 / math.sqrt(2))
    assert largest(change) == 4
    assert relative(change) == pytest.approx(0.5)


@pytest.mark.parametrize(("name", "norm"), [("rms", rms), ("max", largest), ("relative", relative)])
def test_a_norm_is_a_name_or_a_function(name, norm):
    runs = [solve(lambda z: 0.7 * z + 1, torch.zeros(5), Anderson(norm=given)) for given in (name, norm)]
    assert runs[0].residuals == runs[1].residuals
    assert Anderson(norm=name) == Anderson(norm=name) != Anderson(norm=norm)
    assert f"norm={name!r}" in repr(Anderson(norm=name))


def test_a_norm_of_ones_own_decides_when_to_stop():
    def last_entry(change):
        return change.delta[-1].abs()

    scale = torch.tensor([0.99, 0.5], dtype=torch.float64)
    solution = solve(lambda z: scale * z, torch.ones(2, dtype=torch.float64), Picard(tol=0.01, norm=last_entry))
    assert solution.residuals == tuple(0.5**k for k in range(1, 8))
    assert [type(size) for size in solution.residuals] == [float] * 7


def test_a_length_is_measured_once():
    class Counting(Space):
        calls = 0

        def norm(self, x):
            self.calls += 1
            return super().norm(x)

    space = Counting()
    solution = solve(lambda z: 0.5 * z + 1, torch.zeros(3), Picard(norm="relative"), space=space)
    assert space.calls == 2 * solution.steps  # of the change and of the value


def test_empty_state():
    assert solve(lambda z: z.clone(), torch.zeros(0, 3)).status is Status.CONVERGED


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"norm": "rsm"}, "did you mean 'rms'"),
        ({"norm": 2}, "choose from max, relative, rms"),
        ({"tol": -1.0}, "must not be negative"),
        ({"tol": math.nan}, "must not be negative"),
        ({"tol": math.inf}, "must not be negative or infinite"),
        ({"max_steps": -1}, "must not be negative"),
        ({"growth": 0.0}, "must be positive"),
    ],
)
def test_impossible_settings(settings, message):
    with pytest.raises(ConfigError, match=message):
        Picard(**settings)


def test_history_is_limited():
    for kind in (Anderson, Broyden):
        with pytest.raises(ConfigError, match=r"1 … 10"):
            kind(memory=11)


def test_solvers_by_name():
    assert set(BY_NAME) == {"picard", "anderson", "broyden"}
    assert all(issubclass(kind, Solver) for kind in BY_NAME.values())
    assert by_name("broyden") is Broyden
    with pytest.raises(ConfigError, match="solver 'andersen' is unknown; did you mean 'anderson'"):
        by_name("andersen")
