"""Hooks: when each method is called, how one ends training, and what checkpoints hold of them."""

from contextlib import contextmanager

import pytest
import torch

from lignn.training import End, Hook, Training, checkpoint, train
from tests.training.test_loop import run, setting


class Noting(Hook):
    """Notes its calls, hides one feature, and ends training after an epoch."""

    def __init__(self, calls, last=10):
        self.calls, self.last = calls, last

    @contextmanager
    def training(self, run):
        self.calls.append("training")
        yield
        self.calls.append("trained")

    def before_epoch(self, run, problem):
        self.calls.append("before_epoch")
        return problem

    def after_update(self, run, record):
        self.calls.append("after_update")
        record["noted"] = record["epoch"]

    @contextmanager
    def evaluating(self, run, problem):
        self.calls.append("evaluating")
        yield
        self.calls.append("evaluated")

    def after_epoch(self, run, record):
        self.calls.append("after_epoch")
        assert run.history.epochs[-1] is record
        return End.STOPPED if record["epoch"] == self.last else None


def trained(hooks, settings=None):
    method, problem, score = setting()
    return train(method, problem, problem, score, torch.Generator().manual_seed(5), settings, hooks=hooks)


def test_are_called_in_order_around_every_epoch():
    calls = []
    history = trained([Noting(calls, last=1)])
    epoch = ["before_epoch", "after_update", "evaluating", "evaluated", "after_epoch"]
    assert calls == ["training", *epoch, *epoch, "trained"]
    assert history.end is End.STOPPED
    assert [list(record)[:3] for record in history.epochs] == [["epoch", "loss", "noted"]] * 2


def test_an_epoch_that_is_not_evaluated_has_no_predictions_around_it():
    calls = []
    trained([Noting(calls)], Training(max_epochs=3, evaluate_every=3))
    assert calls.count("after_update") == 3
    assert calls.count("evaluating") == 2  # the first one and every third


def test_the_first_reason_to_end_is_kept_and_all_hooks_are_called():
    calls = []
    history = trained([Noting(calls, last=1), Noting(calls, last=1)], Training(max_epochs=2))
    assert history.end is End.EPOCHS
    assert calls.count("after_epoch") == 4


AVERAGED = Training(max_epochs=6, averaged_epochs=3, teaching=1.0)


@pytest.mark.parametrize("left_out", ["average", "taught", "eligible"])
def test_the_file_of_a_checkpoint_is_that_of_0_2(tmp_path, left_out):
    """Those of before 0.2 lack parts, which begin anew."""
    path = tmp_path / "run"

    def interrupt(history):
        if len(history.epochs) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(AVERAGED, path, interrupt)
    state = checkpoint.read(path)
    assert state.keys() == {
        *("run", "weights", "best", "optimizer", "average", "generator", "carry", "taught", "history")
    }
    assert state["average"]["count"] == 3
    assert state["history"].keys() == {"epochs", "best", "end", "eligible"}
    (state["history"] if left_out == "eligible" else state).pop(left_out)
    checkpoint.write(path, state)
    assert len(run(AVERAGED, path)[1].epochs) == 6


def test_a_later_attempt_replaces_the_checkpoint_of_an_earlier_one(tmp_path):
    path = tmp_path / "run"
    run(Training(max_epochs=2), path, run_id="one")
    _, history = run(Training(max_epochs=3), path, run_id="one/relaxed")
    assert len(history.epochs) == 3
    assert checkpoint.read(path)["run"] == "one/relaxed"
