from pathlib import Path

import numpy as np
import pytest

import lignn
from lignn import Graph, Split
from lignn.datasets.statistics import statistics

# The table of the data folder: nodes, undirected edges, edges as the paper counts, average degree, features, their
# non-zeros, classes, intra-class edges (%), public splits. Degree and intra-class rate equal the paper's Table 2.
PUBLISHED = {
    "cora": (2708, 5278, 5278, 3.90, 1433, 49_216, 7, 81.00, 1),
    "citeseer": (3327, 4552, 4552, 2.74, 3703, 105_165, 6, 73.55, 1),
    "pubmed": (19717, 44324, 44324, 4.50, 500, 988_031, 3, 80.24, 1),
    "chameleon": (2277, 31371, 36051, 31.67, 2325, 29_157, 5, 23.39, 10),
    "squirrel": (5201, 198353, 216933, 83.42, 2089, 93_477, 5, 22.34, 10),
    "amazon_photo": (7650, 119081, 119081, 31.13, 745, 1_979_909, 8, 82.72, 0),
    "coauthor_physics": (34493, 247962, 247962, 14.38, 8415, 1_137_311, 5, 93.14, 0),
}


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_statistics(name: str, data_root: Path) -> None:
    graph = lignn.datasets.load(name, root=data_root)
    found = statistics(graph)
    assert (
        found.nodes,
        found.pairs,
        found.edges,
        round(found.average_degree, 2),
        found.features,
        graph.x.nnz,
        found.classes,
        round(100 * found.intra_class_edges, 2),
        found.public_splits,
    ) == PUBLISHED[name]
    assert graph.is_undirected
    assert found.feature_density == pytest.approx(graph.x.nnz / np.prod(graph.x.shape))


@pytest.mark.data
def test_isolated_nodes_of_citeseer(data_root: Path) -> None:
    graph = lignn.datasets.load("citeseer", root=data_root)
    assert statistics(graph).isolated == 48
    touched = np.zeros(graph.num_nodes, bool)
    touched[graph.edge_index] = True
    assert int((graph.splits[0].test.numpy() & ~touched).sum()) == 12


def test_a_small_directed_graph() -> None:
    split = Split.from_indices(5, [0], [1], [2])
    edges = [[0, 1, 1, 2, 2], [1, 0, 2, 0, 2]]
    graph = Graph(edges, x=[[1.0, 0.0]] * 5, y=[0, 0, 1, 1, -1], splits=[split])
    found = statistics(graph)
    assert (found.nodes, found.edges, found.pairs, found.features, found.classes) == (5, 5, 3, 2, 2)
    assert (found.average_degree, found.median_degree, found.maximum_degree) == (1, 1, 2)
    assert found.intra_class_edges == 3 / 5
    assert found.feature_density == 0.5
    assert (found.labelled, found.isolated, found.components) == (4, 2, 3)
    assert found.unlabelled_components == pytest.approx(1 / 3)
    assert found.public_splits == 1


def test_a_graph_without_features() -> None:
    assert statistics(Graph([[0, 1], [1, 0]], y=[0, 1])).feature_density == 0
