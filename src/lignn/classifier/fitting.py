"""How a classifier is fitted: training with early stopping on held-out labels, calibration, and training once more."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import torch
from torch import Generator, Tensor

from lignn import training
from lignn.classifier import holdout, resuming
from lignn.classifier.calibration import Calibration, calibrate
from lignn.classifier.classes import Classes
from lignn.classifier.live import Live
from lignn.classifier.settings import Settings
from lignn.errors import InputError, LignnError
from lignn.graph import Graph, Split
from lignn.labels import KnownLabels
from lignn.methods import LabelInputted, Method, Prediction, Problem
from lignn.training import History, Progress, Scorer, Scores, score_on

NEED_FEATURES = ("backbone", "reslpa", "ignn", "eignn", "correct_and_smooth")
"""Methods that predict from features; labels alone are nothing to them."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """What fitting gives.

    Attributes:
        settings: it was fitted with.
        classes: that it tells apart.
        graph: it works on.
        split: it was fitted with.
        history: of training; of the first one, if there were two.
        live: the trained method at work on the graph.
        calibration: None if not wanted, or with too few held-out labels.
        interrupted: whether training was cut short.
    """

    settings: Settings
    classes: Classes
    graph: Graph
    split: Split
    history: History
    live: Live
    calibration: Calibration | None
    interrupted: bool = False


def fit(
    settings: Settings, graph: Graph, split: Split | None, progress: Progress | None, checkpoint: Path | None
) -> Fitted:
    """Train the method of `settings` on `graph`; see `NodeClassifier.fit`."""
    _check_graph(graph, settings.name)
    own = split is None
    split = holdout.own_split(graph, settings.values["seed"]) if split is None else holdout.checked_split(graph, split)
    classes = Classes.of(graph)
    method, generator = _fresh(settings, graph, len(classes))
    problem = Problem.with_labels(graph, classes.known(graph, split.train & graph.labelled, settings.dtype))
    history, interrupted = _train_first(settings, method, generator, problem, graph, split, progress, checkpoint)
    live = Live.of(method, problem)
    calibration = _calibration(live, graph, split) if settings.values["calibrate"] else None
    refit = settings.values["refit"] and not interrupted and history.best >= 0
    if own or refit:
        known = classes.known(graph, (split.train | split.val) & graph.labelled, settings.dtype)
        live = _refitted(settings, graph, split, live, history, known) if refit else live.with_labels(known)
    return Fitted(settings, classes, graph, split, history, live, calibration, interrupted)


def _check_graph(graph: Graph, method: str) -> None:
    """The method must have something to work with."""
    if not isinstance(graph, Graph):
        raise InputError(f"a lignn.Graph is needed, got {type(graph).__name__}; see Graph.read and Graph.from_pyg")
    if graph.x is None and method in NEED_FEATURES:
        raise InputError(f"{graph.name} has no features, which method {method!r} needs; try lignn or lpa")
    if not graph.num_edges and method != "backbone":
        raise InputError(
            f"{graph.name} has no edges, so no label can reach another node; "
            "use TabularClassifier, which joins rows of features to their nearest neighbours, or method='backbone'"
        )


def _fresh(settings: Settings, graph: Graph, num_classes: int) -> tuple[Method, Generator]:
    """The method with weights from the seed, and the generator that drew them."""
    generator = torch.Generator().manual_seed(settings.values["seed"])
    return settings.build(graph.num_features, num_classes, generator).to(settings.dtype), generator


def _train_first(
    settings: Settings,
    method: Method,
    generator: Generator,
    problem: Problem,
    graph: Graph,
    split: Split,
    progress: Progress | None,
    checkpoint: Path | None,
) -> tuple[History, bool]:
    """Train with the split's validation labels; whether it was interrupted, with the best weights so far loaded."""
    score = _held_out_scorer(graph, split) if (split.val & graph.labelled).any() else None
    options = settings.training if checkpoint else replace(settings.training, checkpoint_seconds=math.inf)
    if score is None:
        options = replace(options, max_epochs=min(options.max_epochs, options.patience))
    seen = _seen(problem, ~split.held_out, settings)
    with resuming.checkpoint_file(checkpoint, method) as path:
        try:
            history = _train(method, seen, problem, score, generator, options, path, progress)
        except KeyboardInterrupt:
            found = resuming.best_so_far(path, method)
            if found is None:
                raise
            return found, True
    if history.best < 0 and history.end is training.End.NON_FINITE:
        raise LignnError("training ended in its first epoch: the loss is not finite; lower lr, or scale the features")
    return history, False


def _refitted(settings: Settings, graph: Graph, split: Split, live: Live, history: History, known: KnownLabels) -> Live:
    """The method trained from fresh weights on all of `known`, for as many epochs as were best."""
    method, generator = _fresh(settings, graph, known.num_classes)
    problem = live.problem.knowing(known)
    seen = _seen(problem, ~split.test, settings)
    _train(method, seen, problem, None, generator, replace(settings.training, max_epochs=history.best + 1))
    method.load_extra_state(live.method.extra_state())
    return Live.of(method, problem)


def go_on(fitted: Fitted, known: KnownLabels, truth: Graph, epochs: int) -> Live:
    """Train on from the present weights and equilibrium with other known labels, on a copy of the method.

    Of the epochs the best one is kept if validation labels are left that are not known, else the last.
    """
    settings, live = fitted.settings, fitted.live
    method = copy.deepcopy(live.method)
    if isinstance(method, LabelInputted) and live.solution is not None:
        method.load_extra_state(method.extra_state() | dict.fromkeys(("training", "evaluation"), live.solution.value))
    problem = live.problem.knowing(known)
    held_out = fitted.split.val & truth.labelled & ~known.mask
    score = score_on(truth, {"val": held_out}) if held_out.any() else None
    seen = _seen(problem, known.mask | ~fitted.split.held_out, settings)
    generator = torch.Generator().manual_seed(settings.values["seed"])
    _train(method, seen, problem, score, generator, replace(settings.training, max_epochs=epochs, patience=epochs))
    return Live.of(method, problem)


def _seen(problem: Problem, nodes: Tensor, settings: Settings) -> Problem:
    """What training sees: all, or in the inductive setting only edges between `nodes`."""
    if not settings.values["inductive"]:
        return problem
    return replace(problem, edges=problem.edges.without_edges_at(~nodes), _operators={})


def _held_out_scorer(graph: Graph, split: Split) -> Scorer:
    """Scores on training and validation nodes; test labels are not looked at."""
    return score_on(graph, {part: getattr(split, part) & graph.labelled for part in ("train", "val")})


def _train(
    method: Method,
    seen: Problem,
    inference: Problem,
    score: Scorer | None,
    generator: Generator,
    settings: training.Settings,
    path: Path | None = None,
    progress: Progress | None = None,
) -> History:
    """Train with early stopping, or without a score for all `max_epochs`, keeping the last weights."""

    def run(score: Scorer, settings: training.Settings) -> History:
        return training.train(method, seen, inference, score, generator, settings, path=path, progress=progress)

    if score is not None:
        return run(score, settings)
    number = count()

    def later_is_better(_: Prediction) -> Scores:
        return {"val": float(next(number))}

    chosen = method.extra_state()
    history = run(later_is_better, replace(settings, patience=settings.max_epochs))
    method.load_extra_state(chosen)  # what a second stage chooses needs a real score
    return history


def _calibration(live: Live, graph: Graph, split: Split) -> Calibration | None:
    nodes = split.val & graph.labelled
    assert graph.y is not None
    return calibrate(live.probabilities[nodes], graph.y[nodes])
