"""How a classifier is fitted: labels held back, training with early stopping on them, calibration, training again."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn.functional import one_hot

from lignn import training
from lignn.classifier import columns, imbalance, planning, run_id
from lignn.classifier.calibration import Calibration, calibrate
from lignn.classifier.certificate import Starts, unique_for_all_labels
from lignn.classifier.model import Fitted
from lignn.classifier.settings import Settings
from lignn.equilibrium import Status, solve
from lignn.equilibrium.solvers import Picard
from lignn.errors import ConvergenceWarning, InputError, SplitError
from lignn.graph import Graph, Split, headers
from lignn.graph.splits import held_back
from lignn.labels import Classes, KnownLabels
from lignn.methods import Carry, Method, Prediction
from lignn.methods.method import Evaluation
from lignn.store import StoredGraph, in_source_order
from lignn.training import Assembly, End, History, Metric, Progress, assemble, score_on

SHARE = 0.2
"""Share of the labels, or of each class's, that is held back."""

_PLAIN_STEPS = 100
"""Steps of the plain map that K̂ is measured over; ten steps say little of the later ones."""

_MOVED = 0.01
"""Change of a probability below which two solves agree."""


def fit(
    settings: Settings, graph: Graph, split: Split | None, progress: Progress | None, checkpoint: Path | None
) -> Fitted:
    """Train the method of `settings` on `graph`; see `NodeClassifier.fit`."""
    _check_graph(graph, settings)
    given = columns.from_one_source(graph, settings.values["features"] != "raw")
    split, own_holdout = _split(given, split, settings.values["seed"])
    preparation = columns.learn(settings, given, split)
    graph = columns.prepared(given, preparation)
    _check_features(graph, settings)
    classes, identity = Classes.of(graph), run_id.of(settings, graph, split) if checkpoint else ""
    if isinstance(graph, StoredGraph):  # from here on, a process sees its own rows only
        given = graph = graph.mine()
        split = graph.share_of(split)
    known = classes.known(graph, split.train & graph.labelled, settings.dtype)
    metric = imbalance.metric_of(settings, known)
    imbalance.warn(imbalance.about_metric(settings, metric, known, classes), level=2)
    assembly = _assemble(settings, graph, known, split.held_out)
    history, interrupted = _train_first(settings, assembly, graph, split, metric, progress, (checkpoint, identity))
    prediction = _prediction(history)
    calibration = _calibration(settings, prediction, graph, split.val & graph.labelled)
    known = classes.known(graph, (split.train | split.val) & graph.labelled, settings.dtype)
    refit = settings.values["refit"] and not interrupted and history.best >= 0
    if refit:
        try:
            prediction = _refitted(settings, graph, split, assembly.method, history, known)
            split = _with_training(split, known.mask)
        except KeyboardInterrupt:
            refit, interrupted = False, True
    if own_holdout and not refit:
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
    )


def _split(graph: Graph, given: Split | None, seed: int) -> tuple[Split, bool]:
    """Return the split to fit with, and whether its validation labels were held back here.

    Predictions may use validation labels that `fit` held back by itself.
    """
    if given is None:
        return own_split(graph, seed), True
    split = checked_split(graph, given)
    if (split.val & graph.labelled).any():
        return split, False
    return hold_back(graph, split, seed), True


def _check_graph(graph: Graph, settings: Settings) -> None:
    """Refuse a graph that lacks the edges that the method needs."""
    if not isinstance(graph, Graph):
        raise InputError(f"a lignn.Graph is needed, got {type(graph).__name__}; see Graph.read and Graph.from_pyg")
    if isinstance(graph, StoredGraph):
        planning.check(settings)
    if "edges" in settings.needs and not graph.num_edges:
        raise InputError(
            f"{graph.name} has no edges, so no label can reach another node; "
            "use TabularClassifier, which joins rows of features to their nearest neighbours, or method='backbone'"
        )


def _check_features(graph: Graph, settings: Settings) -> None:
    """Refuse a graph that lacks the features that the method needs."""
    if "features" in settings.needs and not graph.num_features:
        raise InputError(f"{graph.name} has no features, which method {settings.name!r} needs; try lignn or lpa")


def _assemble(settings: Settings, graph: Graph, known: KnownLabels, unseen: Tensor) -> Assembly:
    """Return the method with weights from the seed, and its problems."""

    def build(generator: Generator) -> Method:
        return settings.build(graph.num_features, known.num_classes, generator, graph.edge_types)

    hidden = unseen if settings.values["inductive"] else None
    known = imbalance.weighted(settings, Classes.of(graph), known)
    return assemble(build, graph, known, seed=settings.values["seed"], unseen=hidden, device=settings.device)


def _train_first(
    settings: Settings,
    assembly: Assembly,
    graph: Graph,
    split: Split,
    metric: Metric,
    progress: Progress | None,
    checkpoint: tuple[Path | None, str],
) -> tuple[History, bool]:
    """Train with the split's validation labels; return also whether training was interrupted.

    `checkpoint` is its file and what tells this run from others.
    """
    score, options = None, settings.training
    space = assembly.inference.space
    if space.count(split.val & graph.labelled):
        masks = {part: getattr(split, part) & graph.labelled for part in ("train", "val")}
        score = score_on(graph, masks, metric, space)
    else:
        options = replace(options, max_epochs=min(options.max_epochs, options.patience))
    file, identity = checkpoint
    try:
        history = assembly.train(score, options, path=file, run_id=identity, progress=progress)
    except training.Interrupted as interruption:
        return interruption.history, True
    if history.best < 0 and history.end is End.NON_FINITE:
        raise InputError("training ended in its first epoch: the loss is not finite; lower lr, or scale the features")
    return history, False


def _refitted(
    settings: Settings, graph: Graph, split: Split, first: Method, history: History, known: KnownLabels
) -> Prediction:
    """Train from fresh weights on all of `known`, for as many epochs as were best, and predict."""
    assembly = _assemble(settings, graph, known, split.test)
    assembly.method.adopt_choices(first)
    return _prediction(assembly.train(None, replace(settings.training, max_epochs=history.best + 1)))


def go_on(fitted: Fitted, known: KnownLabels, truth: Graph, epochs: int) -> Fitted:
    """Continue training from the present weights and equilibrium with other known labels, on a copy of the method.

    If validation labels are left that are not known, the best of the epochs is kept and the temperature fitted again.
    Otherwise the last epoch is kept and the temperature stays.
    """
    settings = fitted.settings
    known = imbalance.weighted(settings, fitted.classes, known)
    problem = fitted.prediction.problem.knowing(known)
    method = copy.deepcopy(fitted.prediction.bound.method)
    held_out = fitted.split.val & truth.labelled & ~known.mask
    unseen = fitted.split.held_out & ~known.mask
    seen = problem.without_edges_at(unseen) if settings.values["inductive"] else problem
    score = score_on(truth, {"val": held_out}, fitted.metric) if held_out.any() else None
    generator = torch.Generator().manual_seed(_further_seed(settings.values["seed"], fitted.further))
    options = replace(settings.training, max_epochs=epochs, patience=epochs)
    history = Assembly(method, seen, problem, generator).train(score, options, carry=_carry(fitted))
    split = fitted.split if history.end is End.NOTHING_TO_TRAIN else _with_training(fitted.split, known.mask)
    prediction = _prediction(history)
    return replace(
        fitted,
        split=split,
        prediction=prediction,
        calibration=_calibration(settings, prediction, truth, held_out) or fitted.calibration,
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


def _prediction(history: History) -> Prediction:
    assert history.prediction is not None  # training has ended
    return history.prediction


def _calibration(settings: Settings, prediction: Prediction, graph: Graph, nodes: Tensor) -> Calibration | None:
    """Fit the temperature to the labels of `nodes`, which were no input; None if not wanted, or with too few."""
    assert graph.y is not None
    if not settings.values["calibrate"]:
        return None
    space = prediction.problem.space
    return calibrate(space.all_rows(prediction.probabilities.cpu()[nodes]), space.all_rows(graph.y[nodes]))


def own_split(graph: Graph, seed: int) -> Split:
    """Divide the known labels into training and validation; all unlabelled nodes are `test`, to be predicted."""
    require_labels(graph)
    return hold_back(graph, Split(graph.labelled, torch.zeros_like(graph.labelled), ~graph.labelled), seed)


def hold_back(graph: Graph, split: Split, seed: int) -> Split:
    """Return `split` with some labels of its training part as the validation part; its test part is unchanged.

    If times or groups of the nodes are known, these are the latest labels or whole groups (`splits.held_back`).
    Otherwise a fifth of each class is held back, but at least one label of a class with two or more, and at least one
    label of each class is left for training. With one label a class nothing can be held back: validation is empty.
    """
    assert graph.y is not None
    generator = torch.Generator().manual_seed(seed)
    known = (split.train & graph.labelled).nonzero().flatten()
    if isinstance(graph, StoredGraph):
        known = in_source_order(graph, known)
    validation = torch.zeros_like(split.train)
    chosen = held_back(graph, known, SHARE, seed)
    if chosen is not None:
        validation[chosen] = True
        return Split(split.train & ~validation, validation, split.test)
    strata = [known] if graph.is_multilabel else [known[graph.y[known] == c] for c in range(graph.num_classes)]
    for nodes in strata:
        count = min(max(round(SHARE * len(nodes)), 1), len(nodes) - 1)
        if count > 0:
            validation[nodes[torch.randperm(len(nodes), generator=generator)[:count]]] = True
    return Split(split.train & ~validation, validation, split.test)


def checked_split(graph: Graph, split: Split) -> Split:
    """Return `split` if it fits the graph and has labels to train with."""
    if not isinstance(split, Split):
        raise SplitError(f"split: a lignn.Split is needed, got {type(split).__name__}")
    if split.num_nodes != graph.num_nodes:
        raise SplitError(f"the split is over {split.num_nodes} nodes, the graph has {graph.num_nodes}")
    require_labels(graph, split.train)
    return split


def require_labels(graph: Graph, among: Tensor | None = None) -> None:
    """Raise unless there are labels of at least two classes (among some nodes)."""
    where = "" if among is None else " among the training nodes"
    known = graph.labelled if among is None else graph.labelled & among
    if not known.any():
        column = headers.likely("label", graph.feature_names or ()) if graph.y is None else None
        hint = f"; if {column!r} holds the labels, rename it to 'label'" if column else ""
        raise InputError(f"{graph.name}: no node has a label{where}; at least two classes need one{hint}")
    if graph.is_multilabel:
        return
    assert graph.y is not None
    present = graph.y[known].unique()
    if len(present) < 2:
        only = int(present[0])
        name = repr(graph.class_names[only]) if graph.class_names else only
        raise InputError(f"{graph.name}: all labels{where} are of class {name}; at least two classes need one")


def warn_if_unsolved(prediction: Prediction) -> None:
    """Warn if the solve did not reach its tolerance; to be called by functions that the user calls."""
    if prediction.solution is not None and not prediction.solution.ok:
        warnings.warn(prediction.solution.message, ConvergenceWarning, stacklevel=3)


def try_starts(prediction: Prediction) -> Starts | None:
    """Iterate the plain map, and solve from two other starts; compare with the prediction.

    Nothing is tried, and None returned, if the equilibrium is proved to be unique, the map is linear (its spectral
    radius decides) or the method does not iterate.
    """
    bound, solution = prediction.bound, prediction.solution
    if solution is None or bound.map is None or bound.solver is None or not bound.accepts_start or bound.linear:
        return None
    if solution.status is Status.NON_FINITE or (bound.label_weight is not None and unique_for_all_labels(bound)):
        return None
    labels, generator = bound.problem.labels, torch.Generator().manual_seed(0)
    c = labels.num_classes
    if labels.multilabel:
        states = [labels.draw_integers(0, 2, generator, c), 1 - prediction.labels.cpu()]
    else:
        shifted = prediction.labels.cpu() + labels.draw_integers(1, c, generator)
        states = [one_hot(classes, c) for classes in (labels.draw_integers(0, c, generator), shifted % c)]
    solver = replace(bound.solver, max_steps=max(bound.solver.max_steps, _PLAIN_STEPS))
    plain = Picard(tol=torch.finfo(labels.onehot.dtype).tiny, max_steps=_PLAIN_STEPS)
    space = bound.problem.space
    contraction = solve(bound.map, torch.zeros_like(labels.onehot), plain, throw=False, space=space).contraction
    found = prediction if solution.ok else bound.solve(solver=solver)  # what more steps change is told elsewhere
    random, opposite = (_differing(found, bound.solve(state.to(labels.onehot), solver)) for state in states)
    return Starts(contraction, random, opposite)


def _differing(one: Prediction, other: Prediction) -> float:
    """Return the share of nodes whose label differs; a tie that falls otherwise by rounding does not count."""
    n, space = len(one.labels), one.problem.space
    moved = (one.probabilities - other.probabilities).abs().amax(1) > _MOVED
    differing = moved & (one.labels != other.labels).reshape(n, -1).any(1)
    return space.count(differing) / space.entries(differing)


def warn_if_start_matters(prediction: Prediction) -> None:
    """Warn if another start gives other predictions; to be called by functions that the user calls.

    A streamed graph is not solved again for this: it would take longer than many epochs. `diagnose` does it.
    """
    if prediction.problem.streamed:
        return
    starts = try_starts(prediction)
    most = 0.0 if starts is None else max(starts.random, starts.opposite)
    if starts is not None and most > 0:
        message = (
            f"{most:.2%} of the predictions would be others if the solve had another start "
            f"(K̂ {starts.contraction:.3g}): there are several equilibria; a larger mask_rate or feature_mask may help"
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
