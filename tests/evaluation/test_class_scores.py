"""Tables and pictures of scores by class."""

from dataclasses import replace

import numpy as np

from lignn.evaluation import class_scores
from tests.classifier.small import fitted
from tests.evaluation.test_compare import comparison


def report():
    return fitted(max_epochs=3).report()


def test_the_table_of_methods_has_means():
    one = report()
    worse = replace(one, classes=tuple(replace(each, recall=0.0) for each in one.classes))
    header, rows = class_scores.table_of_methods({"GCN": [one, worse], "LPA": [worse]})
    assert header == ("class", "support", "GCN", "LPA")
    first = one.classes[0]
    expected = f"{100 * first.precision:.1f} / {50 * first.recall:.1f}"
    assert rows[0] == ("a", str(first.support), expected, f"{100 * first.precision:.1f} / 0.0")


def test_pictures_have_the_numbers():
    one = report()
    (axes,) = class_scores.draw_confusion(one).axes
    assert [int(text.get_text()) for text in axes.texts] == one.confusion.ravel().tolist()
    (axes,) = class_scores.draw_reliability(one).axes
    assert np.array_equal(axes.lines[1].get_xydata().T, one.reliability)
    (axes,) = class_scores.draw_curves(one).axes
    assert [line.get_label() for line in axes.lines] == list(one.curves)
    assert class_scores.draw_confusion(replace(one, confusion=None)) is None
    assert class_scores.draw_curves(replace(one, curves={})) is None


def test_of_many_classes_the_rarest_are_shown():
    one = report()
    many = tuple(replace(each, name=f"{each.name}{i}", support=i) for i in range(12) for each in one.classes)
    shown = class_scores._rarest(replace(one, classes=many))
    assert len(shown) == 20
    assert max(each.support for each in shown) == 7
    assert min(each.support for each in shown) == 1


def test_of_a_loss_less_is_better():
    found = replace(comparison({"gcn": [0.5, 0.6, 0.7], "lpa": [0.2, 0.31, 0.4]}), metric="log_loss")
    assert found.rows[0].scores == (0.5, 0.6, 0.7)
    assert found.verdict.startswith("Yes: LPA is 0.297 below GCN alone")
    worse = replace(comparison({"gcn": [0.2, 0.31, 0.4], "lpa": [0.5, 0.6, 0.7]}), metric="log_loss")
    assert worse.verdict.startswith("No: every method that is given labels is worse; at best, LPA is 0.297 above")


def test_a_note_is_on_the_page(tmp_path):
    noted = replace(report(), note="the model predicts one class only, 'a'")
    class_scores.write(tmp_path / "a.html", "Title", ["A fact."], {"Test nodes": noted})
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "Note: the model predicts one class only, &#x27;a&#x27;." in text
    assert text.count("<figure>") == 3
