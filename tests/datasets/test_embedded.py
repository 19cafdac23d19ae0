"""The embedded datasets: weekday, chains, typed, digits and karate."""

import datetime
import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

import lignn
from lignn import Graph, measures
from lignn.errors import DatasetError

NEIGHBOURS_SHA256 = "457d8f3c27ec9a3bda9dd44397b59bed99d162f70f292711bd149266543b7a9b"


@pytest.fixture(scope="module")
def weekday() -> Graph:
    return lignn.datasets.load("weekday")


def neighbours(graph: Graph) -> np.ndarray:
    source, target = graph.edge_index.numpy()
    assert np.array_equal(source, np.arange(graph.num_nodes).repeat(4))
    return target.reshape(-1, 4).astype("<i4")


def test_days_and_labels(weekday: Graph) -> None:
    assert (weekday.num_nodes, weekday.num_features, weekday.num_classes) == (14610, 8, 7)
    assert weekday.node_ids is not None
    assert weekday.class_names is not None
    for node in (0, 59, 7364, 14609):
        day = datetime.date(1980, 1, 1) + datetime.timedelta(node)
        assert weekday.node_ids[node] == day.isoformat()
        assert "".join(str(int(digit)) for digit in weekday.x[node]) == day.strftime("%Y%m%d")
        assert weekday.y[node] == day.weekday()
        assert weekday.class_names[weekday.y[node]] == day.strftime("%A")


def test_four_neighbours_at_distance_one_and_the_papers_intra_class_rate(weekday: Graph) -> None:
    source, target = weekday.edge_index
    assert (weekday.x[source] - weekday.x[target]).square().sum(1).unique().tolist() == [1]
    assert weekday.coalesced().num_edges == weekday.num_edges == 58440
    assert not weekday.is_undirected
    assert round(100 * measures.edge_homophily(weekday), 2) == 1.44


def test_ties_are_broken_as_in_the_paper(weekday: Graph) -> None:
    # Another version of torch might choose other neighbours among the equally near; LI-GCN then stays near 30 %.
    assert hashlib.sha256(neighbours(weekday).tobytes()).hexdigest() == NEIGHBOURS_SHA256


@pytest.mark.data
def test_the_papers_neighbours(weekday: Graph, data_root: Path) -> None:
    with np.load(data_root / "weekday_neighbours.npz") as file:
        assert np.array_equal(neighbours(weekday), file["neighbours"])


@pytest.mark.parametrize("length", [10, 50])
def test_the_papers_chains(length: int) -> None:
    graph = lignn.datasets.load(f"chains-{length}")
    n = 200 * length
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (n, 400 * (length - 1), 100, 10)
    assert graph.is_undirected
    assert measures.edge_homophily(graph) == 1
    assert torch.equal(graph.y, torch.arange(10).repeat_interleave(20 * length))
    component = torch.arange(200).repeat_interleave(length)
    assert torch.equal(measures.components(graph), component)
    first = torch.arange(0, n, length)
    assert torch.equal(graph.x[first], torch.eye(10, 100)[component[first] // 20])
    assert int(graph.x.count_nonzero()) == 200


@pytest.mark.parametrize("length", [10, 100])
def test_the_papers_split(length: int) -> None:
    # The reference draws the noise of all features first, then shuffles all nodes once.
    random = np.random.RandomState(42)
    random.uniform(size=(10, 20, length, 100))
    order = np.arange(200 * length)
    random.shuffle(order)
    (split,) = lignn.datasets.load(f"chains-{length}").splits
    tenth = 20 * length
    parts = (order[:200], order[200 : 200 + tenth], order[200 + tenth :])
    for mask, nodes in zip((split.train, split.val, split.test), parts, strict=True):
        assert np.array_equal(mask.nonzero().flatten(), np.sort(nodes))


def test_the_draws_are_pinned() -> None:
    (split,) = lignn.datasets.load("chains-10").splits
    assert split.train.nonzero().flatten()[:6].tolist() == [1, 4, 18, 19, 23, 27]


def test_noise_is_uniform_and_drawn_first() -> None:
    clean = lignn.datasets.load("chains-10")
    noisy = lignn.datasets.load("chains-10", noise=0.5)
    draws = np.random.RandomState(42).uniform(-0.5, 0.5, (2000, 100)).astype(np.float32)
    torch.testing.assert_close(noisy.x - clean.x, torch.from_numpy(draws), atol=1e-6, rtol=0)
    assert torch.equal(noisy.splits[0].train, clean.splits[0].train)


def test_heterophilic_labels_advance_by_one() -> None:
    graph = lignn.datasets.load("chains-7", heterophilic=True, num_classes=3, chains_per_class=2)
    assert measures.edge_homophily(graph) == 0
    assert graph.y[:7].tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert graph.y[14:21].tolist() == [1, 2, 0, 1, 2, 0, 1]
    homophilic = lignn.datasets.load("chains-7", num_classes=3, chains_per_class=2)
    assert torch.equal(graph.x, homophilic.x)
    assert torch.equal(graph.splits[0].test, homophilic.splits[0].test)


def test_sizes_and_seed() -> None:
    graph = lignn.datasets.load("chains-4", num_classes=2, chains_per_class=5, num_features=2, seed=7)
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (40, 60, 2, 2)
    (split,) = graph.splits
    assert [int(part.sum()) for part in (split.train, split.val, split.test)] == [10, 4, 26]
    other = lignn.datasets.load("chains-4", num_classes=2, chains_per_class=5, num_features=2, seed=8)
    assert not torch.equal(split.train, other.splits[0].train)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("chains-1", {}, "length must be at least 2, got 1"),
        ("chains-5", {"num_classes": 1}, "num_classes must be at least 2, got 1"),
        ("chains-5", {"chains_per_class": 0}, "chains_per_class must be at least 1, got 0"),
        ("chains-5", {"num_features": 9}, "num_features must be at least 10, got 9"),
        ("chains-5", {"noise": -1.0}, "noise must be finite and not negative, got -1.0"),
        ("chains-5", {"noise": float("nan")}, "noise must be finite and not negative, got nan"),
    ],
)
def test_impossible_options(name: str, options: dict, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        lignn.datasets.load(name, **options)


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


@pytest.mark.parametrize("options", [{}, {"num_nodes": 60, "num_classes": 3, "edges_per_type": 1, "seed": 1}])
def test_types_of_edges_alone_tell_what_a_neighbours_class_means(options: dict[str, int]) -> None:
    graph = lignn.datasets.load("typed", **options)
    defaults = {"num_nodes": 2000, "num_classes": 4, "edges_per_type": 2}
    n, c, k = ((defaults | options)[name] for name in defaults)
    assert (graph.num_nodes, graph.num_classes, graph.num_edges) == (n, c, n * c * k)
    assert graph.edge_types == tuple(f"shift-{number}" for number in range(c))
    source, target = graph.edge_index
    assert torch.equal((graph.y[source] + graph.edge_type) % c, graph.y[target])
    for kinds in (graph.y[source], graph.edge_type):  # the same histogram of classes and of types at every node
        counted = torch.zeros(n, c, dtype=torch.int64)
        counted.index_put_((target, kinds), torch.ones_like(target), accumulate=True)
        assert (counted == k).all()
    assert graph.y.bincount().tolist() == [n // c] * c


def test_what_the_features_of_the_typed_graph_say() -> None:
    loud, mute = (lignn.datasets.load("typed", signal=signal) for signal in (1.0, 0.0))
    assert torch.equal(loud.edge_index, mute.edge_index)
    difference = loud.x - mute.x
    torch.testing.assert_close(difference[:, :4], torch.nn.functional.one_hot(loud.y).float())
    assert not difference[:, 4:].any()
    assert abs(mute.x.mean()) < 0.02
    assert torch.equal(lignn.datasets.load("typed").x, loud.x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_nodes": 10}, "num_nodes must be a multiple of num_classes ≥ 2, got 10 and 4"),
        ({"num_classes": 1}, "got 2000 and 1"),
        ({"edges_per_type": 0}, "edges_per_type ≥ 1"),
        ({"num_features": 3}, "num_features ≥ num_classes"),
        ({"signal": -1.0}, "signal ≥ 0 are needed, got 2, 16 and -1.0"),
    ],
)
def test_typed_options_are_checked(options: dict[str, float], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        lignn.datasets.load("typed", **options)


def test_karate() -> None:
    graph = lignn.datasets.load("karate")
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (34, 156, 34, 4)
    assert graph.is_undirected
    assert torch.equal(graph.x, torch.eye(34))
    assert torch.bincount(graph.y).tolist() == [13, 12, 4, 5]
    assert graph.splits == ()
    assert measures.edge_homophily(graph) == 118 / 156
