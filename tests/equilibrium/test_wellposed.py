"""Spectral radii against dense eigenvalues, Theorem 1 against measured contractions."""

import math

import pytest
import torch

from lignn.equilibrium import solve, wellposed
from lignn.equilibrium.solvers import Picard
from lignn.errors import ConfigError
from tests.problems import chain_operator


def dense_radius(fn, z):
    jacobian = torch.autograd.functional.jacobian(fn, z).reshape(z.numel(), z.numel())
    return torch.linalg.eigvals(jacobian).abs().max().item()


@pytest.mark.parametrize("rows", [4, 60])
def test_spectral_radius_of_a_network_at_its_equilibrium(rows):
    generator = torch.Generator().manual_seed(0)
    s = chain_operator(rows)
    w = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    x = torch.randn(rows, 3, generator=generator, dtype=torch.float64)

    def fn(z):
        return torch.softmax(s @ z @ w + x, 1)

    z = solve(fn, torch.zeros_like(x), Picard(tol=1e-12)).value
    assert wellposed.spectral_radius(fn, z, tol=1e-8) == pytest.approx(dense_radius(fn, z), rel=1e-5)


def test_complex_and_opposite_pairs():
    """A rotation and a reflection: power iteration would not settle."""
    turn = 0.8 * torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    flip = 0.8 * torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    z = torch.zeros(50, 2, dtype=torch.float64)
    scale = torch.linspace(0.1, 1, 50, dtype=torch.float64)[:, None]
    for block in (turn, flip):
        assert wellposed.spectral_radius(lambda z, block=block: scale * (z @ block), z) == pytest.approx(0.8, rel=1e-4)


def test_constant_and_nilpotent_maps():
    z = torch.zeros(100)
    assert wellposed.spectral_radius(lambda z: torch.ones(100), z) == 0
    assert wellposed.spectral_radius(lambda z: 0 * z, z) == 0


@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
@pytest.mark.parametrize("mask_rate", [0.0, 0.5])
def test_the_spectral_bound_guarantees_a_contraction(activation, mask_rate):
    """With `‖W‖₂` just below the bound no two states move apart."""
    generator = torch.Generator().manual_seed(1)
    s = chain_operator(20)
    w = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    limit = {"softmax": 2, "sigmoid": 4}[activation] * (1 - mask_rate)
    w *= 0.999 * limit / torch.linalg.matrix_norm(w, 2)
    stated, proved, spectral = wellposed.theorem1(w, 20, 1.0, activation, mask_rate)
    assert spectral.holds
    assert not stated.holds
    assert not proved.holds
    sigma = torch.sigmoid if activation == "sigmoid" else lambda a: torch.softmax(a, 1)
    for _ in range(20):
        a, b = torch.randn(2, 20, 4, generator=generator, dtype=torch.float64)
        moved = sigma(s @ (a / (1 - mask_rate)) @ w) - sigma(s @ (b / (1 - mask_rate)) @ w)
        assert moved.norm() < (a - b).norm()


def test_theorem_as_stated_and_as_proved():
    w = torch.diag(torch.tensor([0.3, 0.4], dtype=torch.float64))
    stated, proved, spectral = wellposed.theorem1(w, 10)
    assert (stated.value, proved.value, spectral.value) == (pytest.approx(0.25), pytest.approx(0.5), pytest.approx(0.4))
    assert (stated.limit, proved.limit, spectral.limit) == (0.1, 0.1, 2)
    assert [bound.holds for bound in wellposed.theorem1(0.3 * w, 10)] == [True, False, True]
    assert math.isclose(wellposed.theorem1(w, 10, mask_rate=0.5)[1].value, 1.0)


def test_unknown_activation():
    with pytest.raises(ConfigError, match="did you mean 'softmax'"):
        wellposed.theorem1(torch.eye(2), 3, activation="soft_max")
