"""Where LPA and C&S are PyG's `LabelPropagation` and `CorrectAndSmooth`, and where they are not.

PyG computes `out ← α Ã out + (1-α) out_0`: it anchors at the initial labels. With α = 1, A_λ in the place of Ã, and a
hook that resets known rows, this is LPA; its Correct without autoscale has that hook, its Smooth has not.
"""

import pytest
import torch
from torch_geometric.nn import CorrectAndSmooth as PyGCorrectAndSmooth
from torch_geometric.nn import LabelPropagation

from lignn.equilibrium.solvers import Anderson, Picard
from lignn.methods import LPA, Problem
from lignn.methods.correct_and_smooth import correct, iterate, smooth
from tests.methods.small import dense_operator, patchwork
from tests.problems import half_split, random_graph

K = 7


@pytest.fixture(params=[{}, {"directed": True, "weighted": True}])
def problem(request):
    graph, known, _ = patchwork(3, **request.param)
    return Problem.of(graph, known, torch.float64)


def lazy_edges(problem, lam):
    lazy = problem.adjacency().lazy(lam)
    return lazy, {"edge_index": lazy.edge_index, "edge_weight": lazy.edge_weight}


@pytest.mark.parametrize("lam", [0.4, 1.0])
def test_label_propagation_with_a_hook_that_resets_is_lpa(problem, lam):
    _, edges = lazy_edges(problem, lam)
    labels = problem.labels
    theirs = LabelPropagation(K, alpha=1.0)(labels.onehot, mask=labels.mask, post_step=labels.clamp, **edges)
    ours = LPA(lam, Picard(tol=0, max_steps=K)).on(problem).solve().solution.value
    torch.testing.assert_close(labels.clamp(ours), theirs, rtol=0, atol=1e-12)


def test_label_propagation_without_it_anchors_at_the_initial_labels():
    """It ends at `(1-α) (I - αÃ)^-1 M_t Y`, which is not label propagation's `(I - A_λ,uu)^-1 A_λ,ul Y_l`."""
    graph = random_graph(n=20, seed=4)
    problem = Problem.of(graph, half_split(20, 4).train, torch.float64)
    A, Y = dense_operator(graph, self_loops=False), problem.labels.onehot
    theirs = LabelPropagation(500, alpha=0.9)(Y, graph.edge_index, mask=problem.labels.mask)
    anchored = 0.1 * torch.linalg.solve(torch.eye(20, dtype=torch.float64) - 0.9 * A, Y)
    torch.testing.assert_close(theirs, anchored, rtol=0, atol=1e-6)
    ours = LPA(0.9, Anderson(tol=1e-12)).on(problem).solve().solution.value
    unknown = ~problem.labels.mask
    assert (ours - theirs)[unknown].abs().max() > 0.1
    assert (ours.argmax(1) != theirs.argmax(1))[unknown].any()


@pytest.mark.parametrize("lam", [0.4, 1.0])
def test_correct_without_autoscale_is_correct(problem, lam):
    lazy, edges = lazy_edges(problem, lam)
    labels = problem.labels
    base = torch.rand(21, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64).softmax(1)
    theirs = PyGCorrectAndSmooth(K, 1.0, K, 1.0, autoscale=False)
    corrected = theirs.correct(base, labels.onehot[labels.mask], labels.mask, **edges)
    *_, ours = iterate(correct(lazy, labels, base), base, K)
    torch.testing.assert_close(labels.clamp(ours), corrected, rtol=0, atol=1e-12)


def test_smooth_agrees_for_one_step_and_then_forgets_the_labels(problem):
    """PyG sets known rows once, we before every step."""
    lazy, edges = lazy_edges(problem, 0.8)
    labels = problem.labels
    start = torch.rand(21, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64).softmax(1)
    states = list(iterate(smooth(lazy, labels), start, K))

    def theirs(count):
        model = PyGCorrectAndSmooth(1, 1.0, count, 1.0)
        return model.smooth(start, labels.onehot[labels.mask], labels.mask, **edges)

    torch.testing.assert_close(states[1].clamp(0, 1), theirs(1), rtol=0, atol=1e-12)
    assert (states[K] - theirs(K)).abs().max() > 0.05
