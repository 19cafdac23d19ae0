"""Reports: scores beside those of a guess, and every class, against scikit-learn."""

import json

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import average_precision_score, classification_report, confusion_matrix, f1_score, log_loss

from lignn import NodeClassifier
from lignn.classifier import Report
from tests.classifier.small import fitted, small_graph, small_split
from tests.problems import half_split, random_graph


def parts():
    graph, split = small_graph(), small_split()
    return graph.y.numpy(), split.train.numpy(), split.test.numpy()


def test_scores_and_classes_are_scikit_learns():
    y, _, test = parts()
    classifier = fitted(max_epochs=4)
    report, predicted = classifier.report(), classifier.predict()
    expected = classification_report(y[test], predicted[test], output_dict=True, zero_division=0)
    for number, one in enumerate(report.classes):
        of = expected[str(number)]
        assert (one.precision, one.recall, one.support) == (of["precision"], of["recall"], of["support"])
        assert one.predicted == (predicted[test] == number).sum()
    assert [one.name for one in report.classes] == ["a", "b", "c"]
    assert np.array_equal(report.confusion, confusion_matrix(y[test], predicted[test]))
    assert (report.metric, report.score, report.nodes) == ("f1_micro", classifier.score(), 30)
    assert report.score == expected["accuracy"]


@pytest.mark.parametrize("metric", ["f1_micro", "f1_macro", "balanced_accuracy", "roc_auc", "log_loss"])
def test_the_guess_is_a_dummy_classifier(metric):
    y, train, test = parts()
    dummy = DummyClassifier(strategy="prior").fit(np.zeros((train.sum(), 1)), y[train])
    rows = np.zeros((test.sum(), 1))
    expected = {
        "f1_micro": dummy.score(rows, y[test]),
        "f1_macro": f1_score(y[test], dummy.predict(rows), average="macro"),
        "balanced_accuracy": 1 / 3,
        "roc_auc": 0.5,
        "log_loss": log_loss(y[test], dummy.predict_proba(rows)),
    }
    report = fitted("lpa", hidden=None).report(metric=metric)
    assert report.baseline == pytest.approx(expected[metric])
    assert report.majority == "abc"[np.bincount(y[train]).argmax()]


def test_words_and_plain_values():
    report = fitted(max_epochs=4).report()
    lines = str(report).splitlines()
    assert lines[0] == f"F1-micro {report.score:.4f} on 30 test nodes; always 'c' scores {report.baseline:.4f}"
    assert lines[1].split() == ["class", "precision", "recall", "support"]
    assert [line.split()[0] for line in lines[2:]] == ["a", "b", "c"]
    plain = json.loads(json.dumps(report.plain()))
    assert plain["classes"][0] == {**vars(report.classes[0])}
    assert plain["confusion"] == report.confusion.tolist()


def test_curves_are_of_the_calibrated_probabilities():
    y, _, test = parts()
    classifier = fitted(max_epochs=4)
    report, p = classifier.report(), classifier.predict_proba()
    for name, (recall, precision) in report.curves.items():
        c = "abc".index(name)
        area = -np.sum(np.diff(recall) * precision[:-1])
        assert area == pytest.approx(average_precision_score(y[test] == c, p[test, c]), abs=1e-9)
    confidence, share = report.reliability
    assert (np.diff(confidence) > 0).all()
    assert ((share >= 0) & (share <= 1)).all()


def test_of_many_classes_the_worst_are_shown():
    report = fitted(max_epochs=1).report()
    many = Report(**{**vars(report), "classes": report.classes * 10})
    assert len(many.rows()) == 20
    assert str(many).endswith("and 10 more classes")


def test_several_classes_a_node():
    graph = random_graph(multilabel=True)
    classifier = NodeClassifier("label_input", max_epochs=2, hidden=4).fit(graph, half_split(30))
    report = classifier.report()
    assert report.confusion is None
    assert report.score == classifier.score()
    assert [one.support for one in report.classes] == graph.y[classifier.split_.test].sum(0).tolist()
