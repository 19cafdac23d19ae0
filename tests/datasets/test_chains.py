import numpy as np
import pytest
import torch

import lignn
from lignn import measures
from lignn.errors import DatasetError


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
    # the order of the reference: noise for all features first, then one shuffle of all nodes
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
