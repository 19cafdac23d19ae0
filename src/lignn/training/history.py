"""What happens in training, epoch by epoch, and which epoch is the best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lignn.methods import Carry, Prediction

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


class Interrupted(KeyboardInterrupt):
    """Raised on Ctrl-C after at least one epoch; the method is as if training had ended then, see `history`."""

    def __init__(self, history: History) -> None:
        super().__init__()
        self.history = history
