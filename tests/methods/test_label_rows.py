"""Labels as inputs of classifiers of rows: hidden in folds while learning, all given and fed back when predicting."""

import numpy as np
import pytest
import torch

from lignn import Graph
from lignn.equilibrium import Status
from lignn.labels import KnownLabels
from lignn.methods import Boosted, Logistic, Problem, build
from lignn.methods.neighbourhood import rows
from lignn.methods.tabular import Tabular
from tests.problems import random_graph

BASES = ["logistic", "boosted"]
OPTIONS = {"hops": 2, "shares": True, "label_folds": 10}


class Recording(Tabular):
    """Keeps the rows that it is fitted to, and predicts the shares of the first block of label columns."""

    variants = 1

    def fit_rows(self, table, target, weight, multilabel) -> None:
        self.tables = [*getattr(self, "tables", []), (table, target)]

    def scores(self, table, multilabel, variant) -> np.ndarray:
        block = table[:, 2 * 5 : 2 * 5 + self.num_classes]  # 5 features, their means, then shares of the first hop
        return (block + 0.1) / (block + 0.1).sum(1, keepdims=True)


def small(share: float = 0.6, **options: object) -> tuple[Graph, Problem]:
    graph = random_graph(n=40, seed=2, **options).to_undirected()
    return graph, Problem.of(graph, torch.arange(40) < 40 * share, torch.float64)


def groups(seed: int) -> tuple[Graph, torch.Tensor]:
    """60 groups of 16 nodes around a hub, each with one of two shares of the classes; 5 of 8 nodes are known."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(60), 16)
    y = (rng.random(960) < np.where(rng.random(60) < 0.5, 0.3, 0.7)[group]).astype(np.int64)
    edges = np.stack([960 + group, np.arange(960)])
    x = torch.from_numpy(rng.normal(size=(1020, 2))).float()
    graph = Graph(edges, x=x, y=np.concatenate([y, np.full(60, -1)]), num_nodes=1020).to_undirected()
    return graph, torch.from_numpy((rng.random(1020) < 0.625) & (np.arange(1020) < 960))


def test_folds_hide_every_known_label_once_and_nothing_else() -> None:
    graph, problem = small()
    folds = problem.labels.folds(7, torch.Generator().manual_seed(0))
    assert len(folds) == 7
    assert torch.equal(torch.stack([fold.supervised for fold in folds]).sum(0), problem.labels.mask.long())
    for fold in folds:
        assert not fold.given.onehot[fold.supervised].any()
        assert torch.equal(fold.given.onehot[~fold.hidden], problem.labels.onehot[~fold.hidden])
    few = KnownLabels.of(graph, torch.arange(40) < 3)
    assert [int(fold.supervised.sum()) for fold in few.folds(10, torch.Generator().manual_seed(0))] == [1, 1, 1]


def test_the_rows_that_are_learned_have_labels_of_other_folds_only() -> None:
    graph, problem = small()
    method = Recording(5, graph.num_classes, **(OPTIONS | {"label_folds": 4}))
    method.learn(problem)
    ((table, target),) = method.tables
    known = problem.labels.mask.nonzero().flatten()
    assert np.array_equal(target, problem.labels.onehot[known].numpy())
    for fold in problem.labels.folds(4, torch.Generator().manual_seed(0)):
        inputs = method.labels.of(problem, fold.given.onehot)
        wanted = rows(problem, True, inputs)[fold.supervised.numpy()]
        assert np.array_equal(table[fold.supervised[known].numpy()], wanted)


def test_fed_back_predictions_of_a_fold_are_made_without_its_labels() -> None:
    graph, problem = small()
    method = Recording(5, graph.num_classes, **(OPTIONS | {"label_folds": 4}), max_steps=5)
    method.learn(problem)
    ((second, _),) = method.tables
    known = problem.labels.mask
    for fold in problem.labels.folds(4, torch.Generator().manual_seed(0)):
        y = graph.y.clone()
        y[fold.supervised] = (y[fold.supervised] + 1) % graph.num_classes
        other = Recording(5, graph.num_classes, **(OPTIONS | {"label_folds": 4}), max_steps=5)
        other.learn(Problem.of(graph.replace(y=y), known, torch.float64))
        mine = fold.supervised[known].numpy()
        assert np.array_equal(other.tables[0][0][mine], second[mine])
        assert not np.array_equal(other.tables[0][0][~mine], second[~mine])


def test_predictions_are_fed_back_until_they_no_longer_change() -> None:
    graph, problem = small()
    method = Recording(5, graph.num_classes, **OPTIONS, max_steps=200, tol=1e-9)
    prediction = method.predict(problem)
    assert prediction.solution.status is Status.CONVERGED
    state = method.first.predict(problem).probabilities
    for _ in range(prediction.solution.steps):
        state = method.probabilities(problem, problem.labels.clamp(state))
    assert torch.equal(state, prediction.probabilities)
    again = method.probabilities(problem, problem.labels.clamp(state))
    torch.testing.assert_close(again, state, rtol=0, atol=1e-8)
    short = Recording(5, graph.num_classes, **OPTIONS, max_steps=2, tol=1e-9).predict(problem)
    assert short.solution.status is Status.BUDGET
    assert not short.solution.ok
    assert Recording(5, graph.num_classes, **OPTIONS).predict(problem).solution is None


def test_a_share_without_the_own_label_tells_the_label_and_hidden_folds_do_not() -> None:
    """The best guess is the larger class of the group; leaving out one label makes the smaller one look right."""
    right: dict[int, list[float]] = {0: [], 10: []}
    for seed in range(3):
        graph, known = groups(seed)
        problem = Problem.of(graph, known, torch.float64)
        for folds, found in right.items():
            method = Boosted(2, 2, **(OPTIONS | {"label_folds": folds})).double()
            method.learn(problem)
            correct = method.predict(problem).labels == graph.y
            found.append(float(correct[~known & graph.labelled].double().mean()))
            assert folds or correct[known].all()
    assert np.mean(right[10]) > np.mean(right[0]) + 0.03


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("types", [None, ("a", "b")])
def test_effects_are_those_of_withdrawing_a_label(base, types) -> None:
    options = {} if types is None else {"edge_types": types}
    graph = random_graph(n=40, seed=2, **options)
    problem = Problem.of(graph, torch.arange(40) < 24, torch.float64)
    method = build("label_input", 5, graph.num_classes, base=base, edge_types=types).double()
    method.learn(problem)
    bound = method.on(problem)
    prediction = bound.solve()
    node, number = 30, 1
    effects = bound.effects(prediction, node, number)
    state = prediction.probabilities[node, number]
    for j in range(40):
        mask = problem.labels.mask.clone()
        mask[j] = False
        without = bound.with_labels(KnownLabels.of(graph, mask, torch.float64)).solve()
        torch.testing.assert_close(effects.gains[j], state - without.probabilities[node, number], rtol=0, atol=1e-9)
    torch.testing.assert_close(effects.gains, effects.shares, rtol=0, atol=1e-12)
    nothing = method.probabilities(problem, torch.zeros_like(problem.labels.onehot))[node, number]
    assert effects.together == pytest.approx(float(state - nothing), abs=1e-9)


@pytest.mark.parametrize("steps", [1, 3])
def test_effects_of_fed_back_predictions_are_those_of_the_last_step(steps: int) -> None:
    graph, problem = small()
    method = build("label_reuse", 5, graph.num_classes, base="logistic", max_steps=steps).double()
    method.learn(problem)
    prediction = method.predict(problem)
    assert prediction.solution.ok
    assert prediction.solution.steps == steps
    node, number = 30, 2
    effects = prediction.bound.effects(prediction, node, number)
    fed_back = method.first.predict(problem).probabilities
    for _ in range(steps - 1):
        fed_back = method.probabilities(problem, problem.labels.clamp(fed_back))
    clamped = problem.labels.clamp(fed_back)
    for j in (0, 5, 11):
        for row, found in ((prediction.solution.value[j], effects.gains), (0, effects.shares)):
            changed = clamped.clone()
            changed[j] = row
            left = method.probabilities(problem, changed)[node, number]
            assert float(found[j]) == pytest.approx(float(prediction.probabilities[node, number] - left), abs=1e-8)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", ["label_input", "label_reuse"])
def test_they_are_built_with_two_hops_shares_and_types(base, name) -> None:
    method = build(name, 5, 3, base=base, edge_types=["a", "b"])
    assert isinstance(method, {"logistic": Logistic, "boosted": Boosted}[base])
    assert (method.labels.hops, method.labels.shares, method.labels.types) == (2, True, ("a", "b"))
    assert (method.first is not None) == (name == "label_reuse")
    assert method.columns == 2 * 5 + 2 * 2 * 2 * 3


def test_several_classes_a_node() -> None:
    graph = random_graph(n=40, seed=3, multilabel=True)
    problem = Problem.of(graph, torch.arange(40) < 24, torch.float64)
    method = build("label_reuse", 5, graph.num_classes, base="logistic", tol=1e-4, max_steps=100).double()
    method.learn(problem)
    assert method.predict(problem).probabilities.shape == (40, graph.num_classes)
