"""The operator over a store is Ã, whatever its parts; what its parts need of each other is counted."""

import numpy as np
import pytest
import torch

from lignn import Adjacency
from lignn.propagation import StoredRows
from lignn.propagation.rows import dense
from lignn.propagation.streamed import StreamedAdjacency
from lignn.store import Share
from tests.problems import random_graph
from tests.stores import stored

N = 40
NORMALISATIONS = [("symmetric", True), ("row", False), ("none", False), ("row", True)]


def operators(graph, path, normalization, self_loops, **options):
    store = stored(graph, path, **options)
    share = Share(store.number, store.total)
    streamed = StreamedAdjacency(store, share, normalization, self_loops, torch.float64)
    return Adjacency.normalized(graph, normalization, self_loops, torch.float64), streamed, share


@pytest.mark.parametrize(("directed", "weighted"), [(False, False), (True, True)])
def test_products_and_gradients(tmp_path, directed, weighted):
    graph = random_graph(N, directed=directed, weighted=weighted)
    for normalization, self_loops in NORMALISATIONS:
        adj, streamed, share = operators(graph, tmp_path / "s", normalization, self_loops)
        x = torch.randn(N, 3, dtype=torch.float64, requires_grad=True)
        plain, found = adj @ x, dense(streamed @ x[share.number])
        assert torch.allclose(plain[share.number], found, rtol=0, atol=1e-13)
        upstream = torch.randn(N, 3, dtype=torch.float64)
        (one,) = torch.autograd.grad(plain, x, upstream)
        (two,) = torch.autograd.grad(found, x, upstream[share.number])
        assert torch.allclose(one, two, rtol=0, atol=1e-13)


def test_the_norm_is_bounded(tmp_path):
    for directed in (False, True):
        adj, streamed, _ = operators(random_graph(N, directed=directed), tmp_path / "s", "symmetric", True)
        norm = np.linalg.norm(adj.to_dense().numpy(), 2)
        assert norm - 1e-12 <= streamed.spectral_radius() <= 3 * norm


def test_halo_rows_are_those_of_the_manifest(tmp_path):
    _, streamed, _ = operators(random_graph(N), tmp_path / "s", "symmetric", True)
    parts = streamed.graph.manifest["parts"]["in"]
    needed = [len(places) for _, places in streamed.parts("in")]
    assert needed == [part["nodes"] for part in parts]
    assert sum(needed) > 0


@pytest.mark.parametrize("sparse", [False, True])
def test_propagated_features_are_written_once(tmp_path, sparse):
    graph = random_graph(N, num_features=11)
    if sparse:
        import scipy.sparse as sp

        graph = graph.replace(x=sp.csr_array(np.asarray(graph.x)))
    adj, streamed, share = operators(graph, tmp_path / "s", "symmetric", True)
    x = StoredRows.of(streamed.graph, share, torch.float64, keep=False)
    dense_x = torch.as_tensor(graph.x.toarray() if sparse else graph.x)
    product = streamed @ x
    assert torch.allclose(dense(product), (adj @ dense_x)[share.number], rtol=0, atol=1e-13)
    assert streamed @ x is product
    assert torch.allclose(dense(streamed @ product), (adj @ (adj @ dense_x))[share.number], rtol=0, atol=1e-13)
    factor = torch.rand(N, dtype=torch.float64)
    weight = torch.rand(11, 2, dtype=torch.float64)
    found = dense(x.scaled(factor) @ weight)
    assert torch.allclose(found, factor[:, None] * dense_x[share.number] @ weight, rtol=0, atol=1e-13)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
