import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import lignn
from lignn import Graph
from tests.datasets import archives

CLASSES = {"cora": 7, "citeseer": 6, "pubmed": 3}
KNOWN, TEST = 520, 40  # PyG takes the 500 nodes after the training nodes for validation, so there must be as many


def planetoid(name: str, missing: int | None = None) -> tuple[dict[str, bytes], sp.csr_array, np.ndarray, np.ndarray]:
    """Return the eight raw files of Yang et al., and the features, labels and test nodes that they encode.

    Test rows are stored in the order of `test.index`, which is shuffled. The node `missing` has none, as in Citeseer.
    """
    n, c, train = KNOWN + TEST, CLASSES[name], 2 * CLASSES[name]
    x, y = archives.words(n, 12), archives.labels(n, c)
    index = np.random.default_rng(1).permutation(
        np.setdiff1d(np.arange(KNOWN, n), [] if missing is None else [missing])
    )
    one_hot = np.eye(c)[y]
    graph = {node: [] for node in range(n)}
    for source, target in archives.EDGES.tolist():
        graph[source].append(target)
        graph[target].append(source)
    parts = {
        "x": sp.csr_matrix(x[:train]), "y": one_hot[:train],
        "allx": sp.csr_matrix(x[:KNOWN]), "ally": one_hot[:KNOWN],
        "tx": sp.csr_matrix(x[index]), "ty": one_hot[index],
        "graph": graph,
    }  # fmt: skip
    files = {f"/ind.{name}.{part}": pickle.dumps(content, protocol=2) for part, content in parts.items()}
    files[f"/ind.{name}.test.index"] = "".join(f"{node}\n" for node in index).encode()
    return files, x, y, np.sort(index)


@pytest.mark.parametrize("name", CLASSES)
def test_download(name: str, internet: dict[str, bytes], cache: Path) -> None:
    files, x, y, test = planetoid(name)
    internet.update(files)
    graph = lignn.datasets.load(name, raw_features=True)
    assert np.array_equal(graph.x.toarray(), x.toarray())
    assert np.array_equal(graph.y, y)
    assert archives.pairs(graph.edge_index) == archives.both_ways(archives.UNDIRECTED)
    (split,) = graph.splits
    train = 2 * CLASSES[name]
    assert split.train.nonzero().flatten().tolist() == list(range(train))
    assert split.val.nonzero().flatten().tolist() == list(range(train, train + 500))
    assert split.test.nonzero().flatten().tolist() == test.tolist()
    assert graph.num_classes == CLASSES[name]

    internet.clear()
    again = lignn.datasets.load(name)
    assert [path.name for path in cache.iterdir()] == [f"{name}.npz"]
    sums = again.x.sum(1)
    np.testing.assert_allclose(sums[x.sum(1) > 0], 1, rtol=1e-6)
    assert sums[0] == 0
    np.testing.assert_allclose(again.x.toarray() * x.sum(1)[:, None], x.toarray(), rtol=1e-6)


def test_nodes_without_a_row_are_kept(internet: dict[str, bytes]) -> None:
    missing = KNOWN + 7
    files, _, _, test = planetoid("citeseer", missing)
    internet.update(files)
    graph = lignn.datasets.load("citeseer")
    assert graph.num_nodes == KNOWN + TEST
    assert graph.x[[missing]].nnz == 0
    assert graph.y[missing] == 0
    assert not (graph.splits[0].train | graph.splits[0].held_out)[missing]
    assert graph.splits[0].test.nonzero().flatten().tolist() == test.tolist()


@pytest.mark.data
def test_class_names_have_their_published_sizes(data_root: Path) -> None:
    def sizes(graph: Graph) -> dict[str, int]:
        return dict(zip(graph.class_names, torch.bincount(graph.y).tolist(), strict=True))

    assert sizes(lignn.datasets.load("cora", root=data_root)) == {
        "Case_Based": 298,
        "Genetic_Algorithms": 418,
        "Neural_Networks": 818,
        "Probabilistic_Methods": 426,
        "Reinforcement_Learning": 217,
        "Rule_Learning": 180,
        "Theory": 351,
    }
    # The source gives label 0, here AI, to 15 nodes without features.
    published = {"Agents": 596, "AI": 249 + 15, "DB": 701, "HCI": 508, "IR": 668, "ML": 590}
    assert sizes(lignn.datasets.load("citeseer", root=data_root)) == published
