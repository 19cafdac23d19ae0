"""A model that teaches itself: when it begins, what it is, and that it can be interrupted."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from lignn.methods import Problem, build
from lignn.training import Training, train
from lignn.training.hooks import teaching
from tests.problems import half_split, random_graph
from tests.training.test_loop import resumes_to_the_same_end, run, setting, without_time


@pytest.fixture
def taught(monkeypatch):
    """Settings of a short training that learns from its predictions from its third epoch on."""
    monkeypatch.setattr(teaching, "FIRST", 2)
    monkeypatch.setattr(teaching, "EVERY", 3)
    return Training(max_epochs=12, teaching=1.0, learned=10.0, sure=0.4)


def test_a_model_learns_from_what_it_is_sure_of(taught):
    _, history = run(taught, scored=False)
    _, plain = run(replace(taught, teaching=0.0), scored=False)
    losses = [[record["loss"] for record in each.epochs] for each in (history, plain)]
    assert losses[0][:3] == losses[1][:3]  # epoch 3 is the first multiple of 3 that may be taught
    assert losses[0][3] > losses[1][3]


def test_a_model_that_has_not_learned_its_labels_does_not_teach(taught):
    _, history = run(replace(taught, learned=1e-3))
    _, plain = run(replace(taught, teaching=0.0))
    assert without_time(history) == without_time(plain)


def test_the_teacher_is_the_present_model_without_dropout(taught, monkeypatch):
    """What an epoch is taught is what the weights before it predict, with all known labels clamped."""
    method, problem, _ = setting()
    seen = []

    def watch(epoch, problem, generator, carry):
        method.eval()
        seen.append((problem.labels.taught, method.on(problem.knowing(plain)).solve()))
        method.train()
        return epoch(problem, generator, carry)

    plain = problem.labels
    monkeypatch.setattr(method, "epoch", partial(watch, method.epoch))
    train(method, problem, problem, None, torch.Generator().manual_seed(5), replace(taught, max_epochs=4))
    labels, prediction = seen[3]
    expected = plain.teaching(prediction.probabilities, 1.0, sure=taught.sure)
    assert torch.equal(labels.nodes, expected.nodes)
    assert torch.equal(labels.onehot, expected.onehot)
    assert labels.nodes.any()
    assert not (labels.nodes & plain.mask).any()


def test_nothing_is_taught_where_it_cannot_be(taught):
    """In the inductive setting, and if a node may have several classes."""
    _, several = run(taught, multilabel=True)
    _, plain = run(replace(taught, teaching=0.0), multilabel=True)
    assert without_time(several) == without_time(plain)
    unseen = []
    for settings in (taught, replace(taught, teaching=0.0)):
        method, problem, score = setting()
        seen = problem.without_edges_at(~problem.labels.mask)
        unseen.append(train(method, seen, problem, score, torch.Generator().manual_seed(5), settings))
    assert without_time(unseen[0]) == without_time(unseen[1])


@pytest.mark.parametrize("killed_after", [4, 8])
def test_a_killed_run_that_teaches_itself_resumes_to_the_same_end(tmp_path, killed_after, taught):
    resumes_to_the_same_end(taught, tmp_path, killed_after)


def test_weights_that_were_trained_before_need_not_wait():
    settings = Training(max_epochs=12, teaching=1.0, learned=10.0, sure=0.4)
    losses = []
    for each in (replace(settings, teaching=0.0), settings, replace(settings, goes_on=True)):
        _, history = run(each)
        losses.append([record["loss"] for record in history.epochs])
    assert losses[0] == losses[1]
    assert losses[2][: teaching.EVERY] == losses[0][: teaching.EVERY]
    assert losses[2][teaching.EVERY] > losses[0][teaching.EVERY]


@pytest.mark.parametrize("method", ["lae", "threeference", "reslpa", "correct_and_smooth"])
def test_methods_that_learn_known_labels_alone_have_no_teacher(method):
    graph = random_graph(n=40)
    options = {"base": "reslpa"} if method == "correct_and_smooth" else {}
    built = build(method, graph.num_features, 3, generator=torch.Generator().manual_seed(0), **options)
    problem = Problem.of(graph, half_split(40).train, torch.float32)
    assert built.eval().teacher(problem) is None


def test_correct_and_smooth_trains_its_base_as_the_network_alone(taught):
    """Also if the numbers of steps were chosen before, as in a training on all labels."""
    graph, trained = random_graph(n=40), []
    for method in ("backbone", "correct_and_smooth"):
        generator = torch.Generator().manual_seed(0)
        built = build(method, graph.num_features, 3, generator=generator)
        if method == "correct_and_smooth":
            built.chosen = (3, 3)
        problem = Problem.of(graph, half_split(40).train, torch.float32)
        train(built, problem, problem, None, generator, taught)
        trained.append([weight.detach().clone() for weight in built.parameters()])
    assert all(map(torch.equal, *trained))


def test_the_checkpoint_of_another_graph_is_refused(taught):
    _, problem, _ = setting()
    state = {"nodes": torch.ones(3, dtype=torch.bool), "onehot": torch.ones(3, 3), "weight": torch.ones(3)}
    with pytest.raises(ValueError, match="what it was taught is of another graph"):
        teaching.Teaching(taught).load({"taught": state}, problem)
