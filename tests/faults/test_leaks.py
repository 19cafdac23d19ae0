"""A leak probe: labels are flipped for every method, mode and entry point, and any change is looked for, to the bit.

Labels of test nodes change nothing but a score on them. Labels of validation nodes choose the epoch, the steps of
Correct and Smooth and the temperature, and nothing else.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
import torch

from lignn import Graph, NodeClassifier, Split
from lignn.classifier import TabularClassifier
from lignn.datasets.sources import Source
from lignn.declarations import METHODS, METHODS_WITH, METRICS, PRESETS
from lignn.evaluation.compare import SplitCase, metric_of, perform
from lignn.methods import NAMES
from lignn.training import End
from lignn.training.history import DECIDING
from tests.problems import half_split, random_graph

pytestmark = pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")

N, NEW = 20, "new"
MODES = list(itertools.product((False, True), repeat=3))
"""Inductive, refit, own holdout."""
UNTOLD = ("val", *DECIDING)
"""Scores of an epoch on validation nodes: they choose it, and nothing else."""


@cache
def whole(multilabel: bool = False) -> Graph:
    return random_graph(n=N, seed=7, multilabel=multilabel).replace(node_ids=[f"n{i}" for i in range(N)])


def splits(own_holdout: bool) -> Split:
    """With validation nodes, or with none, so that `fit` holds some training labels back."""
    split = half_split(N, 3)
    if not own_holdout:
        return split
    return Split(split.train | split.val, torch.zeros(N, dtype=torch.bool), split.test)


def flipped(graph: Graph, nodes: torch.Tensor) -> Graph:
    assert graph.y is not None
    if graph.is_multilabel:
        return graph.replace(y=torch.where(nodes[:, None], 1 - graph.y, graph.y))
    return graph.replace(y=torch.where(nodes, (graph.y + 1) % graph.num_classes, graph.y))


def fit(method: str, graph: Graph, split: Split, **options: object) -> NodeClassifier:
    width = {} if METHODS[method].network in ("none", "own") else {"hidden": 4}
    return NodeClassifier(method, max_epochs=2, precision="float64", **width, **options).fit(graph, split)


def records(classifier: NodeClassifier) -> list[dict]:
    return [{k: v for k, v in epoch.items() if k != "seconds"} for epoch in classifier.history_.epochs]


def weights(classifier: NodeClassifier) -> list[bytes]:
    return [value.detach().numpy().tobytes() for value in classifier.method_.state_dict().values()]


def answers(classifier: NodeClassifier, graph: Graph, split: Split) -> dict[str, object]:
    """What every entry point says, as bytes and plain values."""
    several = graph.is_multilabel
    found: dict[str, object] = {}

    def note(name: str) -> None:
        decision = classifier.decision()
        parts = ("labels", "probabilities", "confidence", "evidence", "known")
        found[f"{name}: decision"] = [getattr(decision, part).tobytes() for part in parts]
        found[f"{name}: names"] = [decision.names.tolist(), decision.given.tolist()]
        found[f"{name}: predict"] = classifier.predict().tobytes()
        found[f"{name}: predict_proba"] = classifier.predict_proba().tobytes()
        found[f"{name}: weights"] = weights(classifier)
        found[f"{name}: suggest"] = classifier.suggest(3).tolist()
        found[f"{name}: score train"] = classifier.score("train")
        found[f"{name}: report train"] = str(classifier.report("train", metric="f1_macro"))

    note("fit")
    found["history"] = (records(classifier), classifier.history_.best, classifier.history_.final)
    found["calibration"] = classifier.calibration_
    if not classifier.inductive:
        found["diagnose"] = str(classifier.diagnose())
    found["same graph"] = classifier.predict_proba(graph.replace(name="copy")).tobytes()
    other = graph.replace(x=graph.x + 1, splits=(split,))
    found["elsewhere"] = classifier.predict_proba(other).tobytes()
    found["elsewhere: score"] = classifier.score("train", other)
    bound = classifier._fitted.prediction.bound
    if bound.map is not None:
        found["explain"] = str(classifier.explain(int(split.test.nonzero()[0])))
    node = int(split.train.nonzero()[0])
    classifier.update_labels({node: [1] if several else 1, node + 1: None})
    note("update_labels")
    classifier.update_labels({node: [0] if several else 0}, epochs=1)
    note("train on")
    types = {} if graph.edge_types is None else {"edge_type": graph.edge_types}
    added = classifier.add_nodes(np.zeros((1, 5)), [[0, 3], [N, N]], [NEW], **types)
    found["add_nodes"] = added.probabilities.tobytes()
    note("add_nodes")
    return found


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Threads only wait for each other on a graph as small as this."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def same(one: dict[str, object], other: dict[str, object]) -> None:
    changed = [name for name in one if one[name] != other[name]]
    assert not changed


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize(("inductive", "refit", "own_holdout"), MODES)
def test_test_labels_change_nothing(method: str, inductive: bool, refit: bool, own_holdout: bool) -> None:
    split, graph = splits(own_holdout), whole()
    found = []
    for version in (graph, flipped(graph, split.test)):
        classifier = fit(method, version, split, inductive=inductive, refit=refit)
        found.append(answers(classifier, version, split))
    same(*found)


@pytest.mark.parametrize("method", ["lpa", "lignn", "label_input", "correct_and_smooth"])
def test_test_labels_of_several_classes_a_node_change_nothing(method: str) -> None:
    split, graph = splits(False), whole(multilabel=True)
    versions = (graph, flipped(graph, split.test))
    same(*(answers(fit(method, version, split), version, split) for version in versions))


@pytest.mark.parametrize(
    ("method", "inductive"),
    [
        ("label_input", False),
        ("label_reuse", True),
        ("lignn", False),
        ("lignn", True),
        ("lae", True),
        ("backbone", True),
        ("correct_and_smooth", False),
    ],
)
def test_test_labels_change_nothing_along_types_of_edges(method: str, inductive: bool) -> None:
    split, graph = splits(False), random_graph(n=N, seed=7, edge_types=("a", "b")).replace(node_ids=whole().node_ids)
    options = {"backbone": "rgcn", "both_directions": True, "inductive": inductive}
    one, same_, other = (
        answers(fit(method, version, split, **options), version, split)
        for version in (graph, flipped(graph, split.test), flipped(graph, split.train))
    )
    same(one, same_)
    assert one["fit: predict_proba"] != other["fit: predict_proba"]


@pytest.mark.parametrize("method", NAMES)
def test_a_flip_of_training_labels_is_seen(method: str) -> None:
    """Otherwise the probe could not fail. What a method may see of labels, it does see somewhere."""
    split, graph = splits(False), whole()
    versions = (graph, flipped(graph, split.train))
    one, other = (answers(fit(method, version, split), version, split) for version in versions)
    assert one["fit: predict_proba"] != other["fit: predict_proba"]


@pytest.mark.parametrize("inductive", [False, True])
def test_test_labels_change_nothing_with_columns(inductive: bool, tmp_path) -> None:
    """Features that are learned from a table, new rows, and a model that is handed on."""
    numbers = whole().x[:, 0].tolist()
    table = pa.table({"a": [None, *numbers[1:]], "b": ["x" if number > 0 else "y" for number in numbers]})
    split, graph = splits(False), whole().replace(x=None, table=table)
    found: list[dict[str, object]] = []
    for number, version in enumerate((graph, flipped(graph, split.test), flipped(graph, split.train))):
        classifier = fit("lignn", version, split, inductive=inductive)
        classifier.save(tmp_path / str(number), graph=False)
        files = (tmp_path / str(number)).rglob("weights.safetensors")
        found.append({"columns": classifier.features_, "files": [file.read_bytes() for file in files]})
        added = classifier.add_nodes([{"b": "z", "a": 1}], [[0, 3], [N, N]], [NEW])
        found[-1] |= {"weights": weights(classifier), "predict_proba": classifier.predict_proba().tobytes()}
        found[-1] |= {"add_nodes": added.probabilities.tobytes()}
    same(found[0], found[1])
    assert found[0]["files"] != found[2]["files"]
    assert found[0]["columns"] == found[2]["columns"]


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize(("inductive", "refit"), list(itertools.product((False, True), repeat=2)))
def test_validation_labels_choose_and_calibrate_only(method: str, inductive: bool, refit: bool) -> None:
    """The epochs are the same; so are the raw predictions, if the same epoch and steps are chosen."""
    split, graph = splits(False), whole()
    options = {"inductive": inductive, "refit": refit}
    one, other = (fit(method, version, split, **options) for version in (graph, flipped(graph, split.val)))
    for a, b in zip(records(one), records(other), strict=True):
        assert {k: v for k, v in a.items() if k not in UNTOLD} == {k: v for k, v in b.items() if k not in UNTOLD}
    chosen = [(c.history_.best, getattr(c.method_, "chosen", None)) for c in (one, other)]
    trained = one.history_.best >= 0 or one.history_.end is End.AT_ONCE
    if chosen[0] == chosen[1] and not (refit and trained):
        assert weights(one) == weights(other)
        raw = [c._fitted.prediction.probabilities for c in (one, other)]
        assert torch.equal(*raw)


UNEVEN = {"class_weight": "balanced"}
RANKED = {"class_weight": {"0": 3.0}, "metric": "average_precision"}
WEIGHED = [(method, UNEVEN) for method in METHODS_WITH["class_weight"]] + [("lignn", RANKED), ("reslpa", RANKED)]


@pytest.mark.parametrize(("method", "options"), WEIGHED)
def test_class_weights_and_metrics_see_no_test_label(method: str, options: dict) -> None:
    split, graph = splits(False), whole()
    versions = (graph, flipped(graph, split.test))
    same(*(answers(fit(method, version, split, **options), version, split) for version in versions))


CHOSEN = [(name, "log_loss") for name in METHODS_WITH["class_weight"]] + [("label_input", name) for name in METRICS]


@pytest.mark.parametrize(("method", "metric"), CHOSEN)
def test_validation_labels_have_no_part_in_class_weights_or_losses(method: str, metric: str) -> None:
    """They change the validation score of every epoch, and what decides between equal ones, and nothing else."""
    split, graph = splits(False), whole()
    versions = (graph, flipped(graph, split.val))
    both = [fit(method, version, split, metric=metric, **UNEVEN) for version in versions]
    told = [[{k: v for k, v in one.items() if k not in UNTOLD} for one in records(c)] for c in both]
    assert told[0] == told[1]
    weight = [c._fitted.prediction.problem.labels.class_weight.tolist() for c in both]
    assert weight[0] == weight[1]
    if metric == "log_loss" and records(both[0]):
        assert both[0].history_.epochs[0]["val"] != both[1].history_.epochs[0]["val"]


@pytest.fixture
def _taught_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the second epoch of these short trainings learn from predictions, of which nearly all count as sure."""
    monkeypatch.setattr("lignn.training.hooks.teaching.FIRST", 1)
    monkeypatch.setattr("lignn.training.hooks.teaching.EVERY", 1)
    monkeypatch.setitem(PRESETS["practical"], "learned", 10.0)
    monkeypatch.setitem(PRESETS["practical"], "sure", 0.34)


@pytest.mark.usefixtures("_taught_early")
@pytest.mark.parametrize("method", METHODS_WITH["teaching"])
@pytest.mark.parametrize("own_holdout", [False, True])
def test_what_a_model_teaches_itself_sees_no_test_label(method: str, own_holdout: bool) -> None:
    split, graph = splits(own_holdout), whole()
    versions = (graph, flipped(graph, split.test))
    fits = [fit(method, version, split, teaching=1.0) for version in versions]
    assert records(fits[0])[1] != records(fit(method, graph, split, teaching=0.0))[1]
    same(*(answers(classifier, version, split) for classifier, version in zip(fits, versions, strict=True)))


@pytest.mark.usefixtures("_taught_early")
@pytest.mark.parametrize("method", METHODS_WITH["teaching"])
def test_what_a_model_teaches_itself_sees_no_validation_label(method: str) -> None:
    split, graph = splits(False), whole()
    both = [fit(method, version, split, teaching=1.0) for version in (graph, flipped(graph, split.val))]
    told = [[{k: v for k, v in one.items() if k not in UNTOLD} for one in records(c)] for c in both]
    assert told[0] == told[1]
    chosen = [(c.history_.best, getattr(c.method_, "chosen", None)) for c in both]
    if chosen[0] == chosen[1]:
        assert weights(both[0]) == weights(both[1])


def test_the_metric_is_chosen_without_validation_and_test_labels() -> None:
    split = splits(False)
    y = torch.where(split.train, 0, 1)
    y[split.train.nonzero()[0]] = 1
    graph = whole().replace(y=y, splits=(split,), class_names=("a", "b"))
    for nodes in (split.val, split.test):
        assert metric_of(graph, {}) == metric_of(flipped(graph, nodes), {})
    shown = [fit("backbone", version, split).metric_ for version in (graph, flipped(graph, split.held_out))]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("method", ["lpa", "lignn", "label_reuse", "correct_and_smooth", "backbone"])
def test_compare_uses_test_labels_for_the_test_score_only(method: str, tmp_path) -> None:
    split, graph = splits(False), whole().replace(node_ids=None)
    results = []
    for number, version in enumerate((graph, flipped(graph, split.test))):
        file = tmp_path / f"{number}.npz"
        version.replace(splits=(split,)).write(file)
        parameters = {"seed": 0, "max_epochs": 2} | ({} if method == "lpa" else {"hidden": 4})
        results.append(perform(SplitCase(Source(str(file)), method, 0, {"method": method, **parameters})))
    one, other = results
    assert (one.val, one.epochs, one.curve, one.unsolved) == (other.val, other.epochs, other.curve, other.unsolved)
    assert one.test + other.test <= 1  # no prediction is right with both


@pytest.mark.parametrize("method", ["lpa", "lignn", "label_input"])
def test_rows_of_a_table_are_predicted_without_their_labels(method: str) -> None:
    """Scoring rows with any labels leaves the predictions alone."""
    graph = whole()
    x, y = graph.x.numpy(), graph.y.numpy()
    options = {} if method == "lpa" else {"max_epochs": 2, "hidden": 4}
    table = TabularClassifier(3, method=method, options=options).fit(x, np.where(np.arange(N) < 16, y, -1))
    before = table.predict_proba(x + 0.1), table.transduction_.copy()
    table.score(x + 0.1, (y + 1) % 3)
    assert np.array_equal(table.predict_proba(x + 0.1), before[0])
    assert np.array_equal(table.transduction_, before[1])
