"""Nearest-neighbour graphs against brute force."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from lignn import Graph
from lignn.errors import GraphError
from lignn.graph import neighbours


def points(n: int = 40, d: int = 3) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def brute_force(x: torch.Tensor, k: int) -> list[set[int]]:
    distance = np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1).numpy())
    np.fill_diagonal(distance, np.inf)
    return [set(row) for row in np.argsort(distance, 1)[:, :k].tolist()]


@pytest.mark.parametrize("k", [1, 5, 39])
@pytest.mark.parametrize("block", [1, 100, 2**24])
def test_equals_brute_force(monkeypatch, k, block):
    monkeypatch.setattr(neighbours, "_BLOCK", block)
    graph = Graph.knn(points(), k)
    source, target = graph.edge_index.view(2, 40, k)
    assert torch.equal(source, torch.arange(40)[:, None].expand(-1, k))
    assert [set(row) for row in target.tolist()] == brute_force(points(), k)


def test_blocks_give_the_same_edges_among_ties(monkeypatch):
    x = torch.randint(0, 3, (60, 2), generator=torch.Generator().manual_seed(0)).float()
    whole = Graph.knn(x, 4)
    monkeypatch.setattr(neighbours, "_BLOCK", 1)
    in_blocks = Graph.knn(x, 4)
    for graph in (whole, in_blocks):
        source, target = graph.edge_index
        assert (source != target).all()
        assert len(set(map(tuple, graph.edge_index.T.tolist()))) == 240
    lengths = [
        (x[g.edge_index[0]] - x[g.edge_index[1]]).norm(dim=1).view(60, 4).sort().values for g in (whole, in_blocks)
    ]
    assert torch.equal(*lengths)


def test_equal_rows_do_not_choose_themselves():
    graph = Graph.knn(torch.zeros(6, 2), 3)
    assert (graph.edge_index[0] != graph.edge_index[1]).all()
    assert graph.num_edges == 18


def test_sparse_features_and_other_parts():
    x = sp.csr_array(np.array([[0, 0], [0, 1], [5, 0], [5, 2.0]]))
    graph = Graph.knn(x, 1, y=[0, 0, 1, 1], name="near")
    assert graph.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]
    assert isinstance(graph.x, sp.csr_array)
    assert graph.name == "near"


@pytest.mark.parametrize("k", [0, 4, -1])
def test_impossible_k(k):
    with pytest.raises(GraphError, match=rf"k: between 1 and 3 neighbours are possible among 4 rows, got {k}"):
        Graph.knn(torch.ones(4, 1), k)
