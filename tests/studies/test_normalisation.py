"""The ways of batch normalisation that were not chosen: which statistics they have, when these move, and gradients."""

import copy

import pytest
import torch

from lignn.backbones import solving
from lignn.errors import ConfigError
from lignn.studies.normalisation import use_statistics
from tests.methods.test_normalised import EXACT, assert_gradient, method_of, small_problem, statistics


def changed(problem, kind):
    method = method_of(problem, gradient=EXACT, hide="labels")
    before = statistics(method)
    use_statistics(method, kind)
    for name, value in before.items():
        method.get_buffer(name).copy_(value)
    return method.double()


@pytest.mark.parametrize("kind", ["batch", "running"])
def test_the_gradient_is_that_of_finite_differences(kind):
    problem = small_problem()
    assert_gradient(changed(problem, kind), problem)


@pytest.mark.parametrize("kind", ["batch", "running"])
def test_the_solve_and_the_taped_step_are_one_map(kind):
    problem = small_problem()
    method = changed(problem, kind).train()
    network = method.step.backbone
    adj = problem.operator(network)
    state = torch.rand_like(problem.labels.onehot)

    def logits(mode):
        with torch.no_grad():
            return mode.step(mode.features(problem.x, adj), state, adj)

    before = statistics(network)
    with solving(network):
        solved = logits(network)
    assert all(torch.equal(value, before[name]) for name, value in statistics(network).items())
    predicts = copy.deepcopy(network).eval()
    taped = logits(network)
    torch.testing.assert_close(taped, solved)
    assert torch.allclose(logits(predicts), solved) == (kind == "running")
    assert not any(torch.equal(value, before[name]) for name, value in statistics(network).items())


def test_an_unknown_kind_is_refused():
    with pytest.raises(ConfigError, match="statistics: 'bach' is unknown, choose from batch, running"):
        use_statistics(method_of(small_problem()), "bach")
