import io
import json

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.datasets import Flickr

import lignn
from tests.datasets import archives


def test_download(internet: dict[str, bytes]) -> None:
    n = 12
    x, y = np.random.default_rng(0).normal(size=(n, 4)), archives.labels(n, 7)
    both = archives.EDGES[archives.EDGES[:, 0] != archives.EDGES[:, 1]]
    both = np.unique(np.concatenate([both, both[:, ::-1]]), axis=0)
    adjacency = sp.csr_array((np.ones(len(both), bool), tuple(both.T)), shape=(n, n))
    features = io.BytesIO()
    np.save(features, x)
    roles = {"tr": [0, 3, 4, 5, 6, 7], "va": [1, 8, 9], "te": [2, 10, 11]}
    internet[Flickr.adj_full_id] = archives.npz(
        data=adjacency.data, indices=adjacency.indices, indptr=adjacency.indptr, shape=adjacency.shape
    )
    internet[Flickr.feats_id] = features.getvalue()
    internet[Flickr.class_map_id] = json.dumps({str(node): int(label) for node, label in enumerate(y)}).encode()
    internet[Flickr.role_id] = json.dumps(roles).encode()

    graph = lignn.datasets.load("flickr")
    assert torch.equal(graph.x, torch.from_numpy(x).float())
    assert np.array_equal(graph.y, y)
    assert archives.pairs(graph.edge_index) == archives.both_ways(archives.UNDIRECTED)
    (split,) = graph.splits
    assert [mask.nonzero().flatten().tolist() for mask in (split.train, split.val, split.test)] == list(roles.values())
