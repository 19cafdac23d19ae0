"""One training loop for every learnable method."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from lignn.backbones.norms import seeing
from lignn.equilibrium import Status
from lignn.errors import ConfigError, InputError, ProcessError
from lignn.methods import BoundMethod, Carry, Epoch, Method, Prediction, Problem
from lignn.processes import Processes
from lignn.training import checkpoint
from lignn.training.adam import Adam
from lignn.training.averaging import WeightAverage
from lignn.training.teaching import Teacher, may_teach
from lignn.training.threads import enough_threads

Scores = dict[str, float]
"""Scores by the name of a part of the split."""
Scorer = Callable[[Prediction], Scores]
"""Function that returns the scores of a prediction by name; `val` chooses the epoch, see `History.would_be_best`."""

TIE = "tie"
"""Name of a score that decides between epochs of the same validation score."""
LOG_LOSS = "log_loss"
"""Name of the log loss on the validation nodes, which decides between epochs that `TIE` does not tell apart."""
ONE_CLASS = "one_class"
"""Name of a score that is 1 if all validation nodes are predicted to be of one class, though they are of several."""
DECIDING = (TIE, LOG_LOSS, ONE_CLASS)
"""Scores that help to choose the epoch, and are no scores of the trained method."""


class End(StrEnum):
    """Why training ended."""

    PATIENCE = "no better validation score within the patience"
    EPOCHS = "all epochs done"
    NOTHING_TO_TRAIN = "the method has nothing to train"
    AT_ONCE = "fitted at once, without epochs"
    NON_FINITE = "the loss or the state is not finite any more"
    INTERRUPTED = "interrupted"
    STOPPED = "ended by its progress function"


@dataclass(frozen=True)
class Settings:
    """Settings of training.

    Attributes:
        lr: learning rate of Adam.
        weight_decay: weight decay of Adam.
        max_epochs: maximum number of epochs.
        patience: stop after this many epochs without a better validation score.
        first_epoch: first epoch that may be chosen; a network that has hardly been trained can be best by chance.
        checkpoint_seconds: seconds between two checkpoints.
        input_dropout: probability that an entry of the features is set to zero in an epoch.
        averaged_epochs: number of epochs whose weights are averaged for predictions; 1 takes the last ones.
        evaluate_every: predict and score after every so many epochs, and after the last one. Without a scorer the
            last epoch alone is evaluated if this is above 1.
        batch_parts: number of parts of a store in a batch; None: an epoch is one update, on the whole graph.
        teaching: weight in the loss of what the model teaches itself, see `training.teaching`; 0 for nothing.
        goes_on: whether the weights were trained before; predictions may then teach after 10 epochs, not 50.
    """

    lr: float = 0.01
    weight_decay: float = 0.0
    max_epochs: int = 1000
    patience: int = 100
    first_epoch: int = 0
    checkpoint_seconds: float = 10.0
    input_dropout: float = 0.0
    averaged_epochs: int = 1
    evaluate_every: int = 1
    batch_parts: int | None = None
    teaching: float = 0.0
    goes_on: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.lr < math.inf:
            raise ConfigError(f"lr: a positive number is needed, got {self.lr}")
        if not 0 <= self.input_dropout < 1:
            raise ConfigError(f"input_dropout: a share from 0 to below 1 is needed, got {self.input_dropout}")
        if not 0 <= self.weight_decay < math.inf:
            raise ConfigError(f"weight_decay: a number of at least 0 is needed, got {self.weight_decay}")
        if not 0 <= self.teaching < math.inf:
            raise ConfigError(f"teaching: a number of at least 0 is needed, got {self.teaching}")
        for name in ("max_epochs", "patience", "averaged_epochs", "evaluate_every", "batch_parts"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name}: at least 1 is needed, got {value}")
        if not 0 <= self.first_epoch < self.max_epochs:
            raise ConfigError(f"first_epoch: 0 … {self.max_epochs - 1} is needed, got {self.first_epoch}")


@dataclass
class History:
    """What happened in training: one record per epoch, the best of them, and the result.

    Attributes:
        epochs: one record per epoch: `epoch`, `loss`, scores by name, `seconds`, and how the solves ended.
        best: index of the record with the best validation score, see `would_be_best`; the last record if there are no
            scores; -1 if there are no records yet.
        end: why training ended, None while it runs.
        final: scores of the trained method, with the best weights and after `BoundMethod.choose`.
        prediction: prediction of the trained method.
        carry: what the last epoch passed on.
        eligible: whether the best record is of an epoch that may be chosen.
    """

    epochs: list[dict[str, Any]] = field(default_factory=list)
    best: int = -1
    end: End | None = None
    final: Scores = field(default_factory=dict)
    prediction: Prediction | None = field(default=None, repr=False)
    carry: Carry = field(default_factory=Carry, repr=False)
    eligible: bool = True

    @property
    def best_record(self) -> dict[str, Any]:
        """The record of the epoch whose weights are kept."""
        return self.epochs[self.best]

    def would_be_best(self, record: dict[str, Any], eligible: bool = True) -> bool:
        """Return whether a record is better than all so far; eligible records always beat ineligible ones.

        The validation score decides, then `TIE`, then the log loss if the scorer gives it; of equal records the first
        is kept. An epoch that predicts one class is often right as often as trained ones, where classes are
        imbalanced: it loses to an epoch of several classes with lower log loss too, and beats one only in both.
        """
        if self.best < 0 or "val" not in record:
            return True
        if eligible != self.eligible:
            return eligible
        best = self.best_record
        if record.get(ONE_CLASS, 0) != best.get(ONE_CLASS, 0):
            higher, lower = record["val"] > best["val"], record[LOG_LOSS] < best[LOG_LOSS]
            return higher and lower if record[ONE_CLASS] else higher or lower
        return _rank(record) > _rank(best)

    def add(self, record: dict[str, Any], eligible: bool = True, scored: bool = True) -> bool:
        """Append a record; return whether it is the best so far.

        Args:
            record: of the epoch.
            eligible: whether it may be chosen; if not, it is kept only as long as there is none that may be.
            scored: whether the epoch was evaluated; one that was not is never the best.
        """
        better = scored and self.would_be_best(record, eligible)
        self.epochs.append(record)
        if better:
            self.best, self.eligible = len(self.epochs) - 1, eligible
        return better


def _rank(record: dict[str, Any]) -> tuple[float, float, float]:
    return record["val"], record.get(TIE, 0.0), -record.get(LOG_LOSS, 0.0)


Progress = Callable[[History], None]
"""Function that is called after every epoch, e.g. to show the progress. Setting `history.end` ends the training."""


class Interrupted(KeyboardInterrupt):
    """Raised on Ctrl-C after at least one epoch; the method is as if training had ended then, see `history`."""

    def __init__(self, history: History) -> None:
        super().__init__()
        self.history = history


def train(
    method: Method,
    training: Problem,
    inference: Problem,
    score: Scorer | None,
    generator: Generator,
    settings: Settings | None = None,
    *,
    carry: Carry | None = None,
    path: Path | None = None,
    run_id: str = "",
    progress: Progress | None = None,
    teachers: Tensor | None = None,
    supersedes: str = "",
) -> History:
    """Train `method` and leave it with the weights of the epoch with the best validation score.

    `Interrupted` is raised on Ctrl-C if at least one epoch can be kept.

    Args:
        method: the method to train.
        training: the problem of the loss; in the inductive setting without the edges of held-out nodes.
        inference: the problem of the predictions, with the full graph. The same object as `training` in the
            transductive setting.
        score: turns a prediction into numbers; `val` chooses the epoch, the others are only recorded. Without a scorer
            the last epoch is kept.
        generator: draws the masks and dropout of all epochs; usually the one that has drawn the weights.
        settings: how to train.
        carry: what the first epoch takes over from an earlier training.
        path: checkpoint file. If it exists, training continues from it, with the same result as without interruption.
        run_id: identifies this run; the checkpoint of another run is refused.
        progress: called after every epoch.
        teachers: mask of the nodes whose predictions may teach; None for all.
        supersedes: a run whose checkpoint is not refused, but replaced.
    """
    with enough_threads(inference), seeing(method, training.seen):
        learned = method.learn(training)
        if any(True for _ in method.parameters()):
            settings = settings or Settings()
            if not may_teach(training, inference):
                settings = dataclasses.replace(settings, teaching=0.0)
            run = _Run(method, generator, settings, run_id, carry or Carry(), teachers, supersedes)
            history = _train(run, training, inference, score, path, progress)
        else:
            history = History(end=End.AT_ONCE if learned else End.NOTHING_TO_TRAIN)
        try:
            _predict(method.eval().on(inference), score, history)
        except KeyboardInterrupt:
            # A second interruption is meant, and one of several processes cannot predict alone.
            if history.best < 0 or history.end is End.INTERRUPTED or inference.processes.count > 1:
                raise
            history.end = End.INTERRUPTED
            _predict(method.on(inference), score, history)
    if history.end is End.INTERRUPTED:
        raise Interrupted(history)
    return history


def _predict(bound: BoundMethod, score: Scorer | None, history: History) -> None:
    """Add the prediction of the trained weights to the history, and its scores."""
    if score is not None:
        bound.choose(lambda prediction: score(prediction)["val"])
    history.prediction = bound.solve()
    if score is not None:
        history.final = {name: value for name, value in score(history.prediction).items() if name not in DECIDING}


def _train(
    run: _Run, training: Problem, inference: Problem, score: Scorer | None, path: Path | None, progress: Progress | None
) -> History:
    """Run all epochs, with checkpoints, and leave the method with the best weights."""
    if path is not None and path.exists():
        run.resume(path, inference)
    processes = inference.processes
    whole = {} if path is None else run.state(processes)
    written = time.monotonic()

    def write() -> None:
        if path is not None and processes.is_first:
            checkpoint.write(path, whole)

    try:
        while run.history.end is None:
            run.epoch(training, inference, score)
            if path is not None:
                whole = run.state(processes)
            if progress is not None and run.history.epochs:
                progress(run.history)
            if time.monotonic() - written > run.settings.checkpoint_seconds:
                write()
                written = time.monotonic()
        if run.history.epochs:  # there is nothing to continue if the first epoch failed
            write()
    except (KeyboardInterrupt, ProcessError):
        # Most interruptions come in the middle of an epoch: the next run repeats that epoch from its beginning.
        write()
        if run.history.best < 0 or processes.count > 1:  # one of several processes cannot finish alone
            raise
        run.history.end = End.INTERRUPTED
    run.method.load_state_dict(run.best_weights)
    return run.history


class _Run:
    """Everything that the next epoch depends on."""

    def __init__(
        self,
        method: Method,
        generator: Generator,
        settings: Settings,
        run_id: str,
        carry: Carry,
        teachers: Tensor | None = None,
        supersedes: str = "",
    ) -> None:
        self.method = method.train()  # between evaluations; changing the mode takes longer than a small product
        self.run_id, self.supersedes = run_id, supersedes
        self.settings = settings
        self.optimizer = Adam(method.parameters(), settings.lr, settings.weight_decay)
        self.average = WeightAverage(method, settings.averaged_epochs)
        self.teacher = Teacher(method, settings.teaching, settings.goes_on, teachers)
        self.generator = generator
        self.history = History(carry=carry)
        self.best_weights = self._weights()

    def _weights(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self.method.state_dict().items()}

    def epoch(self, training: Problem, inference: Problem, score: Scorer | None) -> None:
        """Run one update, or one per batch, and one evaluation, and record them."""
        start = time.perf_counter()
        number = len(self.history.epochs)
        training = self.teacher.teach(training, self.history.epochs, self.history.carry.state)
        if self.settings.input_dropout:
            training = training.drop_features(self.settings.input_dropout, self.generator)
        update = partial(self._update, inference)
        if self.settings.batch_parts is None:
            epoch = self.method.epoch(training, self.generator, self.history.carry)
            update(epoch)
        else:
            epoch = self._batches(training, number, update)
        loss = epoch.loss.item()
        if not math.isfinite(loss):
            self.history.end = End.NON_FINITE
            return
        epoch = dataclasses.replace(epoch, loss=epoch.loss.detach())  # frees the tape before the evaluation
        self.average.add()
        scored = self._is_evaluated(number, score)
        if scored:
            again = partial(self.method.epoch, training, Generator().manual_seed(number), self.history.carry)
            with self.average.in_use(again):
                self.method.eval()
                record, eligible = self._evaluate(number, epoch, inference, score)
            self.method.train()
        else:
            self.history.carry = self.method.passed_on(epoch)
            record, eligible = {}, False
        if self.history.end is End.NON_FINITE:
            return
        record = {"epoch": number, "loss": loss} | self.teacher.account() | record | _account(epoch)
        self.history.add(record | {"seconds": time.perf_counter() - start}, eligible, scored)
        waited = number - max(self.history.best, self.settings.first_epoch)
        if score is not None and waited >= self.settings.patience:
            self.history.end = End.PATIENCE
        elif len(self.history.epochs) >= self.settings.max_epochs:
            self.history.end = End.EPOCHS

    def _update(self, inference: Problem, epoch: Epoch) -> None:
        """Change the weights by the gradient of a loss; one that is not finite has none."""
        if not math.isfinite(epoch.loss.item()):
            return
        self.optimizer.zero_grad()
        epoch.loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            self.method.project(inference)

    def _batches(self, training: Problem, number: int, update: Callable[[Epoch], None]) -> Epoch:
        """Run an epoch of many updates; its batches depend on the seed and the number of the epoch alone."""
        from lignn.methods.batches import epoch_of_batches  # needs what reads stores

        assert self.settings.batch_parts is not None
        drawn = np.random.SeedSequence((self.generator.initial_seed(), number)).generate_state(1, np.uint64)
        order = Generator().manual_seed(int(drawn[0]) >> 1)
        carry, size = self.history.carry, self.settings.batch_parts
        return epoch_of_batches(self.method, training, self.generator, carry, size, order, update)

    def _evaluate(
        self, number: int, epoch: Epoch, inference: Problem, score: Scorer | None
    ) -> tuple[dict[str, Any], bool]:
        """Predict, and keep the weights if they are the best; return the scores and whether the epoch may be chosen."""
        if self.average.window > 1:
            with torch.no_grad():
                self.method.project(inference)  # a mean of weights need not keep a bound that each of them keeps
        prediction, self.history.carry = self.method.evaluate(inference, epoch)
        solution = prediction.solution  # if the map is not finite, it holds the last finite state
        failed = solution is not None and solution.status is Status.NON_FINITE
        if failed or not math.isfinite(inference.space.largest(prediction.probabilities)):
            self.history.end = End.NON_FINITE
            return {}, False
        record = {} if score is None else dict(score(prediction))
        eligible = number >= self.settings.first_epoch
        if self.history.would_be_best(record, eligible):
            self.best_weights = self._weights()
        return record | ({} if solution is None else {"evaluation": solution.record()}), eligible

    def _is_evaluated(self, number: int, score: Scorer | None) -> bool:
        every = self.settings.evaluate_every
        last = number + 1 >= self.settings.max_epochs
        return last or every == 1 or (score is not None and (number == 0 or (number + 1) % every == 0))

    def state(self, processes: Processes) -> dict[str, Any]:
        """Return everything for a checkpoint; later epochs do not change it."""
        return {
            "run": self.run_id,
            "weights": self._weights(),
            "best": self.best_weights,
            "optimizer": self.optimizer.state(),
            "average": self.average.state(),
            "generator": self.generator.get_state(),
            "carry": self.history.carry.plain(processes),
            "taught": self.teacher.state(),
            "history": {
                "epochs": [*self.history.epochs],
                "best": self.history.best,
                "end": self.history.end,
                "eligible": self.history.eligible,
            },
        }

    def resume(self, path: Path, inference: Problem) -> None:
        """Continue from a checkpoint, unless this run supersedes it; raise if its parts do not fit together."""
        try:
            state = checkpoint.read(path)
            if not self.supersedes or state.get("run") != self.supersedes:
                self.restore(state, path, inference)
        except InputError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(f"{path}: a damaged checkpoint ({error}); delete it to start over") from error

    def restore(self, state: dict[str, Any], path: Path, inference: Problem) -> None:
        """Restore what `state` returned, as it was read from `path`."""
        theirs, best, ours = (
            {name: value.shape for name, value in weights.items()}
            for weights in (state["weights"], state["best"], self.method.state_dict())
        )
        if state.get("run", "") != self.run_id or not theirs == best == ours:
            raise InputError(
                f"{path}: the checkpoint of another run with another graph, split or settings; "
                "delete it, or give another file"
            )
        self.method.load_state_dict(state["weights"])
        self.best_weights = state["best"]
        self.optimizer.load_state(state.get("optimizer", {}))
        self.average.load_state({"count": 0, "mean": {}} | state.get("average", {}))
        self.teacher.load_state(state.get("taught", {}), inference)
        self.generator.set_state(state["generator"])
        history = state["history"]
        end = None if history["end"] is None else End(history["end"])
        if history["best"] not in range(-1, len(history["epochs"])) or any("loss" not in e for e in history["epochs"]):
            raise ValueError("its history is none")
        carry = Carry.of(state.get("carry", {}), inference)
        eligible = history.get("eligible", True)
        self.history = History(history["epochs"], history["best"], end, carry=carry, eligible=eligible)


def _account(epoch: Epoch) -> dict[str, Any]:
    """Describe the solves of an epoch in plain values."""
    if epoch.solution is None:
        return {}
    adjoints = epoch.solution.adjoints
    solves = {"forward": epoch.solution.record(), "backward": adjoints[-1].record() if adjoints else None}
    return solves if epoch.mask_rate is None else {"mask_rate": epoch.mask_rate, **solves}
