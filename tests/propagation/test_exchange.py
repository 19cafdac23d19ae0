"""Processes on a store exchange as many bytes as docs/guides/scale.md says."""

import numpy as np
import pytest

from lignn.bench.cluster import in_processes, received_by, side_of
from lignn.store import StoredGraph
from tests.problems import random_graph
from tests.stores import stored

N, PARTS = 60, 6
PRODUCTS = 2
"""Of a step of LI-GCN, both as wide as the number of classes."""
FLOAT32 = 4


def received(path):
    return received_by(side_of(StoredGraph(path)))


def halos(store, graph, count):
    """Return how many nodes of other processes are neighbours of the rows of each process, counted in the graph."""
    position = np.empty(N, int)
    position[store.number.numpy()] = np.arange(N)
    process = np.searchsorted(store.bounds[PARTS // count :: PARTS // count], position, side="right")
    source, target = graph.edge_index.numpy()
    return [len(np.unique(source[(process[target] == rank) & (process[source] != rank)])) for rank in range(count)]


@pytest.mark.parametrize("count", [2, 3])
def test_bytes_of_a_step_are_those_of_the_halo_rows(tmp_path, count):
    graph = random_graph(N)
    store = stored(graph, tmp_path / "s", PARTS)
    wanted = halos(store, graph, count)
    assert min(wanted) > 0
    found = in_processes(count, received, store.path)
    assert [each["halo_rows"] for each in found] == wanted
    assert [each["bytes"] for each in found] == [FLOAT32 * graph.num_classes * rows * PRODUCTS for rows in wanted]
