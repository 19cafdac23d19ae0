"""3ference: no node sees its own label, so all known nodes supervise in one pass."""

import pytest
import torch

from lignn.backbones import GCN, SGC
from lignn.errors import ConfigError
from lignn.methods import Problem, ThreeFerence
from tests.methods.small import directional_error, patchwork, small_problem


def sgc(graph, **options):
    c = graph.num_classes
    generator = torch.Generator().manual_seed(0)
    return SGC(graph.num_features, c, c, hidden=8, hops=1, generator=generator, **options).double()


@pytest.mark.parametrize("head", ["linear", "mlp"])
@pytest.mark.parametrize("loops", [False, True])
def test_own_label_never_reaches_own_prediction(head, loops):
    """Not even where the graph has self-loops; its neighbours' predictions do see it."""
    graph, known, _ = patchwork(directed=True)
    if loops:
        graph = graph.replace(edge_index=torch.cat([graph.edge_index, torch.arange(21).repeat(2, 1)], 1))
    problem = Problem.of(graph, known, torch.float64)
    method = ThreeFerence(sgc(graph, head=head)).eval()
    step = method.step.bind(problem)
    onehot = problem.labels.onehot.clone().requires_grad_()
    jacobian = torch.autograd.functional.jacobian(step, onehot)
    own = torch.stack([jacobian[i, :, i] for i in range(21)])
    assert not own.any()
    assert jacobian.any()


def test_loss_is_over_all_known_nodes_and_needs_no_randomness():
    graph, split, problem = small_problem(2)
    method = ThreeFerence(sgc(graph))
    out = method.step.bind(problem)(problem.labels.onehot)
    expected = torch.nn.functional.nll_loss(out[split.train].log(), graph.y[split.train])
    losses = [method.epoch(problem, torch.Generator().manual_seed(seed)).loss.item() for seed in range(3)]
    assert losses == pytest.approx([expected.item()] * 3, rel=1e-12)


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_gradient_against_finite_differences(head):
    graph, _, problem = small_problem(3)
    assert directional_error(ThreeFerence(sgc(graph, head=head)), problem) < 1e-6


def test_prediction_is_the_equilibrium():
    graph, _, problem = small_problem(4)
    method = ThreeFerence(sgc(graph)).eval()
    prediction = method.predict(problem)
    assert prediction.solution.ok
    again = method.on(problem).map(prediction.probabilities)
    torch.testing.assert_close(again, prediction.probabilities, rtol=0, atol=1e-4)


def test_only_one_hop():
    generator = torch.Generator().manual_seed(0)
    for network in (SGC(5, 3, 3, hops=2, generator=generator), GCN(5, 3, 3, generator=generator)):
        with pytest.raises(ConfigError, match="SGC of one hop"):
            ThreeFerence(network)
