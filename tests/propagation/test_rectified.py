"""`relu(y + offset)` with its change in one pass, against PyTorch."""

import math

import pytest
import torch

from lignn.propagation import threads as parallel
from lignn.propagation.rectified import BLOCK, rectify


def inputs(rows, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(rows, 7, generator=generator, dtype=dtype) for _ in range(3)]


@pytest.mark.parametrize("rows", [0, 1, BLOCK // 7 + 5, BLOCK])
def test_state_and_change_are_those_of_pytorch(rows):
    y, offset, last = inputs(rows)
    expected = (y + offset).relu()
    length, value_length, largest = rectify(y, offset, last)
    assert torch.equal(y, expected)
    change = expected - last
    assert length == pytest.approx(change.norm().item(), rel=1e-12)
    assert value_length == pytest.approx(expected.norm().item(), rel=1e-12)
    assert largest == (change.abs().max().item() if rows else 0)


def test_single_precision_and_last_states_of_one_number():
    y, offset, _ = inputs(300, torch.float32)
    expected = (y + offset).relu()
    length, _, largest = rectify(y, offset, torch.zeros(()).expand(300, 7))
    assert torch.equal(y, expected)
    assert length == pytest.approx(expected.double().norm().item(), rel=1e-6)
    assert largest == expected.max().item()


def test_what_is_not_a_number_is_not_hidden():
    y, offset, last = inputs(10)
    y[3, 3] = math.nan
    assert math.isnan(rectify(y, offset, last)[0])
    assert torch.isnan(y[3, 3])


def test_number_of_threads_changes_no_bit(threads, monkeypatch):
    monkeypatch.setattr(parallel, "PARALLEL_ABOVE", 0)
    results = []
    for count in (1, 2, 3):
        threads(count)
        y, offset, last = inputs(9 * BLOCK)
        results.append((rectify(y, offset, last), y))
    assert len({measured for measured, _ in results}) == 1
    assert all(torch.equal(y, results[0][1]) for _, y in results)
