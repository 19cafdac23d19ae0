"""Which labels drove a prediction: exact where the step is linear, right in rank elsewhere."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from lignn.classifier.explain import effects_of_labels, label_gradient
from lignn.errors import InputError
from lignn.labels import KnownLabels
from tests.classifier.small import fitted, small_graph

TIGHT = {"tol": 1e-12, "max_steps": 3000}


def state_with(prediction, onehot, mask=None):
    labels = prediction.problem.labels
    mask = labels.mask if mask is None else mask
    return (
        prediction.bound.with_labels(KnownLabels(mask, onehot * mask[:, None], labels.multilabel))
        .solve()
        .solution.value
    )


@pytest.mark.parametrize("number", [0, 2])
def test_gains_and_shares_of_label_propagation_are_exact(number):
    prediction = fitted("lpa", **TIGHT)._fitted.prediction
    labels, state = prediction.problem.labels, prediction.solution.value
    node = int((~labels.mask).nonzero()[3])
    gains, shares, _ = effects_of_labels(prediction, node, number)
    for j in labels.mask.nonzero().flatten()[:6].tolist():
        for row, expected in ((torch.zeros(3), shares[j]), (state[j], gains[j])):
            changed = labels.onehot.clone()
            changed[j] = row
            lost = state[node, number] - state_with(prediction, changed)[node, number]
            assert lost.item() == pytest.approx(expected.item(), abs=1e-9)


def test_shares_of_label_propagation_sum_to_the_state():
    prediction = fitted("lpa", **TIGHT)._fitted.prediction
    for node in (4, 17, 60):
        _, shares, _ = effects_of_labels(prediction, node, 1)
        assert shares.sum().item() == pytest.approx(prediction.solution.value[node, 1].item(), abs=1e-9)


@pytest.mark.parametrize("method", ["lignn", "label_reuse"])
def test_gradient_equals_finite_differences(method):
    options = TIGHT if method == "lignn" else {}
    prediction = fitted(method, **options)._fitted.prediction
    onehot = prediction.problem.labels.onehot
    gradient = label_gradient(prediction, 7, 1)
    direction = torch.randn(onehot.shape, generator=torch.Generator().manual_seed(0), dtype=onehot.dtype)
    h = 1e-5
    ahead, behind = (state_with(prediction, onehot + s * h * direction)[7, 1].item() for s in (1, -1))
    known = prediction.problem.labels.mask[:, None]
    assert (gradient * direction * known).sum().item() == pytest.approx((ahead - behind) / (2 * h), rel=1e-5)


def test_gains_rank_as_what_is_lost_when_a_label_is_withdrawn():
    prediction = fitted(feature_mask=0.8, max_epochs=40, preset="paper", **TIGHT)._fitted.prediction
    labels, state = prediction.problem.labels, prediction.solution.value
    known = labels.mask.nonzero().flatten().tolist()
    without = []
    for j in known:
        mask = labels.mask.clone()
        mask[j] = False
        without.append(state_with(prediction, labels.onehot, mask))
    correlations = []
    for node in (~labels.mask).nonzero().flatten()[:10].tolist():
        number = int(state[node].argmax())
        lost = [(state - other)[node, number].item() for other in without]
        correlations.append(spearmanr(effects_of_labels(prediction, node, number).gains[known], lost)[0])
    assert np.mean(correlations) > 0.95
    assert min(correlations) > 0.75


def test_explanation_names_the_largest_gains():
    classifier = fitted("lpa", **TIGHT)
    found = classifier.explain("node4", k=5)
    prediction = classifier._fitted.prediction
    number = int(prediction.probabilities[4].argmax())
    gains, shares, _ = effects_of_labels(prediction, 4, number)
    assert found.node == 4
    assert found.label == "abc"[number]
    assert found.state == prediction.solution.value[4, number].item()
    assert found.from_labels == pytest.approx(found.state, abs=1e-9)
    expected = gains.abs().sort(descending=True).values[:5].tolist()
    assert [abs(c.gain) for c in found.contributions] == expected
    for c in found.contributions:
        assert c.id == f"node{c.node}"
        assert c.label == "abc"[small_graph().y[c.node]]
        assert c.share == shares[c.node].item()
    assert str(found).startswith(
        f"node node4: {found.label!r} at confidence {found.confidence:.3f} (calibrated), state "
    )
    assert str(found).count("\n") == 5
    without = replace(found, contributions=tuple(replace(c, gain=0.0, share=0.0) for c in found.contributions))
    assert str(without).splitlines()[1:] == ["  no known label changes it by itself"]


@pytest.mark.parametrize("method", ["lpa", "lignn"])
def test_the_confidence_is_that_of_the_predictions(method):
    """Beside the state, which is not calibrated; both say what they are."""
    classifier = fitted(method)
    assert classifier.temperature_ != 1
    for node in (4, 17):
        found = classifier.explain(node)
        assert found.confidence == pytest.approx(classifier.decision().confidence[node], rel=1e-12)
        assert found.state != found.confidence
        assert f"confidence {found.confidence:.3f} (calibrated), state {found.state:.3f} (not calibrated)" in str(found)


def test_bad_input_is_one_sentence():
    with pytest.raises(InputError, match="Network does not take labels as input"):
        fitted("backbone", max_epochs=2).explain(3)
    with pytest.raises(InputError, match="k: at least one"):
        fitted("lpa").explain(3, k=0)
    with pytest.raises(InputError, match="node 'nobody' is not in the graph"):
        fitted("lpa").explain("nobody")
