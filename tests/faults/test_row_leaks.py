"""The leak probe for classifiers of rows that take labels as inputs."""

import itertools

import pytest
import torch

from lignn.errors import ConfigError, ConvergenceWarning
from tests.faults.test_leaks import answers, fit, flipped, records, same, splits, weights, whole

pytestmark = pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")

METHODS = list(itertools.product(["label_input", "label_reuse"], ["logistic", "boosted"]))


@pytest.mark.parametrize(("method", "base"), METHODS)
@pytest.mark.parametrize(
    ("inductive", "refit", "own_holdout"), [(False, False, False), (True, False, True), (False, True, True)]
)
def test_test_labels_change_nothing(method: str, base: str, inductive: bool, refit: bool, own_holdout: bool) -> None:
    split, graph = splits(own_holdout), whole()
    found = []
    for version in (graph, flipped(graph, split.test)):
        options = {"method_options": {"base": base}, "inductive": inductive, "refit": refit}
        classifier = fit(method, version, split, **options)
        explained = str(classifier.explain(int(split.test.nonzero()[0])))
        found.append(answers(classifier, version, split) | {"explain": explained})
    same(*found)


@pytest.mark.parametrize(("method", "base"), METHODS)
def test_validation_labels_choose_and_nothing_else(method: str, base: str) -> None:
    """Trees and regressions of one variant are the same whatever the validation labels are."""
    split, graph = splits(False), whole()
    found = []
    for version in (graph, flipped(graph, split.val)):
        learned = fit(method, version, split, method_options={"base": base})
        for one in (learned.method_, learned.method_.first):
            if one is not None:
                one.chosen = 0
        found.append((weights(learned), records(learned)))
    assert found[0][0] == found[1][0]
    assert found[0][1] == found[1][1]


def test_a_parameter_that_it_has_over_a_network_only_is_refused() -> None:
    with pytest.raises(ConfigError, match="mask_rate: method 'label_input' over 'boosted' has no such parameter"):
        fit("label_input", whole(), splits(False), method_options={"base": "boosted"}, mask_rate=0.5)


def test_a_budget_that_is_used_up_is_told() -> None:
    options = {"base": "boosted", "max_steps": 2, "tol": 1e-12}
    with pytest.warns(ConvergenceWarning, match="budget used up"):
        classifier = fit("label_reuse", whole(), splits(False), method_options=options)
    certificate = classifier.diagnose()
    assert (certificate.solved, certificate.status, certificate.steps) == (True, "budget used up", 2)
    assert str(certificate).startswith("The last solve: budget used up: residual")
    once = fit("label_reuse", whole(), splits(False), method_options={"base": "boosted"})
    assert not once.diagnose().solved


def test_a_saved_model_says_the_same(tmp_path) -> None:
    import lignn

    graph, split = whole(), splits(False)
    classifier = fit("label_reuse", graph, split, method_options={"base": "boosted"})
    classifier.save(tmp_path / "model")
    loaded = lignn.load(tmp_path / "model")
    assert torch.equal(torch.from_numpy(loaded.predict_proba()), torch.from_numpy(classifier.predict_proba()))
    node = int(split.train.nonzero()[0])
    for one in (classifier, loaded):
        one.update_labels({node: None, node + 1: 2})
    assert torch.equal(torch.from_numpy(loaded.predict_proba()), torch.from_numpy(classifier.predict_proba()))
    assert str(loaded.explain(3)) == str(classifier.explain(3))
