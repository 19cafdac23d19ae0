"""A store is inspected part by part with the facts of the same graph in memory."""

import numpy as np
import pytest
import torch

from lignn import Graph, Split
from lignn.evaluation import inspection, stored_inspection
from tests.cli.commands import run
from tests.problems import random_graph
from tests.stores import stored

N = 60
SAME = ("nodes", "edges", "directed", "self_loops", "degrees", "degree_counts", "components", "largest_component")
LABELS = ("classes", "known", "held_back", "transitions", "evidence", "several", "warnings")


def sparse_graph(directed, typed=False):
    """Return a graph of several components with self-loops, some labels of which are unknown or for the test."""
    generator = np.random.default_rng(3)
    ends = generator.integers(N - 5, size=(2, 45))
    y = torch.from_numpy(generator.integers(-1, 3, N))
    mask = torch.arange(N) % 3
    graph = Graph(
        np.concatenate([ends, [[0], [0]]], 1),
        x=np.eye(N, dtype=np.float32),
        y=y,
        splits=[Split(mask == 0, mask == 1, mask == 2)],
        edge_type=np.arange(46) % 2 if typed else None,
        edge_types=("a", "b") if typed else None,
    ).coalesced()
    return graph if directed else graph.to_undirected()


@pytest.mark.parametrize(("directed", "typed"), [(False, False), (True, False), (True, True)])
def test_the_facts_of_memory(tmp_path, directed, typed):
    graph = sparse_graph(directed, typed)
    found, wanted = stored_inspection.inspect(stored(graph, tmp_path / "s")), inspection.inspect(graph)
    for name in (*SAME, *LABELS):
        assert getattr(found, name) == getattr(wanted, name), name
    for name in ("edge", "node", "adjusted"):
        assert getattr(found.homophily, name) == pytest.approx(getattr(wanted.homophily, name), abs=1e-12)


def test_labels_of_test_nodes_change_nothing(tmp_path):
    graph = sparse_graph(directed=True)
    flipped = graph.replace(y=torch.where(graph.splits[0].test & graph.labelled, 2 - graph.y, graph.y))
    one, two = (stored_inspection.inspect(stored(each, tmp_path / "s")) for each in (graph, flipped))
    assert one.plain() == two.plain()


def test_several_labels_and_none(tmp_path):
    for graph in (random_graph(20, multilabel=True), random_graph(20).replace(y=None)):
        found, wanted = stored_inspection.inspect(stored(graph, tmp_path / "s")), inspection.inspect(graph)
        assert (found.classes, found.homophily, found.known) == (wanted.classes, None, wanted.known)


def test_the_command_and_its_page(tmp_path):
    store = stored(sparse_graph(directed=False), tmp_path / "s")
    told = run("inspect", store.path, "-o", tmp_path / "page.html")
    assert "60 features" in " ".join(told.split())
    assert "edges between equal labels" in told
    assert (tmp_path / "page.html").stat().st_size > 1000
