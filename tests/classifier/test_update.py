"""New labels without training."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lignn import Graph, NodeClassifier, load
from lignn.classifier.calibration import calibrate
from lignn.errors import ConfigError, InputError
from lignn.graph.names import node_numbers
from lignn.labels import KnownLabels
from lignn.training import Assembly
from tests.classifier.small import fitted, small_graph, small_split
from tests.problems import half_split, random_graph

UNKNOWN = small_split().test.nonzero().flatten().tolist()


def rms(difference):
    return difference.square().mean().sqrt().item()


ONE_HOP = {"backbone_options": {"num_layers": 1}, "hidden": None}
"""A network to which Theorem 1 applies; after few epochs its weights are small enough."""


def assert_solved_from_zero(classifier):
    prediction = classifier._fitted.prediction
    cold = prediction.bound.method.on(prediction.problem).solve()
    assert torch.equal(prediction.probabilities, cold.probabilities)


@pytest.mark.parametrize("solver", ["picard", "anderson"])
def test_a_warm_solve_gives_what_a_cold_one_gives(solver):
    classifier = fitted(solver=solver, tol=1e-5, max_steps=3000, contraction="proved", **ONE_HOP)
    spectral = classifier.diagnose().bounds[2]
    contraction = spectral.value / spectral.limit
    assert contraction < 1
    for node in UNKNOWN[:5]:
        update = classifier.update_labels({node: int(small_graph().y[node])})
        assert update.warm
        assert "re-solved from the last equilibrium in " in str(update)
        prediction = classifier._fitted.prediction
        cold = prediction.bound.method.on(prediction.problem).solve()
        assert prediction.solution.ok
        assert cold.solution.ok
        assert rms(prediction.solution.value - cold.solution.value) <= 2e-5 / (1 - contraction)
        assert update.solution.steps <= cold.solution.steps


@pytest.mark.parametrize("method", ["lignn", "lpa", "reslpa", "lae"])
def test_without_a_proof_the_solve_is_cold_and_says_so(method):
    """However good the certificate of the labels of before is."""
    network = {"backbone": "gat"} if method in ("lignn", "lae") else {}  # which has no bound
    classifier = fitted(method, max_epochs=3, **network)
    assert classifier.diagnose().contracts
    update = classifier.update_labels({UNKNOWN[0]: 1})
    assert not update.warm
    assert "not proved that the equilibrium is unique with these labels" in str(update)
    assert_solved_from_zero(classifier)


@pytest.mark.parametrize("triangles", [2, 3])
def test_a_withdrawn_label_does_not_stay_where_no_other_label_arrives(triangles):
    """Two triangles or three; the only label of the second one is withdrawn."""
    corners = torch.tensor([[0, 1, 2], [1, 2, 0]])
    edges = torch.cat([corners + 3 * i for i in range(triangles)], 1)
    names = list("abcdefghi"[: 3 * triangles])
    y = torch.full((3 * triangles,), -1)
    y[[0, 1, 3]] = torch.tensor([0, 1, 1])
    graph = Graph(edges, y=y, node_ids=names, class_names=("red", "blue"), num_nodes=len(names)).to_undirected()
    classifier = NodeClassifier("lpa").fit(graph)
    classifier.diagnose()
    assert classifier.decision().names[3:6].tolist() == ["blue"] * 3
    classifier.update_labels({"d": None})
    np.testing.assert_allclose(classifier.predict_proba()[3:6], 0.5)
    assert not classifier.decision().evidence[3:6].any()
    assert_solved_from_zero(classifier)


def test_labels_come_by_number_or_name():
    one, other = fitted(max_epochs=3), fitted(max_epochs=3)
    node = UNKNOWN[0]
    one.update_labels({node: 2})
    other.update_labels({f"node{node}": "c"})
    labels = one._fitted.prediction.problem.labels
    assert labels.mask[node]
    assert labels.onehot[node].tolist() == [0, 0, 1]
    assert torch.equal(labels.onehot, other._fitted.prediction.problem.labels.onehot)
    assert torch.equal(one._fitted.prediction.probabilities, other._fitted.prediction.probabilities)


def test_ids_are_looked_up_once():
    class Counted(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Counted.compared += 1
            return str.__eq__(self, other)

    graph = SimpleNamespace(num_nodes=1000, node_ids=np.array([Counted(f"n{i}") for i in range(1000)], dtype=object))
    assert node_numbers(graph, [f"n{i}" for i in range(100)]) == list(range(100))
    assert Counted.compared < 3000


def test_a_number_counts_nodes_and_a_text_is_an_id():
    """What `suggest` gives are numbers, and ids that are whole numbers are the rule in tables."""
    classifier = fitted("lpa", graph=small_graph().replace(node_ids=[str(i + 1) for i in range(90)]))
    classifier.update_labels({"2": 1, 0: 2})
    assert classifier._fitted.prediction.problem.labels.onehot[:2].argmax(1).tolist() == [2, 1]


def test_an_id_in_another_unicode_form_finds_its_node():
    """As it is typed on some systems: decomposed, or with a space around it."""
    ids = ["café", *(f"n{i}" for i in range(1, 90))]
    classifier = fitted("lpa", graph=small_graph().replace(node_ids=ids))
    decomposed = "cafe\u0301"
    classifier.update_labels({decomposed: 2, " n1 ": 1})
    assert classifier._fitted.prediction.problem.labels.onehot[:2].argmax(1).tolist() == [2, 1]
    assert classifier.explain(decomposed).node == 0
    features = small_graph().x[:1].numpy()
    assert classifier.add_nodes(features, [[decomposed], ["new"]], ["new"]).evidence.all()
    with pytest.raises(InputError, match="edge to node 'who', which is neither in the graph nor new"):
        classifier.add_nodes(features, [["who"], ["newer"]], ["newer"])


def test_a_withdrawn_label_leaves_no_trace():
    classifier = fitted("lpa", tol=1e-12, max_steps=3000)
    before = classifier.predict_proba()
    classifier.update_labels({UNKNOWN[0]: 1, UNKNOWN[1]: 2})
    assert abs(classifier.predict_proba() - before).max() > 1e-3
    classifier.update_labels({UNKNOWN[0]: None, UNKNOWN[1]: None})
    assert abs(classifier.predict_proba() - before).max() < 1e-9


def test_more_labels_help():
    graph = small_graph(n=240, noise=8.0)
    classifier = fitted(graph=graph, feature_mask=0.8, max_epochs=40, contraction="proved")
    before = classifier.score("test")
    new = classifier.split_.val.nonzero().flatten().tolist()
    update = classifier.update_labels({node: int(graph.y[node]) for node in new})
    assert classifier.score("test") > before
    assert update.changed > 0
    assert str(update).startswith(f"{update.changed} predictions changed; re-solved from the last equilibrium")


@pytest.mark.parametrize("base", [{}, {"base": "boosted"}, {"base": "logistic"}])
@pytest.mark.parametrize("method", ["label_input", "label_reuse", "correct_and_smooth"])
def test_a_fixed_number_of_passes_starts_from_zero(method, base):
    classifier = fitted(method, max_epochs=3, method_options=base)
    before = classifier.predict_proba()
    update = classifier.update_labels({UNKNOWN[0]: 1})
    assert not np.array_equal(classifier.predict_proba(), before)
    prediction = classifier._fitted.prediction
    assert "fixed number of passes" in str(update)
    assert torch.equal(prediction.probabilities, prediction.bound.method.on(prediction.problem).solve().probabilities)


def test_methods_without_label_input_say_that_labels_change_nothing():
    classifier = fitted("backbone", max_epochs=3)
    update = classifier.update_labels({UNKNOWN[0]: 1})
    assert update.changed == 0
    assert "only training" in update.reason


@pytest.mark.parametrize("method", ["lignn", "backbone", "correct_and_smooth", "ignn", "eignn"])
def test_training_goes_on_from_the_present_weights(method):
    graph = small_graph(noise=3.0)
    classifier = fitted(method, graph=graph, max_epochs=3)
    old = {name: weight.clone() for name, weight in classifier.method_.named_parameters()}
    new = small_split().val.nonzero().flatten().tolist()[:20]
    update = classifier.update_labels({node: int(graph.y[node]) for node in new}, epochs=4)
    assert "trained for 4 more epochs" in str(update)
    moved = [(weight - old[name]).abs().max().item() for name, weight in classifier.method_.named_parameters()]
    assert 0 < max(moved) < 4 * 4 * 0.01  # Adam takes steps of about the learning rate
    assert classifier._fitted.prediction.problem.labels.mask[new].all()


def test_nodes_trained_on_are_no_test_nodes_any_more():
    graph, split = small_graph(noise=3.0), small_split()
    classifier = fitted("backbone", graph=graph, max_epochs=3)
    new = torch.zeros(90, dtype=torch.bool)
    new[UNKNOWN[:20]] = True
    labels = {node: int(graph.y[node]) for node in UNKNOWN[:20]}
    classifier.update_labels(labels)
    assert torch.equal(classifier.split_.test, split.test)
    classifier.update_labels(labels, epochs=4)
    assert torch.equal(classifier.split_.train, split.train | new)
    assert torch.equal(classifier.split_.val, split.val)
    assert torch.equal(classifier.split_.test, split.test & ~new)
    assert classifier.score("test") == classifier.score(split.test & ~new)


def test_where_nothing_is_trained_test_nodes_stay():
    classifier = fitted("lpa")
    classifier.update_labels({UNKNOWN[0]: 1}, epochs=2)
    assert torch.equal(classifier.split_.test, small_split().test)


def test_updates_one_after_the_other_hide_different_labels(monkeypatch, tmp_path):
    """The same ones each time the same updates are made, saved and loaded in between or not."""
    hide, hidden = KnownLabels.hide, []

    def recorded(labels, rate, generator):
        result = hide(labels, rate, generator)
        hidden.append(result.supervised)
        return result

    runs = [fitted(max_epochs=2) for _ in range(2)]
    monkeypatch.setattr(KnownLabels, "hide", recorded)
    runs[0].update_labels({}, epochs=1)
    runs[0].update_labels({}, epochs=1)
    runs[1].update_labels({}, epochs=1)
    runs[1].save(tmp_path / "m")
    load(tmp_path / "m").update_labels({}, epochs=1)
    first, second, first_again, second_again = hidden
    assert not torch.equal(first, second)
    assert torch.equal(first, first_again)
    assert torch.equal(second, second_again)


def test_training_goes_on_to_the_last_epoch_where_no_label_is_held_out():
    graph = small_graph()
    classifier = NodeClassifier(max_epochs=3, precision="float64").fit(graph)
    old = classifier.method_.step.backbone.convs[0].lin.weight.clone()
    classifier.update_labels({0: 0}, epochs=2)
    assert not torch.equal(classifier.method_.step.backbone.convs[0].lin.weight, old)


def test_the_temperature_follows_the_new_weights():
    """Where labels are still held out; else it stays."""
    graph, split = small_graph(), small_split()
    classifier = fitted(max_epochs=2)
    old = classifier.temperature_
    classifier.update_labels({UNKNOWN[0]: 1}, epochs=30)
    expected = calibrate(classifier._fitted.prediction.probabilities[split.val], graph.y[split.val])
    assert classifier.calibration_ == expected
    assert classifier.temperature_ == expected.temperature != old
    classifier.update_labels({node: int(graph.y[node]) for node in split.val.nonzero().flatten().tolist()}, epochs=1)
    assert classifier.calibration_ == expected


@pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")
def test_training_on_without_any_known_label_is_refused():
    classifier = fitted(max_epochs=2)
    with pytest.raises(InputError, match="no label is known"):
        classifier.update_labels(dict.fromkeys(range(90)), epochs=1)


def test_several_classes_a_node():
    graph, split = random_graph(n=30, multilabel=True), half_split(30)
    classifier = fitted(graph=graph, split=split, max_epochs=3)
    node = int(split.test.nonzero()[0])
    classifier.update_labels({node: [0, 2]})
    assert classifier._fitted.prediction.problem.labels.onehot[node].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"nobody": 1}, "node 'nobody' is not in the graph"),
        ({90: 1}, "node 90 is outside of 0 … 89"),
        ({0: 3}, "class 3 is outside of 0 … 2"),
        ({0: "d"}, "class 'd' was not there in training"),
        ({0: [0, 1]}, "one class per node is needed"),
    ],
)
def test_bad_labels_are_one_sentence_and_change_nothing(labels, message):
    classifier = fitted("lpa")
    before = classifier._fitted.prediction
    with pytest.raises(InputError, match=message):
        classifier.update_labels({1: 1} | labels)
    assert classifier._fitted.prediction is before


def test_scores_know_of_corrected_labels():
    classifier = fitted("lpa")
    node = UNKNOWN[0]
    only = torch.zeros(90, dtype=torch.bool)
    only[node] = True
    predicted = int(classifier.predict()[node])
    classifier.update_labels({node: (predicted + 1) % 3})
    assert classifier.score(only) == 0
    classifier.update_labels({node: predicted})
    assert classifier.score(only) == 1


def test_known_labels_are_not_shared():
    classifier = fitted("lpa")
    labels: KnownLabels = classifier._fitted.prediction.problem.labels
    before = labels.onehot.clone()
    classifier.update_labels({UNKNOWN[0]: 1})
    assert torch.equal(labels.onehot, before)


@pytest.mark.parametrize("epochs", [-1, 2.5, "3"])
def test_epochs_are_counted(epochs):
    with pytest.raises(ConfigError, match="epochs: a whole number of at least 0 is needed"):
        fitted("lpa").update_labels({0: 0}, epochs=epochs)


def test_labels_are_a_mapping():
    with pytest.raises(InputError, match="labels: a mapping from nodes to labels is needed, got list"):
        fitted("lpa").update_labels([(0, 0)])


def test_a_proved_equilibrium_shows_neither_the_start_nor_the_order_of_labels():
    one, other = (fitted(contraction="proved", max_epochs=5, precision="float64") for _ in range(2))
    before, labels = one.predict_proba(), {3: 0, 4: 1, 5: None}
    assert one.update_labels(labels).warm
    for node in reversed(labels):
        assert other.update_labels({node: labels[node]}).warm
    np.testing.assert_allclose(one.predict_proba(), other.predict_proba(), atol=1e-12)
    assert np.abs(one.predict_proba() - before).max() > 1e-3


def test_further_epochs_are_taught_after_ten_epochs(monkeypatch):
    """The weights are trained: fifty epochs without what they have taught themselves would unlearn it."""
    classifier = fitted(max_epochs=30, policy={"learned": 10.0, "sure": 0.34})
    assert not any("taught" in record for record in classifier.history_.epochs)
    seen = []
    train = Assembly.train
    monkeypatch.setattr(Assembly, "train", lambda *args, **options: seen.append(train(*args, **options)) or seen[-1])
    classifier.update_labels({UNKNOWN[0]: 1}, epochs=12)
    assert ["taught" in record for record in seen[0].epochs] == [False] * 10 + [True] * 2
