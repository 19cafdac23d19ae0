"""Known labels: clamping, hiding, and that inputs and targets never meet."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lignn import Graph
from lignn.errors import ConfigError, GraphError, InputError
from lignn.labels import DiagonalSoftmax, KnownLabels
from tests.problems import half_split, random_graph


def known(seed=0, **options):
    graph = random_graph(seed=seed, **options)
    return KnownLabels.of(graph, half_split(graph.num_nodes, seed).train, torch.float64)


def test_clamp_overwrites_known_rows_only():
    labels = known()
    state = torch.rand(30, 3, dtype=torch.float64)
    clamped = labels.clamp(state)
    assert torch.equal(clamped[~labels.mask], state[~labels.mask])
    assert torch.equal(clamped[labels.mask], labels.onehot[labels.mask])
    assert (labels.onehot[labels.mask].sum(1) == 1).all()
    assert (labels.onehot[~labels.mask] == 0).all()


@settings(max_examples=50, deadline=None)
@given(rate=st.floats(0.01, 0.99), seed=st.integers(0, 2**31))
def test_inputs_and_targets_are_disjoint(rate, seed):
    labels = known()
    hidden = labels.hide(rate, torch.Generator().manual_seed(seed))
    assert hidden.supervised.any()
    assert not (hidden.given.mask & hidden.supervised).any()
    assert torch.equal(hidden.given.mask | hidden.supervised, labels.mask)
    assert (hidden.given.onehot[hidden.supervised] == 0).all()
    masked = hidden.mask(torch.rand(30, 3, dtype=torch.float64), constant_scale=False)
    assert (masked[hidden.hidden] == 0).all()


def test_mask_rate_is_the_share_of_hidden_nodes():
    labels = KnownLabels(torch.ones(100_000, dtype=torch.bool), torch.ones(100_000, 1))
    assert labels.hide(0.3, torch.Generator().manual_seed(0)).hidden.float().mean().item() == pytest.approx(
        0.3, abs=0.01
    )


def test_with_a_tiny_rate_one_known_node_is_hidden():
    labels = known()
    hidden = labels.hide(1e-12, torch.Generator().manual_seed(0))
    assert hidden.hidden.sum() == 1
    assert hidden.supervised.sum() == 1


def test_nothing_can_be_hidden_where_nothing_is_known():
    labels = known()
    with pytest.raises(InputError, match="no label is known"):
        KnownLabels(torch.zeros_like(labels.mask), torch.zeros_like(labels.onehot)).hide(0.5, torch.Generator())


def test_the_same_seed_hides_the_same_nodes():
    labels = known()
    first, second = (labels.hide(0.5, torch.Generator().manual_seed(7)).hidden for _ in range(2))
    assert torch.equal(first, second)


def test_masked_state_is_scaled_and_the_scale_may_be_a_constant():
    labels = known()
    hidden = labels.hide(0.25, torch.Generator().manual_seed(1))
    state = torch.rand(30, 3, dtype=torch.float64, requires_grad=True)
    values = [hidden.mask(state, constant) for constant in (False, True)]
    torch.testing.assert_close(values[0], values[1])
    torch.testing.assert_close(values[0], hidden.shown * labels.clamp(state) / 0.75)
    carried = (hidden.shown * ~labels.mask[:, None]).expand(30, 3)
    for value, scale in zip(values, (1 / 0.75, 1.0), strict=True):
        torch.testing.assert_close(torch.autograd.grad(value.sum(), state)[0], carried * scale)


def test_loss_is_the_mean_cross_entropy():
    labels = known()
    logits = torch.randn(30, 3, dtype=torch.float64)
    truth = labels.onehot[labels.mask].argmax(1)
    expected = torch.nn.functional.cross_entropy(logits[labels.mask], truth)
    torch.testing.assert_close(labels.loss(labels.activation(logits), labels.mask), expected)


def test_multilabel_loss_is_the_mean_binary_cross_entropy():
    labels = known(multilabel=True)
    logits = torch.randn(30, 3, dtype=torch.float64)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(logits[labels.mask], labels.onehot[labels.mask])
    torch.testing.assert_close(labels.loss(labels.activation(logits), labels.mask), expected)


@pytest.mark.parametrize("classes", [3, 20])
def test_the_softmax_jacobian_is_exact_by_default(classes):
    labels = KnownLabels(torch.ones(5, dtype=torch.bool), torch.zeros(5, classes, dtype=torch.float64))
    logits = torch.randn(5, classes, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(labels.activation(logits), logits.softmax(1))
    assert torch.autograd.gradcheck(labels.activation, logits)


@pytest.mark.parametrize("classes", [3, 20])
def test_the_diagonal_of_the_softmax_jacobian(classes):
    """The state is the same; the backward pass is that of c independent probabilities, `p (1-p) g`."""
    labels = KnownLabels(torch.ones(5, dtype=torch.bool), torch.zeros(5, classes, dtype=torch.float64))
    logits = torch.randn(5, classes, dtype=torch.float64, requires_grad=True)
    g = torch.randn(5, classes, dtype=torch.float64)
    p = labels.activation(logits, "diagonal")
    assert torch.equal(p, labels.activation(logits))
    torch.testing.assert_close(torch.autograd.grad(p, logits, g)[0], p * (1 - p) * g)
    full = torch.autograd.functional.jacobian(lambda row: row.softmax(0), logits[0].detach())
    torch.testing.assert_close(p[0] * (1 - p[0]), full.diagonal())


def test_the_sigmoid_jacobian_is_diagonal_anyway():
    labels = known(multilabel=True)
    logits = torch.randn(30, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: labels.activation(x, "diagonal"), logits)
    assert not torch.autograd.gradcheck(DiagonalSoftmax.apply, logits, raise_exception=False)


def test_certain_errors_have_a_finite_loss():
    labels = known()
    wrong = 1 - labels.onehot
    assert labels.loss(wrong, labels.mask).isfinite()


def test_only_known_labels_supervise():
    labels = known()
    with pytest.raises(InputError, match="only known and taught labels"):
        labels.loss(labels.onehot, ~labels.mask)


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.5, float("nan")])
def test_impossible_mask_rates(rate):
    with pytest.raises(ConfigError, match="between 0 and 1"):
        known().hide(rate, torch.Generator())


def test_unknown_labels_cannot_be_known():
    graph = random_graph()
    y = graph.y.clone()
    y[4] = -1
    mask = torch.ones(30, dtype=torch.bool)
    with pytest.raises(InputError, match="node 4"):
        KnownLabels.of(graph.replace(y=y), mask)
    with pytest.raises(InputError, match="has no labels"):
        KnownLabels.of(graph.replace(y=None), mask)
    with pytest.raises(InputError, match="training set is empty"):
        KnownLabels.of(graph, ~mask)
    with pytest.raises(InputError, match="shape"):
        KnownLabels.of(graph, mask[1:])


def test_more_classes_than_fit_into_memory():
    graph = Graph([[0], [1]], y=torch.arange(10_000_000))
    with pytest.raises(GraphError, match=r"10000000 classes for 10000000 nodes are too many: they need 745,058 GiB"):
        KnownLabels.of(graph, graph.labelled)
