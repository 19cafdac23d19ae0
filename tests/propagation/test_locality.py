"""When the rows of a matrix are computed in another order, and in which."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from lignn.bench.graphs import COMMUNITY, graph_with_communities, power_law_graph
from lignn.propagation import Adjacency, locality


@pytest.fixture(autouse=True)
def window(monkeypatch):
    monkeypatch.setattr(locality, "WINDOW", 1000)


def share_near(matrix, order):
    place = np.argsort(order)
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return np.mean(np.abs(place[row] - place[matrix.indices]) < 1000)


def grid(side):
    path = sp.diags_array([np.ones(side - 1), np.ones(side - 1)], offsets=[-1, 1], shape=(side, side))
    matrix = (sp.kron(path, sp.eye_array(side)) + sp.kron(sp.eye_array(side), path) + sp.eye_array(side**2)).tocsr()
    mixed = np.random.default_rng(0).permutation(side**2)
    return sp.csr_array(matrix[mixed][:, mixed])


def test_nodes_of_a_community_are_computed_together():
    matrix = Adjacency.normalized(graph_with_communities(20 * COMMUNITY, 400_000)).to_scipy()
    order = locality.row_order(matrix)
    assert sorted(order) == list(range(20 * COMMUNITY))
    assert share_near(matrix, np.arange(len(order))) < 0.2
    assert share_near(matrix, order) > 0.6
    assert np.array_equal(order, locality.row_order(matrix))


def test_a_grid_is_ordered_by_cuthill_and_mckee():
    matrix = grid(100)
    order = locality.row_order(matrix)
    assert share_near(matrix, order) == 1.0


def test_a_graph_without_structure_or_in_good_order_stays_as_it_is():
    assert locality.row_order(Adjacency.normalized(power_law_graph(20_000, 400_000)).to_scipy()) is None
    matrix = grid(100)
    order = locality.row_order(matrix)
    assert locality.row_order(sp.csr_array(matrix[order][:, order])) is None


def test_ordered_rows_are_the_rows_of_the_matrix():
    adj = Adjacency.normalized(graph_with_communities(5000, 60_000))
    indptr, indices, values, order = locality.ordered(*adj._arrays)
    rows = sp.csr_array((values.numpy(), indices.numpy(), indptr.numpy()), shape=adj.shape)
    assert {array.dtype for array in (indptr, indices, order)} == {torch.int32}
    assert (rows != adj.to_scipy()[order.numpy()]).nnz == 0
    plain = power_law_graph(5000, 60_000)
    same = Adjacency.normalized(plain)._arrays
    assert locality.ordered(*same) == (*same, None)


def test_sources_at_hand_by_hand():
    indptr, indices = np.array([0, 2, 4, 6]), np.array([0, 1, 2, 0, 1, 2])
    found = [
        locality._at_hand(indptr, indices, np.array(order), window)
        for order in ([0, 1, 2], [0, 2, 1])
        for window in (2, 3)
    ]
    assert found == [0, 3, 2, 2]


def test_communities_by_hand():
    two = sp.block_diag([np.ones((4, 4)), np.ones((3, 3))]).tolil()
    two[3, 6] = two[6, 3] = 1
    matrix = sp.csr_array(two)
    found = locality._communities(matrix.indptr, matrix.indices, 2)
    assert len(set(found[:4])) == len(set(found[4:])) == 1
    assert found[0] != found[4]
