"""Means of weights: closed form, what predictions use, resuming to the bit, and a proof that the mean keeps."""

import pytest
import torch
from torch import nn

from lignn.training import Training
from lignn.training.hooks import Averaging
from tests.training.test_loop import run, setting, without_time

AVERAGED = Training(max_epochs=12, averaged_epochs=4, evaluate_every=3)


def test_is_the_plain_mean_first_and_a_moving_one_then():
    module = nn.Linear(1, 1, bias=False).double()
    average = Averaging(module, 3)
    seen = []
    for value in (3.0, 6.0, 9.0, 0.0):
        module.weight.data.fill_(value)
        average.add()
        with average.in_use():
            seen.append(module.weight.item())
        assert module.weight.item() == value
    assert seen == pytest.approx([3.0, 4.5, 6.0, 4.0])


def test_the_trained_method_has_the_mean_of_its_weights():
    """The last weights of the same epochs, averaged by hand."""
    seen = []

    def note(_):
        seen.append(torch.cat([weight.detach().flatten() for weight in method[0].parameters()]))

    method = []
    trained, _ = run(AVERAGED, progress=note, scored=False, prepare=method.append)
    expected = seen[0]
    for number, weights in enumerate(seen[1:], start=2):
        expected = expected + (weights - expected) / min(number, 4)
    torch.testing.assert_close(torch.cat([weight.detach().flatten() for weight in trained.parameters()]), expected)


def test_resuming_gives_the_same_bits(tmp_path):
    whole, history = run(AVERAGED, path=tmp_path / "whole")

    def stop(history):
        if len(history.epochs) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(AVERAGED, path=tmp_path / "parts", progress=stop)
    parts, again = run(AVERAGED, path=tmp_path / "parts")
    assert without_time(again) == without_time(history)
    for name, value in whole.state_dict().items():
        assert torch.equal(parts.state_dict()[name], value), name


def test_a_mean_that_does_not_fit_is_refused():
    average, problem = Averaging(nn.Linear(2, 2), 3), setting()[1]
    with pytest.raises(ValueError, match="does not fit"):
        average.load({"average": {"count": 1, "mean": {"weight": torch.zeros(3, 3)}}}, problem)
