"""Recorded rows have the values and gradients of the tensors they stand for, computed block by block."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from lignn.errors import ConfigError
from lignn.propagation.rows import Held, column_sums, dense
from lignn.store import share as share_module
from lignn.store.share import Share

N = 23


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(share_module, "BLOCK", 5)


@pytest.fixture
def share():
    return Share(torch.randperm(N, generator=torch.Generator().manual_seed(3)), N)


def tensors(*shapes):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True) for shape in shapes]


def network(x, weight, bias, other):
    hidden = (x @ weight + bias).relu()
    both = torch.cat([hidden, functional.linear(x, weight.T)], 1)
    return (0.5 * both - hidden.sum() * 0 if isinstance(x, torch.Tensor) else 0.5 * both) @ other


def test_values_and_gradients(share):
    x, weight, bias, other = tensors((N, 4), (4, 3), (3,), (6, 2))
    plain = network(x, weight, bias, other)
    recorded = network(Held(share, x), weight, bias, other)
    assert recorded.shape == (N, 2)
    found = dense(recorded)
    assert torch.allclose(found, plain, rtol=0, atol=1e-14)
    upstream = torch.randn(N, 2, dtype=torch.float64)
    for one, two in zip(
        torch.autograd.grad(plain, (x, weight, bias, other), upstream),
        torch.autograd.grad(found, (x, weight, bias, other), upstream),
        strict=True,
    ):
        assert torch.allclose(one, two, rtol=0, atol=1e-13)


def test_only_one_block_of_a_wide_layer_exists(share):
    x, weight, other = tensors((N, 2), (2, 50), (50, 1))
    largest = []

    class Watched(Held):
        def block(self, block, given, memo):
            largest.append(block.stop - block.start)
            return super().block(block, given, memo)

    dense((Watched(share, x) @ weight).relu() @ other).sum().backward()
    assert max(largest) == 5
    assert len(largest) == 2 * 5  # forward, and once more backward


def test_gradients_that_nobody_asks_for_are_not_computed(share):
    x, weight = tensors((N, 4), (4, 3))
    start = x * 1
    out = dense(Held(share, start) @ weight)
    (found,) = torch.autograd.grad(out, x, torch.ones_like(out), retain_graph=True)
    assert torch.allclose(found, torch.ones_like(out) @ weight.T)
    out.sum().backward()
    assert torch.allclose(weight.grad, x.T @ torch.ones_like(out))


def test_column_sums(share):
    x, weight = tensors((N, 4), (4, 3))
    plain, found = (x @ weight).square().sum(0), None
    product = Held(share, x) @ weight
    found = column_sums(product * product)
    assert torch.allclose(found, plain)
    upstream = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    for one, two in zip(
        torch.autograd.grad(plain, (x, weight), upstream),
        torch.autograd.grad(found, (x, weight), upstream),
        strict=True,
    ):
        assert torch.allclose(one, two)


@pytest.mark.parametrize("training", [True, False])
def test_batch_normalisation(share, training):
    (x,) = tensors((N, 4))
    one, two = (nn.BatchNorm1d(4).double().train(training) for _ in range(2))
    with torch.no_grad():
        for norm in (one, two):
            norm.weight.copy_(torch.arange(1.0, 5.0))
            norm.running_mean.copy_(torch.arange(4.0))
    plain, found = one(x), dense(two(Held(share, x)))
    assert torch.allclose(plain, found, rtol=0, atol=1e-13)
    assert torch.allclose(one.running_var, two.running_var, rtol=0, atol=1e-14)
    assert torch.allclose(one.running_mean, two.running_mean, rtol=0, atol=1e-14)
    upstream = torch.randn(N, 4, dtype=torch.float64)
    wanted = torch.autograd.grad(plain, (x, one.weight), upstream)
    for a, b in zip(wanted, torch.autograd.grad(found, (x, two.weight), upstream), strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-12)


def test_layer_normalisation(share):
    (x,), norm = tensors((N, 4)), nn.LayerNorm(4).double()
    with torch.no_grad():
        norm.weight.copy_(torch.arange(1.0, 5.0))
    plain, found = norm(x), dense(norm(Held(share, x)))
    assert torch.allclose(plain, found, rtol=0, atol=1e-13)
    upstream = torch.randn(N, 4, dtype=torch.float64)
    wanted = torch.autograd.grad(plain, (x, norm.weight, norm.bias), upstream)
    for a, b in zip(wanted, torch.autograd.grad(found, (x, norm.weight, norm.bias), upstream), strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-12)


def test_dropout_is_drawn_in_the_order_of_the_source(share):
    like = Held(share, torch.zeros(N, 11, dtype=torch.float64))
    generator = torch.Generator().manual_seed(5)
    found = dense(like.kept(0.3, generator))
    plain = (torch.rand(N, 11, generator=torch.Generator().manual_seed(5)) >= 0.3).double() / 0.7
    assert torch.equal(found, plain[share.number])
    assert set(np.unique(found)) == {0.0, 1 / 0.7}


def test_a_map_that_mixes_rows_is_refused(share):
    x = Held(share, torch.zeros(N, 4))
    for mixing in (lambda: torch.cat([x, x], 0), lambda: torch.flip(x, [0]), lambda: torch.cumsum(x, 0)):
        with pytest.raises((ConfigError, IndexError), match="no map of rows"):
            mixing()
