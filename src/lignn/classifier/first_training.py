"""The training that holds back validation labels, and whether one equilibrium is proved of what it trains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from torch import Generator, Tensor

from lignn import training
from lignn.classifier import imbalance
from lignn.classifier.settings import Settings
from lignn.errors import InputError
from lignn.graph import Graph, Split
from lignn.labels import Classes, KnownLabels
from lignn.methods import Method
from lignn.training import Assembly, Checkpoints, End, History, Metric, Progress, Scorer, Watch, assemble, score_on

Checkpoint = tuple[Path, str]
"""A checkpoint's file, and what tells this run from others."""

_POOR = 0.5
"""Loss in units of a guess's above which a network is said not to fit its training labels."""

_LOWER = 0.98
"""Loss of a free training in units of the proved one's, below which the proof is too dear."""

_LAST = 20
"""Epochs over which a loss is averaged: each one hides other labels."""

_RELAXED, _FREE = "relaxed", "free"
"""How a training starts over: without the preset's regularisation, or without the limit of the proof."""


def assembled(
    settings: Settings, graph: Graph, known: KnownLabels, unseen: Tensor, teachers: Tensor | None = None
) -> Assembly:
    """Return the method with weights from the seed, and its problems."""

    def build(generator: Generator) -> Method:
        return settings.build(graph.num_features, known.num_classes, generator, graph.edge_types)

    hidden = unseen if settings.values["inductive"] else None
    known = imbalance.weighted(settings, Classes.of(graph), known)
    seed, device = settings.values["seed"], settings.device
    return assemble(build, graph, known, seed=seed, unseen=hidden, device=device, teachers=teachers)


@dataclass(frozen=True, eq=False)
class FirstTraining:
    """The training that holds back validation labels.

    Attributes:
        graph: the graph.
        split: the split.
        known: the training labels.
        metric: the score that chooses the epoch.
        progress: called after every epoch.
        teachers: mask of the nodes whose predictions may teach; None for all.
    """

    graph: Graph
    split: Split
    known: KnownLabels
    metric: Metric
    progress: Progress | None
    teachers: Tensor | None = None

    def run(self, settings: Settings, checkpoint: Checkpoint | None) -> tuple[Settings, Method, History, bool]:
        """Train; return the settings that were chosen on the way, and whether training was interrupted.

        Training may start over, see `_instead`. A checkpoint says which of the trainings it belongs to.
        """
        for over in _steps_of(checkpoint):
            settings, checkpoint = _started_over(settings, over), _checkpoint_of(checkpoint, over)
        return self._run(settings, checkpoint)

    def _run(self, settings: Settings, checkpoint: Checkpoint | None) -> tuple[Settings, Method, History, bool]:
        """Train, and once more with other settings if this shows that they are needed."""
        chosen = settings.with_contraction("proved") if settings.chooses_contraction else settings
        assembly = self._assembled(chosen)
        if settings.chooses_contraction and assembly.method.on(assembly.inference).lipschitz is None:
            settings = chosen = settings.with_contraction("free")
            assembly = self._assembled(chosen)
        judged, over = settings.relaxed is None and not settings.chooses_contraction, None

        def watch(history: History) -> None:
            nonlocal judged, over
            if self.progress is not None:
                self.progress(history)
            known = not judged and history.end is None and len(history.epochs) >= _least(settings)
            # One of several processes cannot end alone, and without a score there is no epoch to keep.
            if known and history.best >= 0 and assembly.inference.processes.count == 1:
                judged, over = True, self._instead(settings, assembly, history)
                history.end = None if over is None else End.STOPPED  # nobody would use the rest of this training

        history, interrupted = self._history(chosen, assembly, checkpoint, watch)
        if interrupted:
            return chosen, assembly.method, history, True
        try:
            over = over if judged else self._instead(settings, assembly, history)
            if over is not None:
                return self._run(_started_over(settings, over), _checkpoint_of(checkpoint, over))
        except KeyboardInterrupt:
            return chosen, assembly.method, history, True
        return chosen, assembly.method, history, False

    def _instead(self, settings: Settings, assembly: Assembly, history: History) -> str | None:
        """Return how training has to start over, None to keep it.

        If the training labels are fitted poorly with the preset's regularisation, it starts over without it. If the
        contraction is to be chosen, it is the proved one, unless its limit is too tight: where labels must act
        strongly. Held-out labels have no say. Both are known after the setting `least_epochs`, and a training that
        nobody would use ends then.
        """
        if settings.relaxed is not None and self._underfits(settings, assembly, history):
            return _RELAXED
        return _FREE if settings.chooses_contraction and self._is_too_tight(settings, assembly, history) else None

    def _underfits(self, settings: Settings, assembly: Assembly, history: History) -> bool:
        """Return whether the training labels are fitted poorly, though there was time to learn them."""
        least = _least(settings)
        return len(history.epochs) >= least > _LAST and _is_poor(history, least, assembly)

    def _assembled(self, settings: Settings) -> Assembly:
        return assembled(settings, self.graph, self.known, self.split.held_out, self.teachers)

    def _is_too_tight(self, settings: Settings, assembly: Assembly, history: History) -> bool:
        """Return whether the training labels are fitted poorly, and better by a short training without the limit."""
        count = min(len(history.epochs), _least(settings))
        if not _is_poor(history, count, assembly):
            return False
        free, loss = settings.with_contraction("free"), _late_loss(history, count)
        trial = self._assembled(free).train(None, replace(free.training, max_epochs=count))
        return trial.end is End.EPOCHS and _late_loss(trial, count) < _LOWER * loss

    def _history(
        self, settings: Settings, assembly: Assembly, checkpoint: Checkpoint | None, progress: Progress
    ) -> tuple[History, bool]:
        """Train; return what happened, and whether training was interrupted."""
        score, options = None, settings.training
        least = min(options.max_epochs, _least(settings))
        if assembly.inference.space.count(self.split.val & self.graph.labelled) > 0:
            score = self._score(settings, assembly)
            options = replace(options, first_epoch=least - 1)  # an early epoch may be the best one by chance
        else:
            options = replace(options, max_epochs=min(options.max_epochs, max(options.patience, least)))
        hooks = [Watch(progress)] if checkpoint is None else [Checkpoints(*checkpoint), Watch(progress)]
        try:
            history = assembly.train(score, options, hooks=hooks)
        except training.Interrupted as interruption:
            return interruption.history, True
        if history.best < 0 and history.end is End.NON_FINITE:
            reason = "the loss is not finite; lower lr, or scale the features"
            raise InputError(f"training ended in its first epoch: {reason}")
        return history, False

    def _score(self, settings: Settings, assembly: Assembly) -> Scorer:
        parts = {part: getattr(self.split, part) & self.graph.labelled for part in ("train", "val")}
        return score_on(self.graph, parts, self.metric, assembly.inference.space, log_loss_decides(settings))


def log_loss_decides(settings: Settings) -> bool:
    """Return whether the log loss decides between epochs of the same score; in the paper the first of them is kept."""
    return settings.values.get("ties") == "log_loss"


def _least(settings: Settings) -> int:
    """Return the smallest number of epochs that a training takes, after which it is known whether it is too tight."""
    return settings.values.get("least_epochs", 1)


def _is_poor(history: History, count: int, assembly: Assembly) -> bool:
    """Return whether the first `count` epochs have not learned the training labels; a model that teaches has."""
    if "taught" in history.epochs[count - 1]:
        return False
    return _late_loss(history, count) > _POOR * assembly.training.labels.loss_of_guess()


def _started_over(settings: Settings, how: str) -> Settings:
    """Return the settings of a training that starts over."""
    if how == _FREE:
        return settings.with_contraction("free")
    assert settings.relaxed is not None
    return settings.relaxed


def _checkpoint_of(checkpoint: Checkpoint | None, how: str) -> Checkpoint | None:
    """Return the checkpoint of a training that starts over: the same file, and another run."""
    return None if checkpoint is None else (checkpoint[0], f"{checkpoint[1]}/{how}")


def _steps_of(checkpoint: Checkpoint | None) -> list[str]:
    """Return how the training in a checkpoint has started over before."""
    if checkpoint is None or not checkpoint[0].exists():
        return []
    file, identity = checkpoint
    run = training.checkpoint.read(file).get("run", "")
    return run.removeprefix(identity).split("/")[1:] if run.startswith(f"{identity}/") else []


def _late_loss(history: History, count: int) -> float:
    """Return the mean loss of the last ones of the first `count` epochs."""
    losses = [record["loss"] for record in history.epochs[:count]][-_LAST:]
    return sum(losses) / len(losses)
