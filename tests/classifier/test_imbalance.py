"""Class weights, the metric that a fit chooses, and what it says."""

import functools

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight

import lignn
from lignn import Graph, NodeClassifier, Split
from lignn.classifier import imbalance
from lignn.classifier.spec import Spec
from lignn.declarations import METHODS, METHODS_WITH
from lignn.errors import ConfigError, ImbalanceWarning, InputError
from lignn.labels import Classes, KnownLabels
from lignn.methods.steps import PropagationStep
from tests.classifier.small import fitted, small_graph, small_split
from tests.problems import random_graph

TRAINED = METHODS_WITH["class_weight"]
CLASSES = Classes(("a", "b", "c"), multilabel=False)


def settings(**given):
    return Spec.resolve(given)


def labels(y, num_classes=3):
    y = torch.tensor(y)
    return KnownLabels.of(Graph([[0], [1]], y=y, class_names="abc"[:num_classes]), y >= 0, torch.float64)


def test_weights_are_scikit_learns():
    known = labels([0] * 6 + [1] * 3 + [2] + [-1] * 2)
    y = np.array([0] * 6 + [1] * 3 + [2])
    found = imbalance.weighted(settings(class_weight="balanced"), CLASSES, known)
    assert found.class_weight.tolist() == pytest.approx(compute_class_weight("balanced", classes=np.arange(3), y=y))
    found = imbalance.weighted(settings(class_weight={"b": 4, 2: np.float64(0.5)}), CLASSES, known)
    assert found.class_weight.tolist() == [1, 4, 0.5]
    assert imbalance.weighted(settings(), CLASSES, known) is known
    without_b = imbalance.weighted(settings(class_weight="balanced"), CLASSES, labels([0, 0, 0, 2, -1]))
    assert without_b.class_weight.tolist() == pytest.approx([4 / 6, 1, 2])


def test_the_loss_is_that_of_torch_and_a_weight_repeats_a_node():
    known = imbalance.weighted(settings(class_weight={"b": 3}), CLASSES, labels([0, 1, 2, 1]))
    p = torch.rand(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    p /= p.sum(1, keepdim=True)
    target, everything = torch.tensor([0, 1, 2, 1]), torch.ones(4, dtype=torch.bool)
    weight = torch.tensor([1.0, 3, 1], dtype=torch.float64)
    expected = torch.nn.functional.nll_loss(p.log(), target, weight)
    assert known.loss(p, everything).item() == pytest.approx(expected.item())
    squared = (p - known.onehot).square().sum(1)
    repeated = torch.cat([squared, squared[[1, 1, 3, 3]]]).mean()
    assert PropagationStep(0.9).loss(known, p, everything).item() == pytest.approx(repeated.item())


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("balanced!", "class_weight 'balanced!' is unknown; did you mean 'balanced'?"),
        ({"d": 2}, "class_weight: class 'd' was not there in training"),
        ({"a": 0}, "class_weight: a positive number is needed for class 'a', got 0"),
        ({"a": "2"}, "class_weight: a positive number is needed for class 'a', got '2'"),
        (3, "class_weight: a text or table is needed, got 3"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises(ConfigError) as error:
        fitted(class_weight=weight)
    assert message in str(error.value)


def test_where_there_is_no_weight():
    with pytest.raises(ConfigError, match="class_weight: method 'lpa' has no such parameter"):
        NodeClassifier("lpa", class_weight="balanced").fit(small_graph())
    with pytest.raises(ConfigError, match="a node may have several classes here"):
        NodeClassifier(class_weight="balanced").fit(random_graph(multilabel=True))


@pytest.mark.parametrize("method", TRAINED)
def test_every_method_with_a_loss_uses_the_weights(method):
    options = {"hidden": None if METHODS[method].network == "own" else 8, "max_epochs": 2}
    plain, same, other = (fitted(method, class_weight=weight, **options) for weight in (None, {"a": 1.0}, {"a": 50.0}))
    if not plain.history_.epochs:  # fitted at once
        found = [one.predict_proba() for one in (plain, same, other)]
        np.testing.assert_allclose(found[0], found[1], atol=1e-9)
        assert np.abs(found[0] - found[2]).max() > 1e-6
        return
    losses = [[record["loss"] for record in one.history_.epochs] for one in (plain, same, other)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)
    assert abs(losses[0][0] - losses[2][0]) > 1e-6


@functools.cache
def uneven(n=120, rare=6):
    """All but `rare` nodes are of class a."""
    y = torch.zeros(n, dtype=torch.int64)
    y[:: n // rare] = 1
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 4, generator=generator, dtype=torch.float64) + 2.0 * y[:, None]
    return Graph(torch.randint(n, (2, 3 * n), generator=generator), x=x, y=y, class_names=("a", "b"))


def quick(**options):
    return NodeClassifier("backbone", hidden=8, max_epochs=5, **options)


def test_macro_f1_is_chosen_and_told_in_one_line():
    with pytest.warns(ImbalanceWarning) as told:
        classifier = quick(refit=False, folds=1).fit(uneven())
    assert classifier.metric_ == "f1_macro"
    (first,) = [str(one.message) for one in told if "training labels" in str(one.message)]
    assert first == (
        "class 'a' has 94.8% of the training labels, so F1-macro chooses the epoch and not F1-micro; "
        "metric= (--metric) chooses another"
    )
    assert quick(preset="paper").fit(uneven()).metric_ == "f1_micro"
    assert quick(metric="f1_micro").fit(uneven()).metric_ == "f1_micro"
    assert classifier.history_.final["val"] == classifier.score("val", metric="f1_macro")


def test_a_model_of_one_class_warns_in_these_words():
    graph = uneven()
    constant = graph.replace(x=torch.zeros_like(graph.x))
    with pytest.warns(ImbalanceWarning, match="one class only, 'a': it is no better than a guess; try class_weight"):
        classifier = quick(metric="f1_micro", refit=False).fit(constant)
    report = classifier.report("val")
    assert report.note in str(report)
    assert "predicts one class only" in report.plain()["note"]


def test_metric_and_weights_are_saved_and_used_by_updates(tmp_path):
    split = small_split()
    classifier = fitted(metric="log_loss", class_weight={0: 2.0, "b": 3.0})
    classifier.save(tmp_path / "model")
    loaded = lignn.load(tmp_path / "model")
    assert loaded.class_weight == {"a": 2.0, "b": 3.0}
    assert (loaded.metric_, loaded.score("val")) == ("log_loss", classifier.score("val"))
    assert loaded.score("val") < 0 < loaded.report("val").score
    node = int(split.test.nonzero()[0])
    for one in (classifier, loaded):
        one.update_labels({node: "a"}, epochs=2)
    assert np.array_equal(classifier.predict_proba(), loaded.predict_proba())
    assert classifier.method_ is not loaded.method_
    assert loaded._fitted.prediction.problem.labels.class_weight.tolist() == [2, 3, 1]


def test_a_metric_that_validation_labels_do_not_define_is_refused_before_training():
    graph = uneven()
    rare = (graph.y == 1).nonzero().flatten().tolist()
    common = (graph.y == 0).nonzero().flatten().tolist()
    split = Split.from_indices(graph.num_nodes, [*rare, *common[:50]], common[50:], [])
    with pytest.raises(InputError, match="metric: average precision needs validation labels of at least two classes"):
        quick(metric="average_precision").fit(graph, split)
    classifier = quick(metric="f1_macro").fit(graph, split)
    with pytest.raises(InputError, match="metric: ROC AUC needs scored labels of at least two classes"):
        classifier.score("val", metric="roc_auc")
    assert "ROC AUC is not defined on these 64 validation nodes" in str(classifier.report("val", metric="roc_auc"))


def test_another_metric_or_weight_is_another_run(tmp_path):
    graph, split = small_graph(), small_split()
    runs = [{}, {"metric": "f1_macro"}, {"class_weight": "balanced"}, {"class_weight": {"a": 2}}]
    assert len({settings(**given).identity(graph, split) for given in runs}) == 4
