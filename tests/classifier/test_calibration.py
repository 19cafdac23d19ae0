"""Temperatures and calibration errors with known values."""

import pytest
import torch

from lignn.classifier.calibration import FEWEST, at_temperature, calibrate, calibration_error


def drawn(n=20000, multilabel=False, seed=0):
    """Logits and labels drawn from the very probabilities that they stand for."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, 4, generator=generator, dtype=torch.float64)
    if multilabel:
        return logits, (torch.rand(n, 4, generator=generator, dtype=torch.float64) < logits.sigmoid()).to(torch.int8)
    return logits, torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("multilabel", [False, True])
def test_finds_the_temperature_that_was_taken_away(sharpness, multilabel):
    logits, truth = drawn(multilabel=multilabel)
    probabilities = (sharpness * logits).sigmoid() if multilabel else (sharpness * logits).softmax(1)
    found = calibrate(probabilities, truth)
    assert found.temperature == pytest.approx(sharpness, rel=0.03)
    assert found.after < 0.015
    assert found.nodes == len(truth)
    if sharpness != 1:
        assert found.before > 0.05


def test_calibration_error_in_closed_form():
    certain = torch.tensor([[1.0, 0.0]] * 4)
    assert calibration_error(certain, torch.tensor([0, 0, 1, 1])) == 0.5
    assert calibration_error(certain, torch.tensor([0, 0, 0, 0])) == 0
    two_bins = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]], dtype=torch.float64)
    expected = (abs(2 * 0.9 - 1) + abs(2 * 0.6 - 2)) / 4
    assert calibration_error(two_bins, torch.tensor([0, 1, 0, 0])) == pytest.approx(expected)
    rows = torch.tensor([[0.9, 0.2]], dtype=torch.float64)
    assert calibration_error(rows, torch.tensor([[1, 1]])) == pytest.approx((0.1 + 0.8) / 2)


@pytest.mark.parametrize("temperature", [0.2, 5.0])
def test_temperature_keeps_the_order_of_classes(temperature):
    probabilities = drawn(50)[0].softmax(1)
    changed = at_temperature(probabilities, temperature, multilabel=False)
    assert torch.equal(changed.argsort(1), probabilities.argsort(1))
    torch.testing.assert_close(changed.sum(1), torch.ones(50, dtype=torch.float64))
    both = at_temperature(probabilities, temperature, multilabel=True)
    assert torch.equal(both > 0.5, probabilities > 0.5)


def test_zero_probabilities_stay_finite():
    probabilities = torch.tensor([[1.0, 0.0]] * FEWEST)
    found = calibrate(probabilities, torch.zeros(FEWEST, dtype=torch.int64))
    assert found is not None
    assert at_temperature(probabilities, 3.0, multilabel=False).isfinite().all()


def test_too_few_labels_give_none():
    assert calibrate(torch.full((FEWEST - 1, 2), 0.5), torch.zeros(FEWEST - 1, dtype=torch.int64)) is None


def test_few_labels_move_the_temperature_less_than_many():
    logits, truth = drawn()
    sharp = (3 * logits).softmax(1)
    found = [calibrate(sharp[:count], truth[:count]).temperature for count in (FEWEST, 100, len(truth))]
    assert 1 < found[0] < found[1] < found[2]
