"""What a model teaches itself: which nodes, how much each class weighs, and that nothing of it becomes an input."""

from dataclasses import replace

import pytest
import torch

from lignn.errors import InputError
from lignn.labels import KnownLabels, Taught
from lignn.labels.taught import FEWEST


def predicted(confidences: list[tuple[int, float]], classes: int = 2) -> torch.Tensor:
    """Return rows with so much probability for one class, and the rest shared by the others."""
    rows = torch.zeros(len(confidences), classes, dtype=torch.float64)
    for row, (number, confidence) in zip(rows, confidences, strict=True):
        row[:] = (1 - confidence) / (classes - 1)
        row[number] = confidence
    return rows


def known(numbers: list[int], count: int, classes: int = 2) -> KnownLabels:
    """Return the labels of the first nodes."""
    onehot = torch.zeros(count, classes, dtype=torch.float64)
    onehot[torch.arange(len(numbers)), torch.tensor(numbers)] = 1
    return KnownLabels(torch.arange(count) < len(numbers), onehot)


def test_sure_predictions_of_unlabelled_nodes_teach():
    labels = known([0, 1], 6)
    rows = predicted([(0, 0.99), (1, 0.99), (0, 0.9), (1, 0.9 - 1e-9), (1, 0.95), (0, 0.6)])
    assert labels.teaching(rows, 1.0, sure=0.6).nodes.tolist() == [False, False, True, True, True, True]
    taught = labels.teaching(rows, 1.0)
    assert taught.nodes.tolist() == [False, False, True, False, True, False]
    assert taught.onehot.tolist() == [[0, 0], [0, 0], [1, 0], [0, 0], [0, 1], [0, 0]]


def test_without_sure_predictions_nothing_is_taught():
    labels = known([0, 1], 4)
    assert labels.teaching(predicted([(0, 0.99), (1, 0.99), (0, 0.8), (1, 0.7)]), 1.0) is None
    everything = known([0, 1, 0], 3)
    assert everything.teaching(predicted([(0, 0.99)] * 3), 1.0) is None


def test_a_class_weighs_as_much_as_among_the_known_labels():
    """Three quarters of the known labels are of class 0; class 1 is predicted nine times as often."""
    count = 1004
    labels = known([0, 0, 0, 1], count)
    rows = predicted([(0, 0.5)] * 4 + [(0, 0.95)] * 100 + [(1, 0.95)] * 900)
    taught = labels.teaching(rows, 0.7)
    losses = torch.ones(count - 4, dtype=torch.float64)
    target = taught.onehot[4:]
    assert taught.mean(losses, target).item() == pytest.approx(0.7)
    assert taught.mean(losses * target[:, 0], target).item() == pytest.approx(0.7 * 0.75)


def test_a_class_that_hardly_teaches_weighs_less():
    labels = known([0, 1], 1002)
    rows = predicted([(0, 0.5)] * 2 + [(0, 0.95)] * 5 + [(1, 0.95)] * 500 + [(0, 0.5)] * 495)
    taught = labels.teaching(rows, 1.0)
    target = taught.onehot[taught.nodes]
    losses = torch.ones(505, dtype=torch.float64)
    assert taught.mean(losses * target[:, 0], target).item() == pytest.approx(0.5 * 5 / (FEWEST * 1000 * 0.5))
    assert taught.mean(losses * target[:, 1], target).item() == pytest.approx(0.5)


def test_no_taught_node_weighs_more_than_a_known_one():
    labels = known([0, 1] * 50, 120)
    taught = labels.teaching(predicted([(0, 0.99)] * 60 + [(1, 0.99)] * 60), 1.0)
    target = taught.onehot[taught.nodes]
    each = taught.mean(torch.ones(20, dtype=torch.float64), target).item() / 20
    assert each == pytest.approx(1 / 100)


def test_with_class_weights_no_taught_node_weighs_more_than_a_known_one_of_its_class():
    labels = replace(known([0, 1] * 50, 120), class_weight=torch.tensor([9.0, 1.0]))
    taught = labels.teaching(predicted([(1, 0.99)] * 120), 1.0)
    target = taught.onehot[taught.nodes]
    assert taught.mean(target[:, 1], target).item() / 20 == pytest.approx(0.1 / 50)


def test_only_some_nodes_may_teach():
    labels, teachers = known([0, 1], 10), torch.arange(10) < 6
    taught = labels.teaching(predicted([(0, 0.99)] * 10), 1.0, teachers)
    assert taught.nodes.nonzero().flatten().tolist() == [2, 3, 4, 5]


def test_class_weights_hold_for_taught_nodes_too():
    labels = replace(known([0, 1], 202), class_weight=torch.tensor([3.0, 1.0]))
    taught = labels.teaching(predicted([(0, 0.99)] * 102 + [(1, 0.99)] * 100), 1.0)
    target = taught.onehot[taught.nodes]
    assert taught.mean(target[:, 0], target).item() == pytest.approx(0.75)


@pytest.mark.parametrize("of", ["logits", "probabilities"])
def test_the_loss_is_that_of_the_known_labels_and_that_of_the_taught_ones(of):
    torch.manual_seed(0)
    labels, logits = known([0, 1], 30), torch.randn(30, 2, dtype=torch.float64)
    taught = labels.teaching(predicted([(0, 0.99), (1, 0.95)] * 15), 0.5)
    both = replace(labels, taught=taught)
    nodes = both.supervising & (torch.arange(30) % 3 < 2)
    chosen = nodes & taught.nodes
    losses = -(logits.log_softmax(1) * taught.onehot).sum(1)[chosen]
    expected = labels.loss_of_logits(logits, nodes & labels.mask) + taught.mean(losses, taught.onehot[chosen])
    found = both.loss_of_logits(logits, nodes) if of == "logits" else both.loss(logits.softmax(1), nodes)
    assert found.item() == pytest.approx(expected.item())
    assert both.loss_of_logits(logits, labels.mask).item() == labels.loss_of_logits(logits, labels.mask).item()


def test_taught_nodes_are_no_input_and_supervise_only_where_they_are_hidden():
    labels = known([0, 1, 0, 1], 40)
    both = replace(labels, taught=labels.teaching(predicted([(0, 0.99), (1, 0.99)] * 20), 1.0))
    hidden = both.hide(0.5, torch.Generator().manual_seed(0))
    assert torch.equal(hidden.supervised, hidden.hidden)
    assert torch.equal(hidden.given.mask, labels.mask & ~hidden.hidden)
    state = torch.rand(40, 2, dtype=torch.float64)
    assert torch.equal(both.clamp(state), labels.clamp(state))


def test_nodes_that_are_neither_known_nor_taught_cannot_supervise():
    labels = known([0, 1], 4)
    both = replace(labels, taught=labels.teaching(predicted([(0, 0.99)] * 3 + [(0, 0.5)]), 1.0))
    with pytest.raises(InputError, match="only known and taught labels can supervise"):
        both.loss_of_logits(torch.zeros(4, 2), torch.ones(4, dtype=torch.bool))


def test_of_takes_predictions_and_shares_alone():
    rows = predicted([(0, 0.95)] * 20)
    taught = Taught.of(rows, torch.ones(20, dtype=torch.bool), torch.ones(2), torch.tensor([1.0, 0.0]), 1.0, 0.9)
    assert taught.weight.tolist() == [1.0, 0.0]
