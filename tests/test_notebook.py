"""What a notebook shows, and the axes of pictures."""

import numpy as np
import pytest
import torch
from matplotlib import pyplot

import lignn
from lignn import notebook
from lignn.errors import GraphError
from lignn.evaluation.compare import Comparison, Result, chosen
from tests.classifier.small import small_graph


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def classifier():
    graph = small_graph()
    return lignn.NodeClassifier(max_epochs=3).fit(graph, lignn.splits.stratified(graph, (0.4, 0.2, 0.4)))


def test_texts_are_escaped():
    shown = notebook.table(("a<b",), [("<script>",)], caption="x & y", below="1 < 2")
    assert "<script>" not in shown
    assert "a&lt;b" in shown
    assert shown.endswith("<p>1 &lt; 2</p>")


def test_a_graph_tells_what_it_has():
    graph = lignn.Graph([[0, 1], [1, 2]], x=torch.ones(3, 2), y=[0, 1, -1], class_names=["a<", "b"], name="g")
    shown = graph._repr_html_()
    for fact in ("nodes</td><td>3", "edges</td><td>2", "features</td><td>2", "2: a&lt;, b", "labelled</td><td>2"):
        assert fact in shown


def test_a_decision_shows_its_first_rows(classifier):
    decision = classifier.decision()
    shown = decision._repr_html_()
    assert shown.count("<tr>") == 11
    assert f"10 of {len(decision)} nodes" in shown
    assert f"{decision.confidence[0]:.2f}" in shown


def test_a_classifier_shows_itself_as_scikit_learns_do(classifier):
    assert "NodeClassifier" in classifier._repr_html_()


def test_a_certificate_is_told_in_its_words(classifier):
    certificate = classifier.diagnose()
    assert notebook.paragraphs(str(certificate)) == certificate._repr_html_()


def test_a_comparison_shows_rows_and_verdict():
    runs = [Result(name, n, 0.5 + n / 10, 0.5, 1.0, 3, ()) for name in ("gcn", "gcn/lignn/free") for n in range(2)]
    rows = tuple(chosen(lignn.datasets.load("karate"), {}))
    found = Comparison({"name": "g"}, rows, {}, tuple(runs), None)
    shown = found._repr_html_()
    assert "<td>LI-GCN, free</td><td>55.00 ± 7.07</td>" in shown
    assert "Do labels help here?" in shown


def test_transitions_are_drawn_with_their_numbers():
    graph = lignn.Graph([[0, 0, 1, 2], [1, 2, 0, 0]], y=[0, 1, 1], class_names=["a", "b"])
    ax = graph.plot_transitions()
    assert np.allclose(ax.images[0].get_array(), [[0, 100], [100, 0]])
    assert [text.get_text() for text in ax.texts] == ["0", "100", "100", "0"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b"]


def test_transitions_need_labels():
    with pytest.raises(GraphError, match="one label a node"):
        lignn.Graph([[0], [1]]).plot_transitions()


def test_confidence_counts_every_node_without_a_label(classifier):
    decision = classifier.decision()
    _, given = pyplot.subplots()
    ax = decision.plot_confidence(given)
    assert ax is given
    # Stacked bars overlap: the tallest of each bin has all its nodes.
    tops = np.max([[bar.get_y() + bar.get_height() for bar in bars] for bars in ax.containers], axis=0)
    assert tops.sum() == (~decision.known).sum()


def test_reliability_is_that_of_the_report(classifier):
    report = classifier.report("val")
    line = report.plot_reliability().lines[1]
    assert np.array_equal(line.get_xydata().T, report.reliability)


def test_residuals_are_drawn_by_step():
    solution = lignn.fixed_point(lambda z: 0.5 * z + 1, torch.zeros(2), lignn.solvers.Picard(tol=1e-3))
    curve, tolerance = solution.plot_residuals().lines
    assert np.allclose(curve.get_ydata(), solution.residuals)
    assert set(tolerance.get_ydata()) == {1e-3}


def test_a_neighbourhood_has_the_nodes_within_some_hops():
    graph = lignn.Graph([[0, 1, 2, 3], [1, 2, 3, 4]], x=torch.eye(5), y=[0, 1, 0, 1, -1], node_ids=list("abcde"))
    split = lignn.Split(torch.arange(5) < 2, torch.arange(5) == 2, torch.arange(5) == 3)
    classifier = lignn.NodeClassifier(max_epochs=1, hidden=4).fit(graph, split)
    names = {"b", "c", "d"}
    assert {text.get_text() for text in classifier.plot_neighbourhood("c").texts} - {""} == names
    assert {text.get_text() for text in classifier.plot_neighbourhood("c", hops=2).texts} - {""} == names | {"a", "e"}
