"""Which epoch is kept: the validation score decides, then the log loss; of the paper's settings the first one."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss, roc_auc_score

from lignn import Graph, NodeClassifier, Split
from lignn.training.history import LOG_LOSS, ONE_CLASS, History
from lignn.training.metrics import mean_log_loss, predicts_one_class


def kept(*epochs: tuple[float, float, float]) -> list[bool]:
    """Whether each epoch, given as score, log loss and whether it predicts one class, was the best when it came."""
    history = History()
    return [history.add({"val": val, LOG_LOSS: loss, ONE_CLASS: one}) for val, loss, one in epochs]


def test_equal_scores_are_decided_by_log_loss_and_equal_epochs_by_the_first():
    assert kept((0.7, 0.6, 0), (0.7, 0.5, 0), (0.7, 0.5, 0), (0.7, 0.55, 0)) == [True, True, False, False]
    assert kept((0.7, 0.6, 0), (0.6, 0.1, 0), (0.8, 0.9, 0)) == [True, False, True]


def test_an_epoch_of_one_class_loses_to_a_later_one_with_lower_log_loss_even_at_a_lower_score():
    assert kept((0.8, 0.6, 1), (0.75, 0.5, 0)) == [True, True]
    assert kept((0.8, 0.6, 1), (0.75, 0.65, 0)) == [True, False]
    assert kept((0.8, 0.6, 1), (0.8, 0.5, 1)) == [True, True]


def test_an_epoch_of_one_class_must_be_better_in_both():
    assert kept((0.7, 0.5, 0), (0.8, 0.6, 1), (0.8, 0.4, 1)) == [True, False, True]


def test_without_a_log_loss_the_first_of_equal_scores_is_kept():
    history = History()
    assert [history.add({"val": val}) for val in (0.5, 0.5, 0.6, 0.6)] == [True, False, True, False]


def test_log_loss_is_scikit_learns():
    generator = torch.Generator().manual_seed(0)
    p = torch.rand(20, 3, generator=generator, dtype=torch.float64)
    p /= p.sum(1, keepdim=True)
    y = torch.randint(3, (20,), generator=generator)
    assert mean_log_loss(p, y) == pytest.approx(log_loss(y, p, labels=[0, 1, 2]))
    several = torch.randint(2, (20, 3), generator=generator)
    assert mean_log_loss(p, several) == pytest.approx(np.mean([log_loss(several[:, c], p[:, c]) for c in range(3)]))
    assert np.isfinite(mean_log_loss(torch.tensor([[1.0, 0.0]]), torch.tensor([1])))


def test_one_class_where_there_are_several():
    assert predicts_one_class(torch.tensor([1, 1]), torch.tensor([0, 1]))
    assert not predicts_one_class(torch.tensor([1, 0]), torch.tensor([0, 1]))
    assert not predicts_one_class(torch.tensor([1, 1]), torch.tensor([1, 1]))


@functools.cache
def two_classes(rare: int, n: int = 240) -> Graph:
    """`rare` nodes of 100 are of class b: edges mostly join the same class, and features tell the classes weakly."""
    generator = torch.Generator().manual_seed(rare)
    y = (torch.arange(n) % 100 < rare).long()
    ends = torch.randint(n, (2, 12 * n), generator=generator)
    same = y[ends[0]] == y[ends[1]]
    ends = ends[:, same | (torch.rand(len(same), generator=generator) < 0.4)]
    x = torch.randn(n, 4, generator=generator) + 0.7 * y[:, None]
    return Graph(ends, x=x, y=y, class_names=("a", "b")).to_undirected()


def halves(n: int) -> Split:
    part = torch.randperm(n, generator=torch.Generator().manual_seed(7)) % 4
    return Split(part < 2, part == 2, part == 3)


@pytest.mark.parametrize("rare", [5, 20, 50])
def test_the_default_ranks_the_rare_class_whatever_its_share(rare):
    """Accuracy alone would keep the first epoch of one class; the network of a single update ranks at random."""
    graph = two_classes(rare)
    split = halves(graph.num_nodes)
    classifier = NodeClassifier("lignn", hidden=16, max_epochs=150, metric="f1_micro").fit(graph, split)
    test = split.test.numpy()
    assert roc_auc_score(graph.y.numpy()[test], classifier.predict_proba()[test, 1]) > 0.8
    history = classifier.history_
    assert history.best + 1 >= 100
    assert history.best_record[ONE_CLASS] == 0 or rare == 5
    scored = [record for record in history.epochs if "val" in record and record["epoch"] >= 99]
    same = [record[LOG_LOSS] for record in scored if record["val"] == history.best_record["val"]]
    assert history.best_record[LOG_LOSS] == min(same)


@pytest.mark.parametrize("refit", [False, True])
def test_the_floor_of_epochs_holds_whether_labels_are_trained_on_again_or_not(refit):
    graph = two_classes(20)
    split = halves(graph.num_nodes)
    classifier = NodeClassifier("backbone", hidden=4, max_epochs=120, refit=refit).fit(graph, split)
    assert classifier.history_.best + 1 >= 100
    short = NodeClassifier("backbone", hidden=4, max_epochs=20, refit=refit).fit(graph, split)
    assert short.history_.best == 19


def test_paper_keeps_the_first_of_equal_scores():
    graph = two_classes(20)
    classifier = NodeClassifier("lignn", preset="paper", hidden=4, max_epochs=30).fit(graph, halves(graph.num_nodes))
    history = classifier.history_
    scores = [record["val"] for record in history.epochs]
    assert history.best == scores.index(max(scores))
    assert all(LOG_LOSS not in record for record in history.epochs)


def test_validation_labels_of_one_class_are_scored_too():
    graph = two_classes(20)
    split = halves(graph.num_nodes)
    val = split.val & (graph.y == 0)
    classifier = NodeClassifier("lignn", hidden=4, max_epochs=110).fit(graph, Split(split.train, val, split.test))
    assert classifier.history_.best_record[ONE_CLASS] == 0
    assert classifier.report("held_out").roc_auc is None


def test_three_labels_a_class():
    graph = two_classes(50)
    known = torch.cat([(graph.y == c).nonzero().flatten()[:3] for c in (0, 1)])
    y = torch.full_like(graph.y, -1)
    y[known] = graph.y[known]
    classifier = NodeClassifier("lignn", hidden=8, max_epochs=120).fit(graph.replace(y=y))
    rest = (y < 0).numpy()
    assert roc_auc_score(graph.y.numpy()[rest], classifier.predict_proba()[rest, 1]) > 0.7
    assert classifier.report().seen_since
