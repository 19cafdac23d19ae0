"""The first layer's product with sparse features: reused only while features and weight are the same."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from lignn.backbones.layers import Linear
from lignn.propagation import Adjacency, SparseMatrix
from tests.problems import random_graph

COLUMNS = slice(2, None)


@pytest.fixture
def layer():
    generator = torch.Generator().manual_seed(0)
    return Linear(2 + 9, 4, bias=False, generator=generator).double()


@pytest.fixture
def adj():
    return Adjacency.normalized(random_graph(12, directed=True), dtype=torch.float64)


def words(seed=0):
    return SparseMatrix.from_scipy(sp.random_array((12, 9), density=0.4, rng=np.random.default_rng(seed)))


def check(layer, x, adj):
    """Compare the value and the gradient of the weight with the plain ones, twice."""
    plain = adj.to_dense() @ x.to_dense() @ layer.weight[:, COLUMNS].T
    (wanted,) = torch.autograd.grad(plain.square().sum(), layer.weight)
    for _ in range(2):
        found = layer.propagated(x, adj, COLUMNS)
        torch.testing.assert_close(found, plain)
        torch.testing.assert_close(torch.autograd.grad(found.square().sum(), layer.weight)[0], wanted)


def test_values_and_gradients_follow_weights_features_and_operator(layer, adj):
    x = words()
    check(layer, x, adj)
    layer.weight.data[1, 3] += 1  # does not change the version of the weight
    check(layer, x, adj)
    check(layer, words(1), adj)
    check(layer, x, adj.T)
    check(layer, x.with_values(2 * x.values), adj)


def test_the_same_product_is_computed_once(layer, adj, monkeypatch):
    x, products = words(), []
    multiply = SparseMatrix.__matmul__
    monkeypatch.setattr(SparseMatrix, "__matmul__", lambda s, d: products.append(s) or multiply(s, d))
    with torch.no_grad():
        evaluated = layer.propagated(x, adj, COLUMNS)
    trained = layer.propagated(x, adj, COLUMNS)
    assert torch.equal(trained, evaluated)
    assert sum(matrix is x for matrix in products) == 1


def test_a_result_may_be_overwritten(layer, adj):
    x = words()
    before = layer.propagated(x, adj, COLUMNS).detach().clone()
    layer.propagated(x, adj, COLUMNS).add_(1.0)
    assert torch.equal(layer.propagated(x, adj, COLUMNS), before)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_keep_no_product(layer, adj, copied):
    layer.propagated(words(), adj, COLUMNS)
    assert layer.first_product._last is not None
    assert copied(layer).first_product._last is None
