"""The fused step and its compiled solves against the same formulas in PyTorch, in float64."""

import math
from dataclasses import replace

import pytest
import torch

from lignn.propagation import Adjacency, fused, solve_kernel
from tests.problems import random_graph

ONE_STEP = fused.Limits(0.0, 1, solve_kernel.RMS, None, 0.0)
TEN_STEPS = replace(ONE_STEP, max_steps=10)


def problem(n=37, c=3, hidden=7, dtype=torch.float64, dropout=False, sigmoid=False, directed=True):
    """Return a fused step, and the same map in PyTorch."""
    generator = torch.Generator().manual_seed(n + c)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=dtype)

    adj = Adjacency.normalized(random_graph(n, directed=directed), dtype=dtype)
    first, second, features, bias = normal(hidden, c), normal(hidden, c), normal(n, hidden), normal(c)
    scale, offset = normal(n, 1).expand(n, c), normal(n, c)
    mask = (normal(n, hidden) > 0).to(dtype) * 2 if dropout else None
    tiles = None if mask is None else fused.tiled(mask)
    step = fused.FusedStep(adj, first, second, fused.tiled(features), scale, offset, bias, tiles, sigmoid)

    def plain(state):
        hidden = (adj @ (scale * state + offset) @ first.T + features).relu()
        logits = adj @ ((hidden if mask is None else hidden * mask) @ second) + bias
        return logits.sigmoid() if sigmoid else logits.softmax(1)

    return step, plain, torch.rand((n, c), generator=generator, dtype=dtype)


@pytest.mark.parametrize("c", [1, 3, 5, 16])
@pytest.mark.parametrize("dropout", [False, True])
def test_one_step_and_its_transposed_derivative(c, dropout):
    step, plain, state = problem(c=c, dropout=dropout)
    torch.testing.assert_close(step.solve(state, ONE_STEP).value, plain(state), rtol=1e-12, atol=1e-13)
    z = state.clone().requires_grad_()
    out = plain(z)
    b = torch.randn(state.shape, dtype=state.dtype, generator=torch.Generator().manual_seed(0))
    found = step.solve_adjoint(b, step.tape(state).recorded, out.detach(), step.scale, ONE_STEP).value
    torch.testing.assert_close(found, torch.autograd.grad(out, z, b)[0] + b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("n", "hidden"), [(3, 1), (8, 64), (129, 64), (1025, 3)])
def test_rows_that_do_not_fill_a_tile_or_a_block(n, hidden):
    step, plain, state = problem(n, hidden=hidden)
    torch.testing.assert_close(step.solve(state, ONE_STEP).value, plain(state), rtol=1e-12, atol=1e-13)


def test_sigmoid_and_its_derivative():
    step, plain, state = problem(sigmoid=True)
    z = state.clone().requires_grad_()
    out = plain(z)
    torch.testing.assert_close(step.solve(state, ONE_STEP).value, out.detach(), rtol=1e-12, atol=1e-13)
    found = step.solve_adjoint(state, step.tape(state).recorded, out.detach(), step.scale, ONE_STEP).value
    torch.testing.assert_close(found, torch.autograd.grad(out, z, state)[0] + state, rtol=1e-11, atol=1e-12)


def test_float32_agrees_to_its_rounding():
    step, plain, state = problem(c=5, hidden=64, dtype=torch.float32)
    torch.testing.assert_close(step.solve(state, ONE_STEP).value, plain(state), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("logit", [0.0, 80.0, 1e3])
def test_softmax_of_large_logits(logit):
    step, _, state = problem(c=2)
    zero = torch.zeros_like(step.first)
    sure = replace(step, first=zero, second=zero, bias=torch.tensor([logit, 0.0], dtype=torch.float64))
    expected = torch.tensor([logit, 0.0], dtype=torch.float64).softmax(0).expand_as(state)
    torch.testing.assert_close(sure.solve(state, ONE_STEP).value, expected, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_not_finite_ends_the_solve(value):
    step, _, state = problem()
    limits = fused.Limits(1e-8, 10, solve_kernel.RMS, None, 1e3)
    outcome = replace(step, bias=torch.full((3,), value, dtype=torch.float64)).solve(state, limits)
    assert outcome.status == solve_kernel.NON_FINITE
    assert len(outcome.residuals) == 1
    assert not math.isfinite(outcome.residuals[0])


@pytest.mark.parametrize("memory", [0, 5])
def test_any_number_of_threads_gives_the_same_bits(memory):
    step, _, state = problem(3000, c=5, hidden=64, dtype=torch.float32)
    limits = fused.Limits(1e-6, 12, solve_kernel.RELATIVE, None, 1e1, memory)
    assert step.work > 1 << 20
    before, outcomes = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            outcomes.append(step.solve(state, limits))
    finally:
        torch.set_num_threads(before)
    assert len(outcomes[0].residuals) > 2
    for other in outcomes[1:]:
        assert torch.equal(other.value, outcomes[0].value)
        assert (other.residuals, other.contraction) == (outcomes[0].residuals, outcomes[0].contraction)


@pytest.mark.parametrize("memory", [0, 5])
def test_a_solve_in_pieces_has_the_same_bits(memory, monkeypatch):
    step, _, state = problem(c=5, hidden=64)
    limits = fused.Limits(1e-9, 30, solve_kernel.RMS, None, 1e1, memory)
    whole = step.solve(state, limits)
    monkeypatch.setattr(fused, "BURST", 1)
    pieces = step.solve(state, limits)
    assert len(whole.residuals) > 3
    assert torch.equal(whole.value, pieces.value)
    assert whole.residuals == pieces.residuals


def test_nothing_depends_on_what_the_memory_held_before():
    step, _, state = problem(c=5, hidden=64)
    limits = fused.Limits(1e-9, 30, solve_kernel.RMS, None, 1e1, 5)
    first = step.solve(state, limits)
    for size in (10, 1000, 100_000):
        torch.full((size,), math.nan, dtype=torch.float64)  # freed at once, and used again by the next solve
        assert torch.equal(step.solve(state, limits).value, first.value)


def test_tiles_hold_the_rows_side_by_side():
    matrix = torch.arange(30.0).view(10, 3)
    tiles = fused.tiled(matrix)
    assert tiles.shape == (1, 3, 16)
    assert torch.equal(tiles[0, :, :10], matrix.T)
    assert not tiles[0, :, 10:].any()
