"""`NodeClassifier` as a whole: conventions, what it may see, whom it serves."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks

from lignn import Graph, NodeClassifier, Split
from lignn.backbones import GCN, GCNII
from lignn.classifier import fit
from lignn.equilibrium.solvers import Picard
from lignn.errors import ConfigError, ConvergenceWarning, InputError
from lignn.methods import LIGNN, NAMES
from lignn.training import End
from tests.classifier.small import fitted, small_graph, small_split
from tests.problems import half_split, random_graph

CHECKS = (
    "check_get_params_invariance",
    "check_set_params",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_mixin_order",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
)
"""Those of scikit-learn's checks that call no `fit`; all others give it a table X and labels y, where a graph, which
holds both, is needed. What they look for is tested below, and by all of them on `TabularClassifier`."""


@pytest.mark.parametrize("name", CHECKS)
def test_scikit_learn_checks(name):
    getattr(estimator_checks, name)("NodeClassifier", NodeClassifier())


def test_parameters_are_kept_as_given_and_copied_by_clone():
    classifier = NodeClassifier("lpa", hidden=3, method_options={"lam": 0.5})
    assert clone(classifier).get_params() == classifier.get_params()
    assert repr(classifier) == "NodeClassifier(hidden=3, method='lpa', method_options={'lam': 0.5})"
    assert is_classifier(classifier)
    assert classifier.set_params(hidden=4) is classifier
    assert classifier.hidden == 4


def test_wrong_values_are_refused_at_fit_only():
    """scikit-learn's check of this also tries a parameter called `unknown`, which is refused."""
    classifier = NodeClassifier(hidden="wide", solver=3, preset=None)
    with pytest.raises(ConfigError, match="hidden: a whole number is needed"):
        classifier.fit(small_graph())


def test_unknown_parameters_are_refused_at_once():
    with pytest.raises(ConfigError, match="no parameter 'hiden'; did you mean 'hidden'"):
        NodeClassifier(hiden=3)
    with pytest.raises(ConfigError, match="no parameter 'mask_rat'; did you mean 'mask_rate'"):
        NodeClassifier().set_params(mask_rat=0.5)


def test_fitting_leaves_the_parameters_alone_and_is_repeatable():
    classifier = NodeClassifier(max_epochs=4, precision="float64")
    before = classifier.get_params()
    first = classifier.fit(small_graph(), small_split()).predict_proba()
    assert classifier.get_params() == before
    assert np.array_equal(classifier.fit(small_graph(), small_split()).predict_proba(), first)
    assert np.array_equal(pickle.loads(pickle.dumps(classifier)).predict_proba(), first)
    public = {name for name in vars(classifier) if not name.startswith("_")} - set(before)
    assert all(name.endswith("_") for name in public)


def test_fitted_attributes():
    classifier = fitted()
    assert classifier.classes_.tolist() == [0, 1, 2]
    assert classifier.class_names_ == ("a", "b", "c")
    assert classifier.n_iter_ == len(classifier.history_.epochs) <= 20
    assert classifier.n_features_in_ == 6
    assert classifier.history_.end is End.EPOCHS
    assert classifier.temperature_ == classifier.calibration_.temperature
    assert classifier.calibration_.nodes == 30


@pytest.mark.parametrize("call", ["predict", "predict_proba", "decision", "score", "diagnose", "suggest"])
def test_nothing_works_before_fit(call):
    with pytest.raises(NotFittedError):
        getattr(NodeClassifier(), call)()


@pytest.mark.parametrize("method", NAMES)
def test_test_labels_change_nothing(method):
    graph, split = small_graph(), small_split()
    flipped = graph.replace(y=torch.where(split.test, (graph.y + 1) % 3, graph.y))
    hidden = graph.replace(y=torch.where(split.test, -1, graph.y))
    results = []
    for one in (graph, flipped, hidden):
        classifier = fitted(method, graph=one, max_epochs=4)
        records = [{k: v for k, v in record.items() if k != "seconds"} for record in classifier.history_.epochs]
        results.append((classifier.predict_proba().tobytes(), str(records), classifier.calibration_))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("refit", [False, True])
def test_test_labels_change_nothing_afterwards(refit):
    graph, split = small_graph(), small_split()
    flipped = graph.replace(y=torch.where(split.test, (graph.y + 1) % 3, graph.y))
    results = []
    for one in (graph, flipped):
        classifier = fitted(graph=one, max_epochs=4, refit=refit)
        node = int(split.test.nonzero()[0])
        classifier.update_labels({node: 1})
        classifier.update_labels({node: 2}, epochs=2)
        found = classifier.add_nodes(graph.x[:1].numpy(), [[0], [90]], ["new"])
        suggested = classifier.suggest(5).tolist()
        results.append((classifier.predict_proba().tobytes(), found.probabilities.tobytes(), suggested))
    assert results[0] == results[1]


def test_validation_labels_choose_the_epoch_only():
    graph, split = small_graph(), small_split()
    flipped = graph.replace(y=torch.where(split.val, (graph.y + 1) % 3, graph.y))
    losses = [[record["loss"] for record in fitted(graph=g, max_epochs=6).history_.epochs] for g in (graph, flipped)]
    assert losses[0] == losses[1]


def test_learns():
    classifier = fitted(max_epochs=40)
    assert classifier.score("test") > 0.85
    assert classifier.score() == np.mean((classifier.predict() == small_graph().y.numpy())[small_split().test.numpy()])
    np.testing.assert_allclose(classifier.predict_proba().sum(1), 1)
    assert np.array_equal(classifier.predict_proba().argmax(1), classifier.predict())


def test_without_a_split_all_known_labels_are_used():
    graph, split = small_graph(), small_split()
    known = split.train | split.val
    half = graph.replace(y=torch.where(known, graph.y, -1))
    classifier = NodeClassifier(max_epochs=20, precision="float64").fit(half)
    assert torch.equal(classifier.split_.train | classifier.split_.val, known)
    assert torch.equal(classifier.split_.test, ~known)
    assert np.array_equal(classifier.decision().known, known.numpy())
    assert classifier.score(split.test, graph) > 0.8


def test_refitting_trains_on_all_known_labels_for_as_many_epochs_as_were_best():
    once, twice = fitted(max_epochs=15), fitted(max_epochs=15, refit=True)
    assert twice.history_.best == 14  # no early epoch that is best by chance is trained for again
    assert twice.history_.epochs[-1]["val"] == once.history_.epochs[-1]["val"]
    assert np.array_equal(twice.decision().known, (small_split().train | small_split().val).numpy())
    assert not np.array_equal(twice.predict_proba(), once.predict_proba())


def test_one_label_a_class_is_enough():
    y = torch.full((90,), -1)
    y[:3] = torch.arange(3)
    classifier = NodeClassifier(max_epochs=30, patience=7).fit(small_graph().replace(y=y))
    assert classifier.n_iter_ == 30  # the least number of epochs is 100
    assert classifier.history_.best == 29
    assert classifier.calibration_ is None


def test_a_scored_node_s_own_label_is_hidden():
    """Held-out labels that are all wrong: none can be predicted by who is not told."""
    val = NodeClassifier("lpa").fit(small_graph()).split_.val
    wrong = small_graph().replace(y=torch.where(val, (small_graph().y + 1) % 3, small_graph().y))
    classifier = NodeClassifier("lpa").fit(small_graph())
    classifier.update_labels({int(node): int(wrong.y[node]) for node in val.nonzero()})
    hidden = wrong.replace(y=torch.where(val, -1, wrong.y))
    expected = np.mean((classifier.predict(hidden) == wrong.y.numpy())[val.numpy()])
    assert expected < 0.1
    assert classifier.score("val") == expected
    assert classifier.score(val, wrong) == expected


def test_another_graph_has_its_classes_matched_by_name():
    graph = small_graph()
    classifier = fitted()
    other = graph.replace(y=torch.tensor([2, 0, 1])[graph.y], class_names=("b", "c", "a"))
    assert np.array_equal(classifier.predict_proba(other), classifier.predict_proba(graph.replace(name="copy")))
    with pytest.raises(InputError, match="class 'z' was not there in training"):
        classifier.predict(graph.replace(class_names=("a", "b", "z")))
    with pytest.raises(InputError, match="7 features a node, the model was trained with 6"):
        classifier.predict(graph.replace(x=torch.zeros(90, 7)))
    with pytest.raises(InputError, match="several classes there, the model was trained with one class"):
        classifier.predict(random_graph(n=30, num_features=6, multilabel=True))


def test_a_graph_without_labels_can_be_predicted():
    classifier = fitted()
    found = classifier.decision(small_graph().replace(y=None))
    assert not found.known.any()
    assert not found.evidence.any()
    np.testing.assert_allclose(found.probabilities.sum(1), 1)


def test_several_classes_a_node():
    graph, split = random_graph(n=40, multilabel=True), half_split(40)
    classifier = fitted(graph=graph, split=split, max_epochs=5)
    assert classifier.predict().shape == (40, 3)
    assert classifier.decision().names.shape == (40,)
    assert 0 <= classifier.score("test") <= 1


def test_unreached_nodes_are_flagged():
    pair = torch.tensor([[90, 91], [91, 90]])
    whole = small_graph()
    graph = Graph(
        torch.cat([whole.edge_index, pair], 1),
        x=torch.cat([whole.x, whole.x[:2]]),
        y=torch.cat([whole.y, torch.tensor([-1, -1])]),
    )
    found = NodeClassifier("lpa").fit(graph).decision()
    assert found.evidence.tolist() == [True] * 90 + [False] * 2
    np.testing.assert_allclose(found.probabilities[90:], 1 / 3, rtol=1e-6)


def test_inductive_training_sees_no_edge_of_what_is_to_be_predicted():
    graph, split = small_graph(), small_split()
    inner = split.train[graph.edge_index].all(0)
    rewired = graph.replace(edge_index=torch.cat([graph.edge_index[:, inner], torch.tensor([[0, 1], [1, 0]])], 1))
    losses = []
    for one in (graph, rewired):
        history = fitted(graph=one, inductive=True, max_epochs=3).history_
        losses.append([record["loss"] for record in history.epochs])
    expected_same = not split.train[:2].all()
    assert (losses[0] == losses[1]) == expected_same


def test_an_interruption_leaves_the_best_so_far_and_a_checkpoint_resumes(tmp_path):
    def interrupt(history):
        if len(history.epochs) == 4:
            raise KeyboardInterrupt

    file = tmp_path / "run.safetensors"
    options = {"max_epochs": 9, "precision": "float64"}
    for checkpoint in (None, file):
        classifier = NodeClassifier(**options)
        with pytest.raises(KeyboardInterrupt):
            classifier.fit(small_graph(), small_split(), progress=interrupt, checkpoint=checkpoint)
        assert classifier.n_iter_ == 4
        assert classifier.history_.end is End.INTERRUPTED
        assert np.isfinite(classifier.predict_proba()).all()
    whole = NodeClassifier(**options).fit(small_graph(), small_split())
    resumed = NodeClassifier(**options).fit(small_graph(), small_split(), checkpoint=file)
    assert resumed.n_iter_ == 9
    assert np.array_equal(resumed.predict_proba(), whole.predict_proba())
    with pytest.raises(InputError, match="the checkpoint of another run"):
        NodeClassifier(hidden=5, **options).fit(small_graph(), small_split(), checkpoint=file)


def built(mask_rate=0.2, seed=0, tol=1e-4):
    backbone = GCN(6, 3, 3, generator=torch.Generator().manual_seed(seed))
    return {"method": LIGNN(backbone, mask_rate, solver=Picard(tol=tol, max_steps=10))}


class Made:
    """A factory of one's own; an instance of it is another object in every process."""

    def __init__(self, alpha):
        self.alpha = alpha

    def __call__(self, num_features, num_classes, label_inputs, generator=None):
        return GCNII(num_features, num_classes, label_inputs, alpha=self.alpha, generator=generator)


def by_name(change=""):
    """Two functions of one's own; they are known by their names."""
    return {"backbone": globals()[f"gcnii{change}"]}


def gcnii(num_features, num_classes, label_inputs, generator):
    return GCNII(num_features, num_classes, label_inputs, generator=generator)


def gcnii_of_one_layer(num_features, num_classes, label_inputs, generator):
    return GCNII(num_features, num_classes, label_inputs, num_layers=1, generator=generator)


@pytest.mark.parametrize(
    ("make", "others"),
    [
        (by_name, [{"change": "_of_one_layer"}]),
        (built, [{"mask_rate": 0.8}, {"seed": 7}, {"tol": 1e-3}]),
        (lambda alpha=0.1: {"backbone": partial(GCNII, alpha=alpha)}, [{"alpha": 0.9}]),
        (lambda alpha=0.1: {"backbone": Made(alpha)}, [{"alpha": 0.9}]),
    ],
)
@pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")
def test_a_checkpoint_with_another_object_is_refused(tmp_path, make, others):
    file = tmp_path / "run"
    for _ in range(2):
        NodeClassifier(max_epochs=2, **make()).fit(small_graph(), small_split(), checkpoint=file)
    for other in others:
        with pytest.raises(InputError, match="the checkpoint of another run"):
            NodeClassifier(max_epochs=2, **make(**other)).fit(small_graph(), small_split(), checkpoint=file)


def test_a_checkpoint_of_another_split_or_graph_is_refused(tmp_path):
    """Its weights may have seen labels that are test labels here."""
    file = tmp_path / "run.safetensors"
    NodeClassifier(max_epochs=2).fit(small_graph(), small_split(), checkpoint=file)
    for graph, split in ((small_graph(), small_split(seed=1)), (small_graph(noise=2.0), small_split())):
        with pytest.raises(InputError, match="the checkpoint of another run"):
            NodeClassifier(max_epochs=2).fit(graph, split, checkpoint=file)


def interrupt_at(epoch):
    def progress(history):
        if len(history.epochs) == epoch:
            raise KeyboardInterrupt

    return progress


def test_an_interrupted_run_without_held_out_labels_resumes_to_the_same_end(tmp_path):
    """One label a class: the last epoch counts, whether it was interrupted before or not."""
    graph = small_graph()
    few = graph.replace(y=torch.where(torch.arange(90) < 3, graph.y, -1))
    options = {"max_epochs": 9, "precision": "float64"}
    whole = NodeClassifier(**options).fit(few)
    with pytest.raises(KeyboardInterrupt):
        NodeClassifier(**options).fit(few, progress=interrupt_at(6), checkpoint=tmp_path / "run")
    resumed = NodeClassifier(**options).fit(few, checkpoint=tmp_path / "run")
    assert resumed.history_.best == whole.history_.best == 8
    assert np.array_equal(resumed.predict_proba(), whole.predict_proba())


def test_an_interrupted_correct_and_smooth_has_chosen_its_steps():
    classifier = NodeClassifier("correct_and_smooth", max_epochs=9)
    with pytest.raises(KeyboardInterrupt):
        classifier.fit(small_graph(), small_split(), progress=interrupt_at(4))
    assert classifier.method_.chosen is not None


def test_an_interrupted_refit_leaves_the_first_model(monkeypatch):
    options = {"max_epochs": 4, "precision": "float64", "preset": "paper"}
    first = NodeClassifier(refit=False, **options).fit(small_graph())

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "_trained_again", interrupted)
    classifier = NodeClassifier(refit=True, **options)
    with pytest.raises(KeyboardInterrupt):
        classifier.fit(small_graph())
    assert np.array_equal(classifier.predict_proba(), first.predict_proba())


@pytest.mark.parametrize(
    ("method", "backbone"), [("ignn", "gcn"), ("eignn", "gcn"), ("backbone", "sgc"), ("threeference", "gcn")]
)
def test_copies_and_pickles_predict_the_same(method, backbone):
    classifier = fitted(method, backbone=backbone, max_epochs=2)
    expected = classifier.predict_proba()
    for twin in (copy.deepcopy(classifier), pickle.loads(pickle.dumps(classifier))):
        assert np.array_equal(twin.predict_proba(), expected)
        other = small_graph(noise=2.0)
        assert np.array_equal(twin.predict_proba(other), classifier.predict_proba(other))


def test_an_unfinished_solve_is_told():
    with pytest.warns(ConvergenceWarning, match="budget used up"):
        fitted(max_steps=1, max_epochs=2, contraction="free")


EDGES = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("graph", "parameters", "message"),
    [
        (Graph(EDGES, x=[[1.0], [2.0]]), {}, "no node has a label"),
        (Graph(EDGES, x=[[1.0], [2.0]], y=[0, 0], class_names=["a", "b"]), {}, "all labels .* are of class 'a'"),
        (Graph(torch.empty(2, 0), x=[[1], [2]], y=[0, 1]), {"method": "lignn"}, "has no edges.*use TabularClassifier"),
        (Graph(EDGES, y=[0, 1]), {"method": "backbone"}, "has no features, which method 'backbone' needs"),
        ("graph.csv", {}, "a lignn.Graph is needed, got str"),
    ],
)
def test_graphs_that_cannot_be_learnt_from(graph, parameters, message):
    with pytest.raises(InputError, match=message):
        NodeClassifier(**parameters).fit(graph)


def test_wrong_parts_to_score():
    classifier = fitted("lpa")
    with pytest.raises(InputError, match="'tets' is no part of a split; did you mean 'test'"):
        classifier.score("tets")
    with pytest.raises(InputError, match="a boolean mask over the 90 nodes"):
        classifier.score(torch.tensor([1, 2, 3]))
    half = small_graph().replace(y=torch.where(small_split().test, -1, small_graph().y))
    with pytest.raises(InputError, match="none of the nodes to score has a label"):
        fitted("lpa", graph=half).score("test")


def test_a_split_of_another_graph_is_refused():
    with pytest.raises(InputError, match="the split is over 3 nodes, the graph has 90"):
        NodeClassifier().fit(small_graph(), Split.from_indices(3, [0], [1], [2]))


def test_what_a_prediction_gives_is_the_callers_own():
    found = fitted(calibrate=False)
    labels, probabilities, score = found.predict().copy(), found.predict_proba().copy(), found.score()
    found.predict()[:] = 0
    found.predict_proba()[:] = 0
    decision = found.decision()
    for part in (decision.probabilities, decision.labels, decision.evidence, decision.known):
        part[:] = 0
    assert np.array_equal(found.predict(), labels)
    assert np.array_equal(found.predict_proba(), probabilities)
    assert found.score() == score
    assert found.decision().known.any()


@pytest.mark.parametrize("method", ["lignn", "lae", "label_reuse", "ignn", "backbone"])
def test_training_that_breaks_at_once_is_an_error(method):
    with pytest.raises(InputError, match="the loss is not finite; lower lr, or scale the features"):
        fitted(method, lr=1e200)


def test_propagation_along_a_long_path_does_not_pass_for_solved():
    """Anderson's changes go up and down, far from rounding, while the labels of both ends are on their way."""
    path = torch.stack([torch.arange(999), torch.arange(1, 1000)])
    y = torch.full((1000,), -1)
    y[[0, -1]] = torch.tensor([0, 1])
    with pytest.warns(ConvergenceWarning, match="budget used up"):
        NodeClassifier("lpa").fit(Graph(path, y=y).to_undirected())
