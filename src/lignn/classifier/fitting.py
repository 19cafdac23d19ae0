"""How a classifier is fitted: labels held back, training with early stopping on them, calibration, training again."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lignn.classifier import columns, imbalance, planning, run_id
from lignn.classifier.calibration import Calibration, Outcome, calibrate
from lignn.classifier.certificate import unique_for_all_labels
from lignn.classifier.first_training import FirstTraining, assembled, log_loss_decides
from lignn.classifier.holdout import Holdout
from lignn.classifier.model import Fitted
from lignn.classifier.settings import Settings
from lignn.declarations import HELD_BACK
from lignn.errors import ConfigError, ConvergenceWarning, InputError
from lignn.graph import Graph, Split, splits
from lignn.graph.hetero import of_labelled_types
from lignn.labels import Classes, KnownLabels
from lignn.methods import Carry, Method, Prediction
from lignn.methods.method import Evaluation
from lignn.methods.starts import Starts, measure
from lignn.store import StoredGraph
from lignn.training import Assembly, End, History, Progress, score_on


@contextmanager
def own_torch_modes() -> Iterator[None]:
    """Train with gradients and single precision as defaults, even inside `torch.no_grad` or another default dtype."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        torch.set_default_dtype(default)


def split_for(graph: Graph, given: Split | None, level: int) -> Split | None:
    """Return the split to fit with: the given one, else the graph's only one, else None for all known labels.

    Args:
        graph: the graph.
        given: the split that the user gave, if any.
        level: number of calls between this function and the user's, for a warning.
    """
    if not isinstance(graph, Graph):
        raise InputError(f"a lignn.Graph is needed, got {type(graph).__name__}; see Graph.read and Graph.from_pyg")
    return splits.only(graph, level + 1) if given is None else given


@own_torch_modes()
def fit(
    settings: Settings, graph: Graph, split: Split | None, progress: Progress | None, checkpoint: Path | None
) -> Fitted:
    """Train the method of `settings` on `graph`; see `NodeClassifier.fit`."""
    _check_graph(graph, settings)
    given = columns.from_one_source(graph, settings.values["features"] != "raw")
    held = Holdout.of(given, split, settings.values["seed"], _most_folds(settings))
    split = held.split
    preparation = columns.learn(settings, given, split)
    graph = columns.prepared(given, preparation, settings)
    _check_features(graph, settings)
    classes, identity = Classes.of(graph), run_id.of(settings, graph, split) if checkpoint else ""
    again, folds = _trains_again(settings, graph, held), held.folds
    if isinstance(graph, StoredGraph):  # from here on, a process sees its own rows only
        given = graph = graph.mine()
        split, folds = graph.share_of(split), tuple(map(graph.share_of, folds))
    known = classes.known(graph, split.train & graph.labelled, settings.dtype)
    metric = imbalance.metric_of(settings, known)
    imbalance.warn(imbalance.about_metric(settings, metric, known, classes), level=2)
    checkpointed = None if checkpoint is None else (checkpoint, identity)
    teachers = None if given.table is None else of_labelled_types(given, known.mask)
    first = FirstTraining(graph, split, known, metric, progress, teachers)
    settings, method, history, interrupted = first.run(settings, checkpointed)
    prediction = _prediction(history)
    outcomes = [Outcome.of(prediction, graph, split.val)]
    known = classes.known(graph, (split.train | split.val) & graph.labelled, settings.dtype)
    again = again and not interrupted and (history.best >= 0 or history.end is End.AT_ONCE)
    try:
        if not interrupted:
            outcomes += [_fold(settings, graph, fold, method, history, teachers) for fold in folds]
        if again:
            prediction = _refitted(settings, graph, split, method, history, known, teachers)
            split = _with_training(split, known.mask)
    except KeyboardInterrupt:
        again, interrupted = False, True
    held_out = Outcome.together(outcomes)
    calibration = _calibration(settings, held_out)
    if len(outcomes) > 1:
        history.final["val"] = metric(held_out.probabilities, held_out.predicted, held_out.truth)
    if held.own and not again:
        prediction = prediction.bound.with_labels(known.to(settings.device)).solve()
    rate = history.carry.mask_rate
    history = replace(history, prediction=None, carry=Carry())  # a classifier does not keep the tensors of training
    return Fitted(
        settings,
        classes,
        given,
        split,
        history,
        prediction,
        calibration,
        rate,
        interrupted,
        preparation=preparation,
        metric=metric,
        held_out=held_out if len(held_out.truth) else None,
    )


def _most_folds(settings: Settings) -> int:
    """Return the largest number of folds; features that were learned without the first one allow no other."""
    return 1 if settings.values["inductive"] else settings.values.get("folds", 1)


def _trains_again(settings: Settings, graph: Graph, held: Holdout) -> bool:
    """Return whether to train once more with the validation labels, on which only `refit=True` trains if given."""
    if settings.values["refit"] == HELD_BACK:
        return held.own and bool((held.split.val & graph.labelled).any())
    return settings.values["refit"]


def _check_graph(graph: Graph, settings: Settings) -> None:
    """Refuse a graph that lacks the edges that the method needs."""
    if isinstance(graph, StoredGraph):
        planning.check(settings)
        planning.check_batches(settings, graph)
    elif settings.training.batch_parts is not None:
        raise ConfigError(f"batch_parts: {graph.name} is in memory, and only a store has parts: lignn store build")
    if "edges" in settings.needs and not graph.num_edges:
        raise InputError(
            f"{graph.name} has no edges, so no label can reach another node; "
            "use TabularClassifier, which joins rows of features to their nearest neighbours, or method='backbone'"
        )


def _check_features(graph: Graph, settings: Settings) -> None:
    """Refuse a graph that lacks the features that the method needs."""
    if "features" in settings.needs and not graph.num_features:
        raise InputError(f"{graph.name} has no features, which method {settings.name!r} needs; try lignn or lpa")


def _refitted(
    settings: Settings,
    graph: Graph,
    split: Split,
    first: Method,
    history: History,
    known: KnownLabels,
    teachers: Tensor | None,
) -> Prediction:
    """Train from fresh weights on all of `known`, for as many epochs as were best, and predict."""
    assembly = assembled(settings, graph, known, split.test, teachers)
    assembly.method.adopt_choices(first)
    return _prediction(assembly.train(None, replace(settings.training, max_epochs=max(history.best + 1, 1))))


def _fold(
    settings: Settings, graph: Graph, split: Split, first: Method, history: History, teachers: Tensor | None
) -> Outcome:
    """Train from fresh weights on another part of the labels, for as many epochs, and predict the others."""
    known = Classes.of(graph).known(graph, split.train & graph.labelled, settings.dtype)
    return Outcome.of(_refitted(settings, graph, split, first, history, known, teachers), graph, split.val)


@own_torch_modes()
def go_on(fitted: Fitted, known: KnownLabels, truth: Graph, epochs: int) -> Fitted:
    """Continue training from the present weights and equilibrium with other known labels, on a copy of the method.

    If validation labels are left that are not known, the best of the epochs is kept and calibrated again.
    Otherwise the last epoch is kept and the calibration stays.
    """
    settings = fitted.settings
    known = imbalance.weighted(settings, fitted.classes, known)
    problem = fitted.prediction.problem.knowing(known)
    method = copy.deepcopy(fitted.prediction.bound.method)
    held_out = fitted.split.val & truth.labelled & ~known.mask
    unseen = fitted.split.held_out & ~known.mask
    seen = problem.without_edges_at(unseen) if settings.values["inductive"] else problem
    scored = problem.space.count(held_out) > 0  # of all processes, which must do the same
    decides = log_loss_decides(settings)
    score = score_on(truth, {"val": held_out}, fitted.metric, problem.space, decides) if scored else None
    generator = torch.Generator().manual_seed(_further_seed(settings.values["seed"], fitted.further))
    options = replace(settings.training, max_epochs=epochs, patience=epochs, goes_on=True)
    assembly = Assembly(method, seen, problem, generator, of_labelled_types(truth, known.mask))
    history = assembly.train(score, options, _carry(fitted))
    split = fitted.split if history.end is End.NOTHING_TO_TRAIN else _with_training(fitted.split, known.mask)
    prediction = _prediction(history)
    outcome = Outcome.of(prediction, truth, held_out)
    return replace(
        fitted,
        split=split,
        prediction=prediction,
        calibration=_calibration(settings, outcome) or fitted.calibration,
        held_out=outcome if len(outcome.truth) else fitted.held_out,
        mask_rate=history.carry.mask_rate,
        further=fitted.further + epochs,
    )


def _carry(fitted: Fitted) -> Carry:
    """Return what the first epoch of an update takes over: the mask rate, and the equilibrium as a start.

    The equilibrium belongs to other labels, so it is an evaluation of the problem of before.
    """
    prediction = fitted.prediction
    if prediction.solution is None or not prediction.bound.accepts_start:
        return Carry(fitted.mask_rate)
    evaluation = Evaluation(prediction.problem, prediction.solution)
    return Carry(fitted.mask_rate, prediction.solution.value, evaluation)


def _with_training(split: Split, nodes: Tensor) -> Split:
    """Return `split` with more training nodes: weights must not be scored on labels that they have seen."""
    return Split(split.train | nodes, split.val & ~nodes, split.test & ~nodes)


def _further_seed(seed: int, epochs: int) -> int:
    """Return another seed after every update, so that not all of them hide the same labels."""
    return int(np.random.SeedSequence((seed, epochs)).generate_state(1, np.uint64)[0])


def _calibration(settings: Settings, held_out: Outcome) -> Calibration | None:
    """Calibrate on labels that were no input; None if not wanted, or with too few."""
    return calibrate(held_out.probabilities, held_out.truth) if settings.values["calibrate"] else None


def _prediction(history: History) -> Prediction:
    """Return the last prediction of a training, solved as far as predictions are: training may stop earlier."""
    prediction = history.prediction
    assert prediction is not None  # training has ended
    solution, solver = prediction.solution, prediction.bound.solver
    if solution is None or solver is None or not prediction.bound.accepts_start or solver.tol >= solution.tol:
        return prediction
    return prediction.bound.solve(solution.value)


def warn_if_unsolved(prediction: Prediction) -> None:
    """Warn if the solve did not reach its tolerance; to be called by functions that the user calls."""
    if prediction.solution is not None and not prediction.solution.ok:
        warnings.warn(prediction.solution.message, ConvergenceWarning, stacklevel=3)


def try_starts(prediction: Prediction) -> Starts | None:
    """Iterate the plain map, and solve from other starts; compare with the prediction.

    Nothing is tried, and None returned, if the equilibrium is proved to be unique, the map is linear (its spectral
    radius decides) or the method does not iterate.
    """
    return None if unique_for_all_labels(prediction.bound) else measure(prediction)


def warn_if_start_matters(prediction: Prediction) -> Starts | None:
    """Warn if another start gives other predictions; to be called by functions that the user calls.

    It returns what other starts give. A streamed graph is not solved again for this: it would take longer than many
    epochs. `diagnose` does it.
    """
    if prediction.problem.streamed:
        return None
    starts = try_starts(prediction)
    if starts is not None and starts.differing > 0:
        message = (
            f"{starts.differing:.2%} of the predictions would be others if the solve had another start "
            f"(K̂ {starts.contraction:.3g}): there are several equilibria; try another backbone, "
            "or contraction='proved', which has one"
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
    return starts
