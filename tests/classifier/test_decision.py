"""Decisions: names, confidence, rows."""

import numpy as np

from lignn.classifier import Decision

FLAGS = np.array([True, False, True])


def test_one_label_a_node():
    probabilities = np.array([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]])
    found = Decision.of(probabilities, np.array([0, 1, 0]), FLAGS, ~FLAGS, np.array([1, 0, 1]), None, ("x", "y"))
    assert found.names.tolist() == ["x", "y", "x"]
    assert found.confidence.tolist() == [0.7, 0.8, 0.5]
    assert found.node_ids.tolist() == ["0", "1", "2"]
    assert found.given.tolist() == ["", "x", ""]
    assert len(found) == 3
    last = found[np.array([2])]
    assert (last.names.tolist(), last.confidence.tolist(), last.class_names) == (["x"], [0.5], ("x", "y"))


def test_several_labels_a_node():
    probabilities = np.array([[0.9, 0.6], [0.3, 0.1], [0.2, 0.7]])
    labels = (probabilities > 0.5).astype(np.int8)
    found = Decision.of(probabilities, labels, FLAGS, ~FLAGS, np.eye(3, 2), np.array(["p", "q", "r"]), ("x", "y"))
    assert found.names.tolist() == ["x|y", "|", "y"]
    assert found.given.tolist() == ["", "y", ""]
    none = Decision.of(probabilities, labels, FLAGS, FLAGS, np.zeros((3, 2)), None, ("x", "y"))
    assert none.given.tolist() == ["|", "", "|"]
    np.testing.assert_allclose(found.confidence, [0.6, 0.7, 0.7])
    assert found[slice(1, None)].node_ids.tolist() == ["q", "r"]
