"""Labels that a fit holds back by itself: folds, training again, and what they may never change."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch

import lignn
from lignn import Graph, NodeClassifier, Split, datasets
from lignn.classifier import attempts, fit
from lignn.classifier.holdout import ENOUGH, Holdout
from lignn.declarations import PRESETS
from lignn.labels import KnownLabels
from lignn.training.hooks import Teaching
from tests.classifier.small import small_graph, small_split
from tests.problems import random_graph

QUICK = {"hidden": 8, "max_epochs": 8, "precision": "float64"}


def flipped(graph, nodes):
    return graph.replace(y=torch.where(nodes, (graph.y + 1) % 3, graph.y))


def weights(classifier):
    return torch.cat([weight.flatten() for weight in classifier.method_.parameters()])


@pytest.mark.parametrize("contraction", ["auto", "proved", "free"])
def test_test_labels_change_nothing(contraction):
    graph, split = small_graph(), small_split()
    one, other = (
        NodeClassifier(contraction=contraction, **QUICK).fit(each, split)
        for each in (graph, flipped(graph, split.test))
    )
    assert torch.equal(weights(one), weights(other))
    assert np.array_equal(one.predict_proba(), other.predict_proba())


def test_given_validation_labels_choose_the_epoch_and_train_only_if_asked_to():
    graph, split = small_graph(), small_split()
    wrong = flipped(graph, split.val)

    def path(graph, **options):
        history = NodeClassifier(calibrate=False, contraction="proved", **QUICK, **options).fit(graph, split)
        return [epoch["loss"] for epoch in history.history_.epochs], weights(history)

    (losses, _), (other_losses, _) = path(graph), path(wrong)
    assert losses == other_losses  # every weight of every epoch is the same; only the epoch may be another
    assert not torch.equal(path(graph, refit=True)[1], path(wrong, refit=True)[1])
    one = NodeClassifier(**QUICK).fit(graph, split)
    assert torch.equal(one.split_.val, split.val)
    assert not one.decision().known[split.val.numpy()].any()


def test_labels_that_fit_held_back_are_trained_on_by_default():
    graph = small_graph()
    one = NodeClassifier(**QUICK).fit(graph)
    assert not one.split_.val.any()
    assert torch.equal(one.split_.train, graph.labelled)
    assert one.decision().known.all()
    kept = NodeClassifier(refit=False, **QUICK).fit(graph)
    assert kept.split_.val.any()
    assert not torch.equal(weights(one), weights(kept))
    paper = NodeClassifier(preset="paper", **QUICK).fit(graph)
    assert paper.split_.val.any()


def test_few_labels_are_held_back_by_halves_and_many_are_not():
    graph = small_graph()
    held = Holdout.of(graph, None, seed=0, most_folds=3)
    (half,) = held.folds  # 18 labels of the fifth and 45 of a half are enough
    assert held.own
    assert int(half.val.sum()) == 45
    assert not (held.split.val & half.val).any()
    assert torch.equal(held.split.val, Holdout.of(graph, None, seed=0).split.val)
    ten = torch.cat([(graph.y == c).nonzero().flatten()[:10] for c in range(graph.num_classes)])
    fewer = graph.replace(y=torch.full_like(graph.y, -1).index_copy(0, ten, graph.y[ten]))
    held = Holdout.of(fewer, None, seed=0, most_folds=3)
    one, other = held.folds
    assert torch.equal(one.val ^ other.val, fewer.labelled)
    assert not (held.split.val & one.val).any()
    for part in (held.split, one, other):
        assert torch.equal(part.train | part.val, fewer.labelled)
        assert not (part.train & part.val).any()
    (same,) = Holdout.of(fewer, None, seed=0, most_folds=2).folds
    assert torch.equal(same.val, one.val)
    many = random_graph(n=4000)
    held = Holdout.of(many, None, seed=0, most_folds=3)
    assert held.folds == ()
    assert abs(int(held.split.val.sum()) - ENOUGH) <= many.num_classes
    given = Holdout.of(graph, small_split(), seed=0, most_folds=3)
    assert (given.own, given.folds) == (False, ())
    empty = Split(small_split().train, torch.zeros(90, dtype=torch.bool), small_split().test)
    assert Holdout.of(graph, empty, seed=0, most_folds=3).own


def test_the_temperature_is_of_labels_that_no_weight_has_seen(monkeypatch):
    """Every fold's prediction is of a method that was not given the labels of the fold."""
    seen = []
    trained_again = fit._trained_again

    def noted(first, data, split, known):
        seen.append((split, known.mask))
        return trained_again(first, data, split, known)

    monkeypatch.setattr(fit, "_trained_again", noted)
    graph = small_graph()
    one = NodeClassifier(folds=3, **QUICK).fit(graph)
    *folds, (_, last) = seen
    assert len(folds) == 1
    assert all(not (split.val & known).any() for split, known in folds)
    assert torch.equal(last, graph.labelled)
    assert one.calibration_.nodes == 18 + 45


@pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")  # without the proof, a solve may not end
def test_a_proof_is_given_up_only_where_training_labels_cannot_be_learned_with_it():
    """Labels of chains travel far, those of the small graph do not."""
    options = {"hidden": 16, "max_epochs": 150, "folds": 1}
    chains = datasets.load("chains-10")
    assert NodeClassifier(**options).fit(chains, chains.splits[0])._fitted.spec.values["contraction"] == "free"
    assert NodeClassifier(**options).fit(small_graph())._fitted.spec.values["contraction"] == "proved"


TIGHT = {"hidden": 16, "max_epochs": 30, "folds": 1, "refit": False, "calibrate": False}
GIVEN = {"weight_decay": 5e-4, "input_dropout": 0.5}
"""Regularisation that was asked for is not given up."""


@pytest.fixture
def early(monkeypatch):
    """Decide after 20 epochs whether a training is too tight; it never underfits."""
    monkeypatch.setitem(PRESETS["practical"], "least_epochs", 20)
    monkeypatch.setattr(attempts, "_underfits", lambda *_: False)


@pytest.fixture
def too_tight(early, monkeypatch):
    """Give up every proof; return a list with one entry for each time."""
    decided = []
    monkeypatch.setattr(attempts, "_is_too_tight", lambda *_: decided.append(1) or True)
    return decided


@pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")
def test_a_training_that_is_too_tight_ends_early_and_leaves_no_trace(too_tight):
    graph, split, seen = small_graph(), small_split(), []
    auto = NodeClassifier(contraction="auto", **TIGHT).fit(
        graph, split, progress=lambda history: seen.append(len(history.epochs))
    )
    assert too_tight == [1]
    assert seen == [*range(1, 21), *range(1, len(auto.history_.epochs) + 1)]
    free = NodeClassifier(contraction="free", **TIGHT).fit(graph, split)
    assert auto._fitted.spec.values["contraction"] == "free"
    assert torch.equal(weights(auto), weights(free))


@pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")
def test_a_training_that_gave_up_the_proof_resumes_to_the_bit(too_tight, tmp_path):
    graph, split = small_graph(), small_split()

    def fitted(**options):
        return NodeClassifier(contraction="auto", **TIGHT).fit(graph, split, **options)

    def interrupt(history):
        if too_tight and len(history.epochs) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(checkpoint=tmp_path / "checkpoint", progress=interrupt)
    seen = []
    resumed = fitted(checkpoint=tmp_path / "checkpoint", progress=lambda history: seen.append(len(history.epochs)))
    assert len(too_tight) == 1  # it goes on with the second training
    assert seen == [*range(6, len(resumed.history_.epochs) + 1)]
    assert torch.equal(weights(resumed), weights(fitted()))


@pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")
def test_without_scores_it_is_decided_after_the_last_epoch(too_tight, monkeypatch):
    """No epoch can be kept before."""
    monkeypatch.setattr(fit, "score_on", lambda *_: None)
    seen = []
    one = NodeClassifier(contraction="auto", **TIGHT).fit(
        small_graph(), small_split(), progress=lambda history: seen.append(len(history.epochs))
    )
    assert too_tight == [1]
    assert seen == [*range(1, 31)] * 2
    assert one._fitted.spec.values["contraction"] == "free"


@pytest.fixture
def underfits(monkeypatch):
    """Let every regularised training underfit after 25 epochs; return a list with one entry for each time."""
    judged = []
    monkeypatch.setitem(PRESETS["practical"], "least_epochs", 25)
    monkeypatch.setitem(PRESETS["practical"], "underfits", 0.0)
    monkeypatch.setattr(attempts, "_is_too_tight", lambda *_: False)
    kept = attempts._underfits
    monkeypatch.setattr(attempts, "_underfits", lambda *args: judged.append(1) or kept(*args))
    return judged


@pytest.mark.parametrize("method", ["lignn", "backbone"])
def test_regularisation_is_given_up_where_training_labels_cannot_be_learned_with_it(underfits, method):
    graph, split, seen = small_graph(), small_split(), []
    auto = NodeClassifier(method, **TIGHT).fit(graph, split, progress=lambda history: seen.append(len(history.epochs)))
    assert underfits == [1]
    assert seen == [*range(1, 26), *range(1, len(auto.history_.epochs) + 1)]
    plain = NodeClassifier(method, **TIGHT, weight_decay=0.0, input_dropout=0.0).fit(graph, split)
    assert underfits == [1]  # there is nothing to give up
    assert torch.equal(weights(auto), weights(plain))
    values = auto._fitted.spec.values
    assert (values["weight_decay"], values["input_dropout"]) == (0.0, 0.0)


def test_regularisation_that_was_asked_for_stays(underfits):
    values = NodeClassifier(**TIGHT, **GIVEN).fit(small_graph(), small_split())._fitted.spec.values
    assert {name: values[name] for name in GIVEN} == GIVEN
    assert underfits == []
    decayed = NodeClassifier(**TIGHT, weight_decay=1e-3).fit(small_graph(), small_split())._fitted.spec.values
    assert (decayed["weight_decay"], decayed["input_dropout"]) == (1e-3, 0.0)


def test_a_training_that_gave_up_its_regularisation_resumes_to_the_bit(underfits, tmp_path):
    graph, split = small_graph(), small_split()

    def fitted(**options):
        return NodeClassifier(**TIGHT).fit(graph, split, **options)

    def interrupt(history):
        if underfits and len(history.epochs) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(checkpoint=tmp_path / "checkpoint", progress=interrupt)
    seen = []
    resumed = fitted(checkpoint=tmp_path / "checkpoint", progress=lambda history: seen.append(len(history.epochs)))
    assert underfits == [1]  # it goes on with the second training
    assert seen == [*range(6, len(resumed.history_.epochs) + 1)]
    assert torch.equal(weights(resumed), weights(fitted()))


def test_a_training_that_starts_over_twice_resumes_in_the_last_one(underfits, monkeypatch, tmp_path):
    monkeypatch.setattr(attempts, "_is_too_tight", lambda *_: True)
    seen = []

    def interrupt(history):
        seen.append(len(history.epochs))
        if seen == [*range(1, 26), *range(1, 26), *range(1, 4)]:
            raise KeyboardInterrupt

    def fitted(**options):
        return NodeClassifier(**TIGHT).fit(small_graph(), small_split(), **options)

    with pytest.raises(KeyboardInterrupt):
        fitted(checkpoint=tmp_path / "checkpoint", progress=interrupt)
    seen.clear()
    resumed = fitted(checkpoint=tmp_path / "checkpoint", progress=interrupt)
    assert seen == [*range(4, len(resumed.history_.epochs) + 1)]
    assert resumed._fitted.spec.values["contraction"] == "free"
    assert resumed._fitted.spec.values["weight_decay"] == 0
    assert torch.equal(weights(resumed), weights(fitted()))


def test_only_nodes_of_labelled_types_teach(monkeypatch):
    graph = small_graph()
    typed = pa.table({"type": ["account"] * 60 + ["device"] * 30, "size": torch.rand(90).numpy()})
    graph = Graph(graph.edge_index, y=torch.where(torch.arange(90) < 40, graph.y, -1), table=typed)
    asked, begin = [], Teaching.__init__

    def watch(teacher, settings, nodes=None):
        asked.append(nodes)
        begin(teacher, settings, nodes)

    monkeypatch.setattr(Teaching, "__init__", watch)
    classifier = NodeClassifier(hidden=4, max_epochs=2, folds=2, contraction="proved").fit(graph)
    classifier.update_labels({50: 1}, epochs=1)
    assert len(asked) == 4  # held-out labels, other ones, all of them, and the update
    assert all(nodes.tolist() == [True] * 60 + [False] * 30 for nodes in asked)


def test_what_was_learned_keeps_its_regularisation():
    """Also if there were fewer epochs than it takes to know."""
    values = NodeClassifier(hidden=16, folds=1).fit(small_graph())._fitted.spec.values
    assert (values["weight_decay"], values["input_dropout"]) == (5e-4, 0.5)
    values = NodeClassifier(**TIGHT, policy={"underfits": 0.0}).fit(small_graph(), small_split())._fitted.spec.values
    assert (values["weight_decay"], values["input_dropout"]) == (5e-4, 0.5)


def test_test_and_validation_labels_do_not_decide_about_regularisation(monkeypatch):
    monkeypatch.setitem(PRESETS["practical"], "least_epochs", 25)
    graph, split = small_graph(), small_split()
    losses = []
    monkeypatch.setattr(
        attempts, "_late_loss", lambda history, count: losses.append([e["loss"] for e in history.epochs]) or 1e9
    )
    for nodes in (split.test & False, split.test, split.val):
        NodeClassifier("backbone", **TIGHT).fit(flipped(graph, nodes), split)
    assert losses[0] == losses[1] == losses[2]


@pytest.mark.usefixtures("early")
def test_an_interruption_while_it_is_decided_keeps_the_proved_training(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(attempts, "_is_too_tight", interrupted)
    one = NodeClassifier(contraction="auto", **TIGHT)
    with pytest.raises(KeyboardInterrupt):
        one.fit(small_graph(), small_split())
    assert one._fitted.spec.values["contraction"] == "proved"
    assert len(one.history_.epochs) == 20


def test_the_loss_of_a_guess_is_the_entropy_of_the_shares():
    graph = small_graph()
    labels = KnownLabels.of(graph, graph.labelled, torch.float64)
    shares = labels.counts / labels.counts.sum()
    assert labels.loss_of_guess() == pytest.approx(-(shares * shares.log()).sum().item())
    balanced = replace(labels, class_weight=1 / labels.counts)
    assert balanced.loss_of_guess() == pytest.approx(math.log(len(shares)))
    several = random_graph(n=30, multilabel=True)
    labels = KnownLabels.of(several, several.labelled, torch.float64)
    shares = labels.onehot[labels.mask].mean(0)
    entropy = -(shares * shares.log() + (1 - shares) * (1 - shares).log())
    assert labels.loss_of_guess() == pytest.approx(entropy.mean().item())


def test_the_loss_of_logits_is_that_of_probabilities():
    for multilabel in (False, True):
        graph = random_graph(n=30, multilabel=multilabel)
        labels = KnownLabels.of(graph, graph.labelled, torch.float64)
        logits = torch.randn(30, labels.num_classes, dtype=torch.float64, requires_grad=True)
        one, other = labels.loss_of_logits(logits, labels.mask), labels.loss(labels.activation(logits), labels.mask)
        assert one.item() == pytest.approx(other.item(), rel=1e-12)
        gradients = [torch.autograd.grad(loss, logits)[0] for loss in (one, other)]
        torch.testing.assert_close(*gradients)
    far = (1000 * logits).detach().requires_grad_()
    assert torch.autograd.grad(labels.loss_of_logits(far, labels.mask), far)[0].abs().max() > 0


def test_dropped_features_keep_their_mean_and_their_transpose():
    from lignn.methods import Problem

    graph = small_graph()
    import scipy.sparse as sp

    sparse = graph.replace(x=sp.csr_array((graph.x.numpy() > 0) * 1.0))
    problem = Problem.of(sparse, graph.labelled, torch.float64)
    dropped = problem.drop_features(0.25, torch.Generator().manual_seed(0))
    dense = dropped.x.to_dense()
    assert set(dense.unique().tolist()) == {0.0, 1 / 0.75}
    assert torch.equal(dropped.x.T.to_dense(), dense.T)
    assert dense.sum() == pytest.approx(problem.x.to_dense().sum().item(), rel=0.15)
    probe = torch.randn(90, 2, dtype=torch.float64)
    torch.testing.assert_close(dropped.x.T @ probe, dense.T @ probe)


def test_the_mlp_learns_of_few_labels():
    settings = NodeClassifier("backbone", "mlp", **QUICK).fit(small_graph())
    parts = [type(part).__name__ for part in settings.method_.modules()]
    assert parts.count("Linear") == 2
    assert "BatchNorm1d" not in parts
    paper = NodeClassifier("backbone", "mlp", preset="paper", **QUICK).fit(small_graph())
    assert [type(part).__name__ for part in paper.method_.modules()].count("BatchNorm1d") == 2


def test_a_chosen_contraction_is_saved(tmp_path):
    for contraction in (None, "auto"):
        one = NodeClassifier(contraction=contraction, **QUICK).fit(small_graph())
        one.save(tmp_path / "model")
        again = lignn.load(tmp_path / "model")
        assert again._fitted.spec.values["contraction"] == "proved"
        assert np.array_equal(again.predict_proba(), one.predict_proba())
        assert again.update_labels({0: 1}).warm
