"""How a classifier is fitted: training with early stopping on held-out labels, calibration, and training once more."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Generator, Tensor

from lignn import training
from lignn.classifier import holdout, run_id
from lignn.classifier.calibration import Calibration, calibrate
from lignn.classifier.classes import Classes
from lignn.classifier.live import Live
from lignn.classifier.settings import Settings
from lignn.errors import InputError
from lignn.graph import Graph, Split
from lignn.labels import KnownLabels
from lignn.methods import LabelInputted, Method, Problem
from lignn.training import History, Progress, Scorer, score_on

NEED_FEATURES = ("backbone", "reslpa", "ignn", "eignn", "correct_and_smooth")
"""Methods that predict from features; labels alone are nothing to them."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """What fitting gives.

    Attributes:
        settings: it was fitted with.
        classes: that it tells apart.
        graph: it works on.
        split: it was fitted with; nodes that updates have trained on are in its training part.
        history: of training; of the first one, if there were two.
        live: the trained method at work on the graph.
        calibration: None if not wanted, or with too few held-out labels.
        interrupted: whether training was cut short.
        further: epochs that updates have trained since.
    """

    settings: Settings
    classes: Classes
    graph: Graph
    split: Split
    history: History
    live: Live
    calibration: Calibration | None
    interrupted: bool = False
    further: int = 0


def fit(
    settings: Settings, graph: Graph, split: Split | None, progress: Progress | None, checkpoint: Path | None
) -> Fitted:
    """Train the method of `settings` on `graph`; see `NodeClassifier.fit`."""
    _check_graph(graph, settings.name)
    split, reveal = _split(graph, split, settings.values["seed"])
    classes = Classes.of(graph)
    method, generator = _fresh(settings, graph, len(classes))
    problem = Problem.with_labels(graph, classes.known(graph, split.train & graph.labelled, settings.dtype))
    history, interrupted = _train_first(settings, method, generator, problem, graph, split, progress, checkpoint)
    live = Live.of(method, problem)
    calibration = _calibration(settings, live, graph, split.val & graph.labelled)
    known = classes.known(graph, (split.train | split.val) & graph.labelled, settings.dtype)
    if settings.values["refit"] and not interrupted and history.best >= 0:
        try:
            live, reveal = _refitted(settings, graph, split, live, history, known), False
        except KeyboardInterrupt:
            interrupted = True
    if reveal:
        live = live.with_labels(known)
    return Fitted(settings, classes, graph, split, history, live, calibration, interrupted)


def _split(graph: Graph, given: Split | None, seed: int) -> tuple[Split, bool]:
    """The split to fit with, and whether its validation labels were held back here, so that predictions know them."""
    if given is None:
        return holdout.own_split(graph, seed), True
    split = holdout.checked_split(graph, given)
    if (split.val & graph.labelled).any():
        return split, False
    return holdout.hold_back(graph, split, seed), True


def _check_graph(graph: Graph, method: str) -> None:
    """The method must have something to work with."""
    if not isinstance(graph, Graph):
        raise InputError(f"a lignn.Graph is needed, got {type(graph).__name__}; see Graph.read and Graph.from_pyg")
    if not graph.num_features and method in NEED_FEATURES:
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
    options = settings.training
    if score is None:
        options = replace(options, max_epochs=min(options.max_epochs, options.patience))
    seen = _seen(problem, ~split.held_out, settings)
    identity = run_id.of(settings, graph, split) if checkpoint else ""
    try:
        history = training.train(
            method, seen, problem, score, generator, options, path=checkpoint, run_id=identity, progress=progress
        )
    except training.Interrupted as interruption:
        return interruption.history, True
    if history.best < 0 and history.end is training.End.NON_FINITE:
        raise InputError("training ended in its first epoch: the loss is not finite; lower lr, or scale the features")
    return history, False


def _refitted(settings: Settings, graph: Graph, split: Split, live: Live, history: History, known: KnownLabels) -> Live:
    """The method trained from fresh weights on all of `known`, for as many epochs as were best."""
    method, generator = _fresh(settings, graph, known.num_classes)
    problem = live.problem.knowing(known)
    seen = _seen(problem, ~split.test, settings)
    training.train(method, seen, problem, None, generator, replace(settings.training, max_epochs=history.best + 1))
    method.load_extra_state(live.method.extra_state())
    return Live.of(method, problem)


def go_on(fitted: Fitted, known: KnownLabels, truth: Graph, epochs: int) -> Fitted:
    """Train on from the present weights and equilibrium with other known labels, on a copy of the method.

    If validation labels are left that are not known, the best of the epochs is kept and the temperature fitted anew;
    else the last epoch is kept, and the temperature stays.
    """
    settings, live = fitted.settings, fitted.live
    method = copy.deepcopy(live.method)
    if isinstance(method, LabelInputted) and live.solution is not None:
        method.load_extra_state(method.extra_state() | dict.fromkeys(("training", "evaluation"), live.solution.value))
    problem = live.problem.knowing(known)
    held_out = fitted.split.val & truth.labelled & ~known.mask
    score = score_on(truth, {"val": held_out}) if held_out.any() else None
    seen = _seen(problem, known.mask | ~fitted.split.held_out, settings)
    generator = torch.Generator().manual_seed(_further_seed(settings.values["seed"], fitted.further))
    options = replace(settings.training, max_epochs=epochs, patience=epochs)
    history = training.train(method, seen, problem, score, generator, options)
    split = fitted.split if history.end is training.End.NOTHING_TO_TRAIN else _with_training(fitted.split, known.mask)
    live = Live.of(method, problem)
    calibration = _calibration(settings, live, truth, held_out) or fitted.calibration
    return replace(fitted, split=split, live=live, calibration=calibration, further=fitted.further + epochs)


def _with_training(split: Split, nodes: Tensor) -> Split:
    """`split` with more training nodes: weights that know their labels are not to be scored on them."""
    return Split(split.train | nodes, split.val & ~nodes, split.test & ~nodes)


def _further_seed(seed: int, epochs: int) -> int:
    """Another one after every update, so that not all of them hide the same labels."""
    return int(np.random.SeedSequence((seed, epochs)).generate_state(1, np.uint64)[0])


def _seen(problem: Problem, nodes: Tensor, settings: Settings) -> Problem:
    """What training sees: all, or in the inductive setting only edges between `nodes`."""
    if not settings.values["inductive"]:
        return problem
    return replace(problem, edges=problem.edges.without_edges_at(~nodes), _operators={})


def _held_out_scorer(graph: Graph, split: Split) -> Scorer:
    """Scores on training and validation nodes; test labels are not looked at."""
    return score_on(graph, {part: getattr(split, part) & graph.labelled for part in ("train", "val")})


def _calibration(settings: Settings, live: Live, graph: Graph, nodes: Tensor) -> Calibration | None:
    """Fitted to the labels of `nodes`, which are not known to `live`; None if not wanted, or with too few of them."""
    assert graph.y is not None
    return calibrate(live.probabilities[nodes], graph.y[nodes]) if settings.values["calibrate"] else None
