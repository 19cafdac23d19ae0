import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

import lignn
from lignn import measures


def test_digits() -> None:
    graph = lignn.datasets.load("digits")
    images = load_digits()
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (1797, 12616, 64, 10)
    assert graph.is_undirected
    assert graph.class_names == tuple("0123456789")
    assert np.array_equal(graph.y, images.target)
    assert torch.equal(16 * graph.x, torch.from_numpy(images.data).float())
    assert measures.edge_homophily(graph) == pytest.approx(0.9726, abs=5e-5)
    assert int(torch.bincount(graph.edge_index[0]).min()) == 5


def test_digits_neighbours_are_nearest() -> None:
    graph = lignn.datasets.load("digits", neighbours=3)
    distance = NearestNeighbors(n_neighbors=3).fit(graph.x).kneighbors()[0]
    adjacency = graph.to_scipy()
    for node in (0, 500, 1796):
        found = np.linalg.norm(
            graph.x[adjacency.indices[slice(*adjacency.indptr[node : node + 2])]] - graph.x[node], axis=1
        )
        np.testing.assert_allclose(np.sort(found)[:3], distance[node], rtol=1e-5)


def test_karate() -> None:
    graph = lignn.datasets.load("karate")
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (34, 156, 34, 4)
    assert graph.is_undirected
    assert torch.equal(graph.x, torch.eye(34))
    assert torch.bincount(graph.y).tolist() == [13, 12, 4, 5]
    assert graph.splits == ()
    assert measures.edge_homophily(graph) == 118 / 156
