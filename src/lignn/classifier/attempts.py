"""Settings that a fit starts over with, if its training labels cannot be learned with the first ones.

The first attempt has the settings as given: the preset's regularisation, and a proved contraction if the choice is
"auto". If it learns its labels poorly, a second one is not regularised; if it still does, and a short trial without the
proof does better, a last one is free. Held-out labels have no say.

Explicit `weight_decay` and `input_dropout` switch the relaxed attempt off, and `contraction` other than "auto" the free
one. Both are defended by results/choice (seed 7): always regularised loses 6.4 points on Chameleon with 60 % of the
labels, always free loses 10 on Citeseer; that Chains needs the free one is in results/contraction. The rule `underfits`
of the policy says when labels are learned poorly: Chameleon and Squirrel with 60 % of the labels and Chains have 0.6 to
0.8 of a guess's loss, graphs that gain by regularisation 0.02 to 0.4 (docs/results/other_graphs.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lignn.classifier.spec import Spec
from lignn.training import Assembly, End, History, Hook, Run, checkpoint

RELAXED, FREE = "relaxed", "free"
"""How an attempt starts over: without the preset's regularisation, or without the limit of the proof."""

_LAST = 20
"""Epochs over which a loss is averaged: each one hides other labels."""


@dataclass(frozen=True)
class Attempt:
    """One training with labels held back.

    Attributes:
        spec: its settings.
        later: what may come after it, in this order.
        started_over: what came before, as the end of a run's id: "/relaxed/free".
    """

    spec: Spec
    later: tuple[str, ...] = ()
    started_over: str = ""

    @classmethod
    def first(cls, spec: Spec, file: Path | None = None, identity: str = "") -> Attempt:
        """Return the attempt to begin with: as given, or the one that the checkpoint in `file` is of."""
        later = () if spec.relaxed is None else (RELAXED,)
        if spec.chooses_contraction:
            spec, later = spec.with_contraction("proved"), (*later, FREE)
        attempt = cls(spec, later)
        run = checkpoint.read(file).get("run", "") if file is not None and file.exists() else ""
        before = run.removeprefix(identity).split("/")[1:] if run.startswith(f"{identity}/") else []
        for how in before:
            attempt = attempt.then(how)
        return attempt

    def then(self, how: str) -> Attempt:
        """Return the attempt that starts over."""
        spec = self.spec.relaxed if how == RELAXED else self.spec.with_contraction(FREE)
        assert spec is not None
        return Attempt(spec, self.later[self.later.index(how) + 1 :], f"{self.started_over}/{how}")

    def without_proof(self) -> Attempt:
        """Return the same attempt for a network of which nothing can be proved."""
        later = tuple(how for how in self.later if how != FREE)
        return replace(self, spec=self.spec.with_contraction(FREE), later=later)


class Judge(Hook):
    """Ends a training that another attempt will replace, as soon as this is known.

    Args:
        attempt: the attempt that is trained.
        assembly: its method and problems.
        assembled: returns the same for other settings, for the trial.
    """

    def __init__(self, attempt: Attempt, assembly: Assembly, assembled: Callable[[Spec], Assembly]) -> None:
        self.attempt, self.assembly, self.assembled = attempt, assembly, assembled
        self._decided = not attempt.later
        self._following: Attempt | None = None

    def after_epoch(self, run: Run, record: dict[str, Any]) -> End | None:  # noqa: ARG002
        """End training after the least number of epochs if nobody would use the rest of it."""
        history = run.history
        known = history.end is None and len(history.epochs) >= self.attempt.spec.values["least_epochs"]
        # One of several processes cannot end alone, and without a score there is no epoch to keep.
        if known and history.best >= 0 and run.inference.processes.count == 1 and self.following(history) is not None:
            return End.STOPPED
        return None

    def following(self, history: History) -> Attempt | None:
        """Return the attempt that takes the place of this one; None to keep it. It is decided once."""
        if not self._decided:
            how = self._how_to_start_over(history)
            self._following = None if how is None else self.attempt.then(how)
            self._decided = True
        return self._following

    def _how_to_start_over(self, history: History) -> str | None:
        if RELAXED in self.attempt.later and _underfits(self, history):
            return RELAXED
        return FREE if FREE in self.attempt.later and _is_too_tight(self, history) else None


def _underfits(judge: Judge, history: History) -> bool:
    """Return whether the training labels are fitted poorly, though there was time to learn them."""
    least = judge.attempt.spec.values["least_epochs"]
    return len(history.epochs) >= least > _LAST and _is_poor(judge, history, least)


def _is_too_tight(judge: Judge, history: History) -> bool:
    """Return whether the training labels are fitted poorly, and better by a short training without the proof."""
    spec = judge.attempt.spec
    count = min(len(history.epochs), spec.values["least_epochs"])
    if not _is_poor(judge, history, count):
        return False
    free = spec.with_contraction(FREE)
    trial = judge.assembled(free).train(None, replace(free.training, max_epochs=count))
    return trial.end is End.EPOCHS and _late_loss(trial, count) < _late_loss(history, count)


def _is_poor(judge: Judge, history: History, count: int) -> bool:
    """Return whether the first `count` epochs have not learned the training labels; a model that teaches has."""
    if "taught" in history.epochs[count - 1]:
        return False
    guess = judge.assembly.training.labels.loss_of_guess()
    return _late_loss(history, count) > judge.attempt.spec.values["underfits"] * guess


def _late_loss(history: History, count: int) -> float:
    """Return the mean loss of the last ones of the first `count` epochs."""
    losses = [record["loss"] for record in history.epochs[:count]][-_LAST:]
    return sum(losses) / len(losses)
