"""Classifiers of rows: what is in a row, and that they are those of scikit-learn and LightGBM."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression

from lignn import Graph
from lignn.errors import InputError
from lignn.labels import KnownLabels
from lignn.methods import Boosted, Logistic, Problem
from lignn.methods.neighbourhood import principal, rows, width
from tests.problems import random_graph


def small() -> tuple[Graph, torch.Tensor]:
    return random_graph(n=30, seed=2), torch.arange(30) < 18


def test_a_row_has_features_means_and_counts_but_never_its_own_label():
    edges = [[0, 1, 2, 1], [1, 0, 1, 1]]  # 0 and 2 point to 1, 1 to 0, and 1 to itself
    graph = Graph(edges, x=torch.tensor([[1.0], [2.0], [4.0]]), y=[0, 1, 1])
    problem = Problem.of(graph, torch.tensor([True, True, True]), torch.float64)
    expected = [[1, 2, 0, 1], [2, 2.5, 1, 1], [4, 0, 0, 0]]
    assert np.allclose(rows(problem, neighbours=True), expected)
    assert np.allclose(rows(problem, neighbours=False), [[1], [2], [4]])
    assert width(1, 2, True) == 4


def test_the_label_of_a_node_changes_the_rows_of_others_only():
    graph, known = small()
    problem = Problem.of(graph, known, torch.float64)
    before = rows(problem, neighbours=True)
    y = graph.y.clone()
    y[3] = (y[3] + 1) % graph.num_classes
    after = rows(Problem.of(graph.replace(y=y), known, torch.float64), neighbours=True)
    changed = np.flatnonzero((before != after).any(1))
    targets = graph.edge_index[1][graph.edge_index[0] == 3].tolist()
    assert set(changed) == set(targets) - {3}


def test_sparse_features_have_rows_of_length_one_and_the_same_answers():
    graph, known = small()
    x = np.abs(graph.x.numpy())
    dense = graph.replace(x=torch.from_numpy(x / np.linalg.norm(x, axis=1, keepdims=True)))
    sparse = graph.replace(x=sp.csr_array(x))
    one, other = (rows(Problem.of(each, known, torch.float64), neighbours=True) for each in (dense, sparse))
    assert np.allclose(one, other.toarray(), atol=1e-6)


def test_it_is_scikit_learns_regression():
    graph, known = small()
    problem = Problem.of(graph, known, torch.float64)
    method = Logistic(graph.num_features, graph.num_classes, label_folds=0).double()
    assert method.learn(problem)
    table = rows(problem, neighbours=True)
    train = table[known.numpy()]
    scaled = (table - train.mean(0)) / np.where(train.std(0) > 1e-12, train.std(0), 1)
    model = LogisticRegression(C=1.0, max_iter=300).fit(scaled[known.numpy()], graph.y[known].numpy())
    torch.testing.assert_close(
        method.predict(problem).probabilities, torch.from_numpy(model.predict_proba(scaled)), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("kind", [Logistic, Boosted])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_variant_with_the_best_validation_score_is_used_and_saved(kind, classes):
    graph, known = small()
    graph = graph.replace(y=graph.y % classes, class_names=[str(c) for c in range(classes)])
    problem = Problem.of(graph, known, torch.float64)
    method = kind(graph.num_features, classes).double()
    method.learn(problem)
    bound = method.on(problem)
    wanted, asked = 1, []

    def score(prediction):
        asked.append(prediction.probabilities)
        return float(len(asked) == wanted + 1)

    bound.choose(score)
    assert method.chosen == wanted
    assert torch.equal(bound.solve().probabilities, asked[wanted])
    again = kind(graph.num_features, classes).double()
    again.load_state_dict(method.state_dict())
    assert torch.equal(again.predict(problem).probabilities, asked[wanted])
    refit = kind(graph.num_features, classes).double()
    refit.adopt_choices(method)
    refit.learn(problem)
    torch.testing.assert_close(refit.predict(problem).probabilities, asked[wanted])


def test_trees_are_lightgbms_text():
    graph, known = small()
    problem = Problem.of(graph, known, torch.float64)
    method = Boosted(graph.num_features, graph.num_classes)
    method.learn(problem)
    text = bytes(method.get_extra_state().numpy()).decode()
    assert "tree\nversion=v" in text
    assert "num_class=3" in text


def test_nothing_to_learn_from():
    with pytest.raises(InputError, match="neighbours=False leaves nothing else"):
        Logistic(0, 3, neighbours=False)


def test_trees_take_the_leading_directions_of_many_features():
    """Those of the features of all nodes; labels have no part in them, and a saved model keeps them."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 3, generator=generator) @ torch.randn(3, 40, generator=generator)
    graph = random_graph(n=60, seed=1).replace(x=x)
    problem = Problem.with_labels(graph, KnownLabels.of(graph, torch.arange(60) < 40))
    found = principal(problem, 3)
    np.testing.assert_allclose(found.T @ found, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(x.numpy() @ found @ found.T, x.numpy(), atol=1e-5)  # rank 3
    trees = Boosted(40, 3, label_folds=2, most_columns=10)
    trees.learn(problem)
    assert trees.columns == 2 * 5 + 3
    other = Boosted(40, 3, label_folds=2, most_columns=10)
    other.load_state_dict(trees.state_dict())
    torch.testing.assert_close(other.predict(problem).probabilities, trees.predict(problem).probabilities)
    assert "projection" not in Boosted(40, 3, label_folds=2).state_dict()  # as saved before


def test_directions_are_of_seen_nodes_alone():
    graph, unseen = random_graph(n=60, seed=1), torch.arange(60) >= 50
    changed = graph.replace(x=torch.where(unseen[:, None], graph.x + 9, graph.x))
    first, second = (
        principal(Problem.of(one, torch.arange(60) < 30, torch.float64).without_edges_at(unseen), 3)
        for one in (graph, changed)
    )
    assert np.array_equal(first, second)
