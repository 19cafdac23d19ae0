"""Correct and Smooth: closed form, choice of steps, the authors' quirk, and whom it stands behind."""

import pytest
import torch

from lignn.errors import ConfigError
from lignn.methods import BoundMethod, CorrectAndSmooth, Network, Prediction, Problem
from lignn.methods.correct_and_smooth import correct, iterate
from lignn.methods.method import Method
from lignn.training import Training, scorer, train
from tests.methods.small import built, dense_operator, patchwork
from tests.problems import half_split, random_graph


class Given(Method):
    """A base whose prediction is given."""

    def __init__(self, probabilities):
        super().__init__()
        self.probabilities = probabilities

    def on(self, problem):
        return BoundGiven(self, problem)


class BoundGiven(BoundMethod):
    def solve(self, start=None, solver=None):
        return Prediction(self, self.method.probabilities)


def setting(seed=0, n=24, **options):
    graph = random_graph(n=n, seed=seed, **options)
    split = half_split(n, seed)
    base = torch.rand(n, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    base = base if graph.is_multilabel else (3 * base).softmax(1)
    return graph, split, Problem.of(graph, split.train, torch.float64), base


def test_correct_converges_to_its_closed_form():
    """The residuals: `E_u = (I - A_λ,uu)^-1 A_λ,ul (Y - Ŷ_0)_l`."""
    graph, split, problem, base = setting(weighted=True)
    A = dense_operator(graph, 0.7)
    u, known = ~split.train, split.train
    error = problem.labels.onehot[known] - base[known]
    A_uu, A_ul = A[u][:, u], A[u][:, known]
    expected = base[u] + torch.linalg.solve(torch.eye(len(A_uu), dtype=torch.float64) - A_uu, A_ul @ error)
    *_, last = iterate(correct(problem.adjacency().lazy(0.7), problem.labels, base), base, 2000)
    torch.testing.assert_close(last[u], expected, rtol=0, atol=1e-10)


def loops(graph, problem, base, lambda_c, lambda_s, corrections, smoothings, accumulating=False):
    """Both phases written out on residuals and labels."""
    known, Y = problem.labels.mask, problem.labels.onehot
    A_c, A_s = dense_operator(graph, lambda_c), dense_operator(graph, lambda_s)
    state, error = base.clone(), torch.zeros_like(base)
    for _ in range(corrections):
        error[known] = Y[known] - base[known]
        error = A_c @ error
        state = state + error if accumulating else base + error
    for _ in range(smoothings):
        state[known] = Y[known]
        state = A_s @ state
    return state


@pytest.mark.parametrize("accumulating", [False, True])
def test_both_phases_are_these_loops(accumulating):
    graph, _, problem, base = setting(1)
    method = CorrectAndSmooth(Given(base), 0.3, 0.6, 10, accumulating)
    for chosen in [(0, 0), (4, 0), (0, 3), (5, 2)]:
        method.chosen = chosen
        expected = loops(graph, problem, base, 0.3, 0.6, *chosen, accumulating).clamp(min=0)
        expected = expected / expected.sum(1, keepdim=True)
        torch.testing.assert_close(method.predict(problem).probabilities, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("accumulating", [False, True])
def test_the_step_with_the_best_validation_score_goes_on(accumulating):
    """The first of equals, the base included; Smooth starts from the best of Correct."""
    graph, split, problem, base = setting(2)
    score = scorer(graph, split)

    def val(corrections, smoothings):
        state = loops(graph, problem, base, 0.4, 0.4, corrections, smoothings, accumulating)
        return (state.argmax(1) == graph.y)[split.val].double().mean().item()

    first = max(range(9), key=lambda k: (val(k, 0), -k))
    second = max(range(9), key=lambda k: (val(first, k), -k))
    method = CorrectAndSmooth(Given(base), 0.4, 0.4, 8, accumulating)
    assert torch.equal(method.predict(problem).probabilities, base)
    method.on(problem).choose(lambda prediction: score(prediction)["val"])
    assert method.chosen == (first, second)
    assert score(method.predict(problem))["val"] == val(first, second) >= val(0, 0)


def test_without_evidence_the_base_prediction_stays():
    graph, known, reached = patchwork()
    problem = Problem.of(graph, known, torch.float64)
    base = torch.rand(21, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).softmax(1)
    method = CorrectAndSmooth(Given(base))
    method.chosen = (20, 0)
    prediction = method.predict(problem)
    torch.testing.assert_close(prediction.probabilities[~reached], base[~reached])
    assert torch.equal(prediction.evidence, reached)


@pytest.mark.parametrize("base", ["backbone", "lpa", "label_reuse", "lignn", "ignn", "correct_and_smooth"])
def test_behind_any_method_it_is_never_worse_on_validation(base):
    graph, split, problem, _ = setting(3)
    method = built("correct_and_smooth", graph, base=base)
    score = scorer(graph, split)
    train(method, problem, problem, score, torch.Generator().manual_seed(0), Training(max_epochs=3))
    assert score(method.predict(problem))["val"] >= score(method.base.predict(problem))["val"]


def test_training_is_the_base_method_s_own():
    graph, split, problem, _ = setting(4)
    alone, base = (built("backbone", graph) for _ in range(2))
    behind = CorrectAndSmooth(base)
    for method in (alone, behind):
        train(method, problem, problem, scorer(graph, split), torch.Generator().manual_seed(0), Training(max_epochs=3))
    assert isinstance(base, Network)
    assert all(torch.equal(v, base.state_dict()[k]) for k, v in alone.state_dict().items())


def test_what_was_chosen_survives_a_checkpoint():
    graph, split, problem, base = setting(5)
    method, other = (CorrectAndSmooth(Given(base), steps=4) for _ in range(2))
    method.on(problem).choose(lambda prediction: scorer(graph, split)(prediction)["val"])
    other.load_state_dict(method.state_dict())
    assert other.chosen == method.chosen is not None


@pytest.mark.parametrize("options", [{"lambda_c": 0}, {"lambda_s": 1.5}, {"steps": -1}])
def test_impossible_settings(options):
    with pytest.raises(ConfigError, match="λ must be above 0 and at most 1, steps ≥ 0"):
        CorrectAndSmooth(Given(torch.zeros(1, 2)), **options)
