"""Small graphs are trained with one thread, whatever the clock says."""

import pytest
import torch

from lignn.methods import Problem
from lignn.training.loop import enough_threads
from tests.problems import random_graph


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(("nodes", "inside"), [(100, 1), (4000, 2)])
def test_the_size_of_the_graph_decides(nodes, inside):
    problem = Problem.of(random_graph(nodes), torch.ones(nodes, dtype=torch.bool))
    with enough_threads(problem):
        assert torch.get_num_threads() == inside
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_an_error_inside_restores_the_threads():
    problem = Problem.of(random_graph(), torch.ones(30, dtype=torch.bool))
    with pytest.raises(KeyboardInterrupt), enough_threads(problem):
        raise KeyboardInterrupt
    assert torch.get_num_threads() == 2
