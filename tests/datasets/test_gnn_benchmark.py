from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import lignn
from tests.datasets import archives

FILES = {
    "amazon_photo": "amazon_electronics_photo.npz",
    "amazon_computers": "amazon_electronics_computers.npz",
    "coauthor_cs": "ms_academic_cs.npz",
    "coauthor_physics": "ms_academic_phy.npz",
}


@pytest.mark.parametrize("name", FILES)
def test_download(name: str, internet: dict[str, bytes]) -> None:
    n = 20
    counts, y = archives.words(n, 9, most=98), archives.labels(n, 5)
    adjacency = sp.csr_array((np.ones(len(archives.EDGES), np.float32), tuple(archives.EDGES.T)), shape=(n, n))
    matrices = {
        f"{matrix}_{part}": getattr(value, part)
        for matrix, value in (("attr", counts), ("adj", adjacency))
        for part in ("data", "indices", "indptr", "shape")
    }
    # The real files also hold pickled names, which must not be loaded.
    names = np.array(["a name", None], dtype=object)
    internet[FILES[name]] = archives.npz(**matrices, labels=y, class_names=names)

    graph = lignn.datasets.load(name)
    assert np.array_equal(graph.x.toarray(), counts.toarray() > 0)
    assert np.array_equal(graph.y, y)
    assert archives.pairs(graph.edge_index) == archives.both_ways(archives.UNDIRECTED)
    assert (graph.num_nodes, graph.splits, graph.class_names) == (n, (), None)
    internet.clear()
    assert np.array_equal(lignn.datasets.load(name, raw_features=True).x.toarray(), counts.toarray())


@pytest.mark.data
def test_counts_of_physics(data_root: Path) -> None:
    binary = lignn.datasets.load("coauthor_physics", root=data_root).x
    counts = lignn.datasets.load("coauthor_physics", root=data_root, raw_features=True).x
    assert (binary.data == 1).all()
    assert (counts.data.min(), counts.data.max()) == (1, 98)
    assert binary.nnz == counts.nnz == 1_137_311
