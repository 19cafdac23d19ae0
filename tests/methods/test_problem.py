"""What a method sees: evidence along edges, hidden features, and no label but the known ones."""

import pytest
import scipy.sparse as sp
import torch

from lignn import Graph
from lignn.methods import LPA, Prediction, Problem
from lignn.propagation import SparseMatrix
from tests.methods.small import patchwork, small_problem
from tests.problems import random_graph


def problem_of(edges, known, n=6, **parts):
    y = torch.arange(n) % 2
    graph = Graph(torch.tensor(edges).T, y=y, num_nodes=n, **parts)
    return Problem.of(graph, torch.tensor([i in known for i in range(n)]))


def test_evidence_follows_the_direction_of_edges():
    """0 → 1 → 2, 3 → 2, 4 and 5 alone: the label of 1 reaches 2, not 0."""
    edges = [(0, 1), (1, 2), (3, 2)]
    assert problem_of(edges, {1}).evidence.tolist() == [False, True, True, False, False, False]
    assert problem_of(edges, {3, 5}).evidence.tolist() == [False, False, True, True, False, True]
    both = edges + [(target, source) for source, target in edges]
    assert problem_of(both, {1}).evidence.tolist() == [True, True, True, True, False, False]


def test_an_edge_of_weight_zero_carries_nothing():
    edges = [(0, 1), (1, 2), (2, 3)]
    evidence = problem_of(edges, {0}, edge_weight=torch.tensor([1.0, 0.0, 1.0])).evidence
    assert evidence.tolist() == [True, True, False, False, False, False]


@pytest.mark.parametrize("seed", range(5))
def test_evidence_is_what_label_propagation_reaches(seed):
    """Sparse directed graphs: the nodes with a non-zero score after n propagations."""
    generator = torch.Generator().manual_seed(seed)
    graph = Graph(torch.randint(40, (2, 45), generator=generator), y=torch.arange(40) % 2)
    known = torch.rand(40, generator=generator) < 0.1
    known[0] = True
    problem = Problem.of(graph, known, torch.float64)
    adj, state = problem.adjacency(), known.double()
    for _ in range(40):
        state = adj @ state
    assert torch.equal(problem.evidence, state > 0)
    assert 0 < problem.evidence.sum() < 40


def test_other_known_labels_have_other_evidence():
    graph, known, reached = patchwork()
    problem = Problem.of(graph, known, torch.float64)
    assert torch.equal(problem.evidence, reached)
    hidden = problem.labels.hide(0.9, torch.Generator().manual_seed(0))
    fewer = problem.knowing(hidden.given)
    assert not fewer.evidence[20]
    assert fewer.adjacency() is problem.adjacency()


def test_labels_beyond_the_known_ones_are_not_there():
    graph, known, _ = patchwork()
    problem = Problem.of(graph, known)
    assert problem.edges.y is None
    assert not problem.labels.onehot[~known].any()


def test_operators_are_built_once():
    _, _, problem = small_problem()
    assert problem.adjacency() is problem.adjacency()
    assert problem.adjacency("row", False) is problem.adjacency("row", False) is not problem.adjacency()
    hidden = problem.hide_features(0.5, torch.Generator().manual_seed(0))
    assert hidden.adjacency() is problem.adjacency()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("rate", [0.25, 0.8])
def test_hidden_features_are_whole_rows_and_the_others_are_scaled(sparse, rate):
    graph = random_graph(n=400, num_features=5)
    graph = graph.replace(x=sp.csr_array(graph.x.numpy())) if sparse else graph
    problem = Problem.of(graph, torch.arange(400) < 9, torch.float64)
    hidden = problem.hide_features(rate, torch.Generator().manual_seed(0))
    assert isinstance(hidden.x, SparseMatrix if sparse else torch.Tensor)
    before, after = (p.x.to_dense() if sparse else p.x for p in (problem, hidden))
    kept = after.abs().sum(1) > 0
    assert kept.double().mean().item() == pytest.approx(1 - rate, abs=0.08)
    torch.testing.assert_close(after[kept], before[kept] / (1 - rate))
    assert not after[~kept].any()
    again = problem.hide_features(rate, torch.Generator().manual_seed(0)).x
    assert torch.equal(again.to_dense() if sparse else again, after)


def test_a_graph_without_features_has_none_to_hide():
    graph, known, _ = patchwork()
    problem = Problem.of(graph.replace(x=None), known)
    assert problem.hide_features(0.5, torch.Generator().manual_seed(0)).x is None


def test_labels_of_a_prediction():
    for multilabel, p, expected in [
        (False, [[0.2, 0.8], [0.6, 0.4]], [1, 0]),
        (True, [[0.2, 0.8], [0.6, 0.7]], [[0, 1], [1, 1]]),
    ]:
        graph = random_graph(n=2, num_classes=2, multilabel=multilabel)
        bound = LPA().on(Problem.of(graph, torch.tensor([True, True])))
        assert Prediction(bound, torch.tensor(p)).labels.tolist() == expected
