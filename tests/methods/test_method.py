"""What every method of the family has in common, whatever the graph."""

import pytest
import torch

from lignn import Graph, Split
from lignn.errors import ConfigError, InputError
from lignn.methods import NAMES, Problem
from lignn.training import Training, scorer, train
from tests.methods.small import built, gradients, learned, patchwork
from tests.problems import random_graph

KINDS = {
    "plain": {},
    "directed": {"directed": True},
    "weighted": {"weighted": True},
    "multilabel": {"multilabel": True},
    "directed weighted multilabel": {"directed": True, "weighted": True, "multilabel": True},
}


def trained(name, graph, known, epochs=2):
    rest = (~known).nonzero().flatten()
    split = Split.from_indices(graph.num_nodes, known.nonzero().flatten(), rest[::2], rest[1::2])
    method, problem = built(name, graph), Problem.of(graph, known, torch.float64)
    train(
        method,
        problem,
        problem,
        scorer(graph, split),
        torch.Generator().manual_seed(0),
        Training(max_epochs=epochs),
    )
    return method, problem


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_unlabelled_components_get_valid_distributions_and_are_flagged(name, kind):
    graph, known, reached = patchwork(**KINDS[kind])
    if name == "boosted" and graph.is_multilabel:
        with pytest.raises(ConfigError, match="'boosted' needs one class per node"):
            trained(name, graph, known)
        return
    method, problem = trained(name, graph, known)
    assert all(weight.isfinite().all() for weight in method.parameters())
    prediction = method.predict(problem)
    p = prediction.probabilities
    assert p.shape == (21, 3)
    assert p.isfinite().all()
    assert (p >= 0).all()
    assert (p <= 1 + 1e-12).all()
    if not graph.is_multilabel:
        torch.testing.assert_close(p.sum(1), torch.ones(21, dtype=torch.float64))
    assert torch.equal(prediction.evidence, reached)


@pytest.mark.parametrize("name", ["lpa", "reslpa"])
def test_propagated_methods_are_undecided_where_no_label_arrives(name):
    graph, known, reached = patchwork()
    method, problem = trained(name, graph, known)
    prediction = method.predict(problem)
    torch.testing.assert_close(prediction.probabilities[~reached], torch.full((6, 3), 1 / 3, dtype=torch.float64))
    assert prediction.solution.ok


@pytest.mark.parametrize("name", NAMES)
def test_a_weight_counts_as_that_many_edges(name):
    graph = random_graph(n=14, seed=3)
    times = torch.randint(1, 4, (graph.num_edges,), generator=torch.Generator().manual_seed(0))
    weighted = graph.replace(edge_weight=times.double())
    repeated = graph.replace(edge_index=graph.edge_index.repeat_interleave(times, 1))
    known = torch.arange(14) < 7
    problems = [Problem.of(g, known, torch.float64) for g in (graph, weighted, repeated)]
    results = [learned(built(name, graph).eval(), problem).predict(problem) for problem in problems]
    plain, first, second = (result.probabilities for result in results)
    torch.testing.assert_close(first, second, rtol=0, atol=1e-6)
    assert (plain - first).abs().max() > 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_the_numbering_of_nodes_is_of_no_matter(name):
    graph, known, _ = patchwork(seed=5, directed=True, weighted=True)
    order = torch.randperm(21, generator=torch.Generator().manual_seed(0))
    place = order.argsort()
    renumbered = Graph(
        place[graph.edge_index], x=graph.x[order], y=graph.y[order], edge_weight=graph.edge_weight, num_nodes=21
    )
    problems = Problem.of(graph, known, torch.float64), Problem.of(renumbered, known[order], torch.float64)
    first, second = (learned(built(name, graph).eval(), problem).predict(problem) for problem in problems)
    torch.testing.assert_close(second.probabilities, first.probabilities[order], rtol=0, atol=1e-6)
    assert torch.equal(second.evidence, first.evidence[order])


@pytest.mark.parametrize("name", NAMES)
def test_graphs_without_features(name):
    graph, known, _ = patchwork(seed=6)
    problem = Problem.of(graph.replace(x=None), known, torch.float64)
    if name in ("ignn", "eignn"):
        with pytest.raises(InputError, match=f"{name.upper()} needs node features, this graph has none"):
            built(name, graph).predict(problem)
        return
    method = learned(built(name, graph.replace(x=None)), problem)
    if any(True for _ in method.parameters()):
        _, slopes = gradients(method, problem)
        assert all(slope.isfinite().all() for slope in slopes.values())
    assert method.predict(problem).probabilities.isfinite().all()


@pytest.mark.parametrize("name", ["backbone", "correct_and_smooth", "ignn", "eignn"])
def test_methods_without_label_input_do_not_look_at_known_labels(name):
    """Before its second stage C&S predicts as its base."""
    graph, known, _ = patchwork(seed=7)
    method = built(name, graph).eval()
    few = known & (torch.arange(21) < 3)
    first, second = (method.predict(Problem.of(graph, mask, torch.float64)).probabilities for mask in (known, few))
    assert torch.equal(first, second)
