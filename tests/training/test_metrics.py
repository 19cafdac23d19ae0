"""Metrics against scikit-learn, where they are not defined, and which one is chosen by default."""

import numpy as np
import pytest
import torch
from sklearn import metrics as oracle

from lignn.declarations import METRICS
from lignn.errors import ConfigError, InputError
from lignn.labels import KnownLabels
from lignn.training import Metric
from lignn.training.history import TIE, History
from lignn.training.metrics import majority


def known(counts, multilabel=False):
    y = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    onehot = torch.nn.functional.one_hot(y, len(counts)).double()
    return KnownLabels(torch.ones(len(y), dtype=torch.bool), onehot, multilabel)


def drawn(num_classes, m=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    p = torch.rand(m, num_classes, generator=generator, dtype=torch.float64)
    p /= p.sum(1, keepdim=True)
    return p, p.argmax(1), torch.randint(num_classes, (m,), generator=generator)


def test_every_metric_is_scikit_learns():
    p, predicted, truth = drawn(3)
    y, labels = truth.numpy(), predicted.numpy()
    onehot = np.eye(3)[y]
    expected = {
        "f1_micro": oracle.f1_score(y, labels, average="micro"),
        "f1_macro": oracle.f1_score(y, labels, average="macro"),
        "balanced_accuracy": oracle.balanced_accuracy_score(y, labels),
        "roc_auc": oracle.roc_auc_score(y, p.numpy(), multi_class="ovr"),
        "average_precision": oracle.average_precision_score(onehot, p.numpy(), average="macro"),
        "log_loss": -oracle.log_loss(y, p.numpy()),
    }
    assert set(expected) == set(METRICS)
    for name, value in expected.items():
        assert Metric(name)(p, predicted, truth) == pytest.approx(value, abs=1e-12), name
    assert Metric("log_loss").shown(expected["log_loss"]) > 0 > expected["log_loss"]


@pytest.mark.parametrize("rare", [0, 1])
def test_of_two_classes_the_rarer_one_in_training_is_ranked(rare):
    p, predicted, truth = drawn(2)
    metric = Metric.of("average_precision", known([3, 30] if rare == 0 else [30, 3]))
    assert metric.positive == rare
    expected = oracle.average_precision_score(truth.numpy() == rare, p[:, rare].numpy())
    assert metric(p, predicted, truth) == pytest.approx(expected)


def test_several_classes_a_node():
    p, _, _ = drawn(4)
    truth, predicted = (p > 0.3).to(torch.int8), (p > 0.25).to(torch.int8)
    for name in ("roc_auc", "average_precision"):
        function = getattr(oracle, f"{name}_score")
        assert Metric(name)(p, predicted, truth) == pytest.approx(function(truth.numpy(), p.numpy(), average="macro"))
    expected = oracle.f1_score(truth.numpy(), predicted.numpy(), average="macro")
    assert Metric("f1_macro")(p, predicted, truth) == pytest.approx(expected)
    for name in ("balanced_accuracy", "log_loss"):
        with pytest.raises(ConfigError, match=f"metric: '{name}' needs one class per node, here .*; use f1_micro, "):
            Metric.of(name, known([5, 5], multilabel=True))
    assert Metric.of(None, known([50, 1], multilabel=True)).name == "f1_micro"


def test_ranks_are_a_mean_over_the_classes_for_which_they_are_defined():
    p, predicted, truth = drawn(3)
    two = truth != 2
    parts = [oracle.roc_auc_score(truth[two].numpy() == c, p[two][:, c].numpy()) for c in (0, 1)]
    assert Metric("roc_auc")(p[two], predicted[two], truth[two]) == pytest.approx(np.mean(parts))
    one = torch.zeros(5, dtype=torch.int64)
    with pytest.raises(InputError, match="metric: ROC AUC needs validation labels of at least two classes; choose"):
        Metric("roc_auc").check(one, "validation")
    Metric("f1_macro").check(one, "validation")
    assert Metric("f1_macro").tie_breaker(one) is None


@pytest.mark.parametrize(("counts", "name"), [([90, 10], "f1_micro"), ([91, 9], "f1_macro"), ([5, 1, 94], "f1_macro")])
def test_over_nine_tenths_of_one_class_choose_macro_f1(counts, name):
    assert Metric.of(None, known(counts)).name == name
    assert Metric.of("f1_micro", known(counts)).name == "f1_micro"
    assert (majority(known(counts)) is None) == (name == "f1_micro")


def test_unknown_names():
    with pytest.raises(ConfigError, match="metric 'f1macro' is unknown; did you mean 'f1_macro'"):
        Metric.of("f1macro", known([1, 1]))


def test_average_precision_decides_between_epochs_of_the_same_score():
    history = History()
    kept = [history.add({"val": val, TIE: tie}) for val, tie in [(0.5, 0.1), (0.5, 0.3), (0.4, 0.9), (0.5, 0.3)]]
    assert (kept, history.best) == ([True, True, False, False], 1)
    assert Metric("f1_macro", 1).tie_breaker(torch.tensor([0, 1, 0])) == Metric("average_precision", 1)
    assert Metric().tie_breaker(torch.tensor([0, 1, 0])) is None  # as it always was
