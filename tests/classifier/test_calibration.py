"""Temperatures, doubts and calibration errors with known values."""

import math

import pytest
import torch

from lignn.classifier.calibration import FEWEST, Calibration, at_temperature, calibrate, calibrated, calibration_error


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


@pytest.mark.parametrize("doubt", [0.1, 0.4])
def test_finds_the_share_of_labels_that_were_drawn_from_nothing(doubt):
    logits, truth = drawn()
    generator = torch.Generator().manual_seed(1)
    guessed = torch.rand(len(truth), generator=generator) < doubt
    truth = torch.where(guessed, torch.randint(4, truth.shape, generator=generator), truth)
    found = calibrate((2 * logits).softmax(1), truth)
    assert found.doubt == pytest.approx(doubt, abs=0.02)
    assert found.temperature == pytest.approx(2, rel=0.05)
    assert found.after < 0.015 < calibrate((2 * logits).softmax(1), truth, doubts=False).after
    assert f"and doubt {found.doubt:.2g} from 20000 held-out nodes" in str(found)


def test_there_is_no_doubt_where_probabilities_are_right():
    logits, truth = drawn()
    assert calibrate(logits.softmax(1), truth).doubt < 0.003
    assert calibrate(logits.softmax(1), truth, doubts=False).doubt == 0
    logits, rows = drawn(multilabel=True)
    assert calibrate(logits.sigmoid(), rows).doubt == 0


def test_a_rare_class_does_not_become_frequent_by_doubt():
    """One node of 500 is of the class, and the model says so: 1 % more for all nodes would be six times its share."""
    probabilities = torch.tensor([[0.998, 0.002]], dtype=torch.float64).repeat(500, 1)
    truth = torch.zeros(500, dtype=torch.int64)
    truth[0] = 1
    found = calibrated(probabilities, calibrate(probabilities, truth), multilabel=False)
    assert float(found[:, 1].mean()) == pytest.approx(0.002, rel=0.25)


def test_many_classes_without_labels_do_not_raise_the_doubt():
    probabilities = torch.full((20, 1000), 0.02 / 999, dtype=torch.float64)
    probabilities[:, 0] = 0.98
    assert calibrate(probabilities, torch.zeros(20, dtype=torch.int64)).doubt < 0.05


def test_nodes_that_are_certain_and_wrong_raise_the_temperature():
    """Also if probabilities are zero to the last bit, as those of label propagation."""
    probabilities = torch.tensor([[1.0, 0.0]] * 1000, dtype=torch.float64)
    truth = (torch.arange(1000) % 5 == 0).long()
    found = calibrate(probabilities, truth, doubts=False)
    expected = math.log(1e12) / math.log(4)  # odds of 4 to 1
    assert 0.5 * expected < found.temperature < expected  # the prior holds it back


def test_calibrated_probabilities_in_closed_form():
    probabilities = torch.tensor([[0.8, 0.2], [0.5, 0.5]], dtype=torch.float64)
    found = calibrated(probabilities, Calibration(2.0, 10, 0.0, 0.0, doubt=0.1), multilabel=False)
    expected = 0.9 * torch.tensor([2 / 3, 1 / 3], dtype=torch.float64) + 0.05  # odds of 4 become odds of 2
    torch.testing.assert_close(found, torch.stack([expected, probabilities[1]]))
    assert calibrated(probabilities, None, multilabel=False) is probabilities


def test_zero_probabilities_stay_finite():
    probabilities = torch.tensor([[1.0, 0.0]] * FEWEST)
    found = calibrate(probabilities, torch.zeros(FEWEST, dtype=torch.int64))
    assert found is not None
    assert at_temperature(probabilities, 3.0, multilabel=False).isfinite().all()


def test_it_is_found_without_gradients_too():
    logits, truth = drawn(200)
    with torch.no_grad():
        found = calibrate((3 * logits).softmax(1), truth)
    assert found == calibrate((3 * logits).softmax(1), truth)
    assert found.temperature > 1.5


def test_too_few_labels_give_none():
    assert calibrate(torch.full((FEWEST - 1, 2), 0.5), torch.zeros(FEWEST - 1, dtype=torch.int64)) is None


def test_few_labels_move_the_temperature_less_than_many():
    logits, truth = drawn()
    sharp = (3 * logits).softmax(1)
    found = [calibrate(sharp[:count], truth[:count]).temperature for count in (FEWEST, 100, len(truth))]
    assert 1 < found[0] < found[1] < found[2]
