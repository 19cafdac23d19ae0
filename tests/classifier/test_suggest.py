"""Which nodes to label next."""

import numpy as np
import pytest
import torch

from lignn import Graph, NodeClassifier, datasets
from lignn.classifier.explain import entropy
from lignn.errors import InputError
from lignn.labels import KnownLabels
from tests.classifier.small import fitted


def test_entropy_in_closed_form():
    probabilities = torch.tensor([[0.5, 0.5], [1.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(entropy(probabilities, False), torch.tensor([np.log(2), 0.0]))
    torch.testing.assert_close(entropy(probabilities, True), torch.tensor([2 * np.log(2), 0.0]))


def test_the_hubs_of_unlabelled_stars_come_first():
    """A labelled pair, and three stars of different sizes that no label reaches: a hub reaches its whole star."""
    edges, hubs, n = [(0, 1)], [], 2
    for size in (4, 8, 6):
        hubs.append(n)
        edges += [(n, n + i) for i in range(1, size + 1)]
        n += size + 1
    graph = Graph(np.array(edges).T, y=[0, 1] + [-1] * (n - 2)).to_undirected()
    assert NodeClassifier("lpa").fit(graph).suggest(3).tolist() == [hubs[1], hubs[2], hubs[0]]


def test_only_unlabelled_nodes_each_once():
    classifier = fitted("lpa")
    chosen = classifier.suggest(60)
    assert len(set(chosen.tolist())) == 60
    assert not classifier.decision().known[chosen].any()
    with pytest.raises(InputError, match="k: between 1 and 60 unlabelled nodes"):
        classifier.suggest(61)


def right_with(prediction, nodes, y):
    """Share of right predictions with the labels of some nodes added."""
    mask = prediction.problem.labels.mask.clone()
    mask[nodes] = True
    onehot = torch.nn.functional.one_hot(y, 10).float() * mask[:, None]
    return (prediction.bound.with_labels(KnownLabels(mask, onehot)).solve().labels == y).double().mean().item()


def test_better_than_random():
    """Digits with 10 first labels and 20 more: over seeds, suggested ones bring more than random ones."""
    graph = datasets.load("digits")
    gains = []
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(graph.num_nodes, generator=generator)
        first = torch.stack([order[graph.y[order] == c][0] for c in range(10)])
        known = torch.full((graph.num_nodes,), -1)
        known[first] = graph.y[first]
        classifier = NodeClassifier("lpa", calibrate=False).fit(graph.replace(y=known))
        suggested, random = classifier.suggest(20), order[known[order] < 0][:20]
        prediction = classifier._fitted.prediction
        gains.append(right_with(prediction, suggested, graph.y) - right_with(prediction, random, graph.y))
    assert np.mean(gains) > 0.015
    assert np.mean(np.array(gains) > 0) > 0.5
