"""The course of a fit: hold labels back, prepare, train, judge, calibrate, train again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor

from lignn.classifier import columns, imbalance, planning
from lignn.classifier.attempts import FREE, Attempt, Judge
from lignn.classifier.calibration import Outcome, calibrate
from lignn.classifier.holdout import Holdout
from lignn.classifier.model import Fitted
from lignn.classifier.spec import Spec
from lignn.declarations import HELD_BACK
from lignn.errors import ConfigError, InputError
from lignn.graph import Graph, Split, splits
from lignn.graph.hetero import of_labelled_types
from lignn.labels import Classes, KnownLabels
from lignn.methods import Carry, Method, Prediction
from lignn.store import StoredGraph
from lignn.training import (
    Assembly,
    Checkpoints,
    End,
    History,
    Hook,
    Interrupted,
    Metric,
    Progress,
    Scorer,
    Training,
    Watch,
    assemble,
    score_on,
)

if TYPE_CHECKING:
    from lignn.features import FeatureTransform


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


@own_torch_modes()
def fit(spec: Spec, graph: Graph, split: Split | None, progress: Progress | None, checkpoint: Path | None) -> Fitted:
    """Train the method of `spec` on `graph`; see `NodeClassifier.fit`."""
    _check_graph(graph, spec)
    graph = columns.from_one_source(graph, spec.values["features"] != "raw")
    held = Holdout.of(graph, split, spec.values["seed"], _most_folds(spec), spec.values["pooled"])
    data = Prepared.of(graph, held, spec, named=checkpoint is not None)

    attempt: Attempt | None = Attempt.first(spec, checkpoint, data.identity)
    while attempt is not None:  # as given; relaxed; free
        first = _first_training(attempt, data, progress, checkpoint)
        attempt = first.following
    spec, history, interrupted, split = first.spec, first.history, first.interrupted, data.held.split
    prediction, again = predicted(history), False
    everything = data.labels_of(split.train | split.val)
    outcomes = [Outcome.of(prediction, data.graph, split.val)]
    try:
        if not interrupted:
            outcomes += [_fold(first, data, fold) for fold in data.held.folds]
            if _trains_again(spec, data, history):
                prediction, again = _trained_again(first, data, split, everything), True
    except KeyboardInterrupt:
        interrupted = True
    held_out = Outcome.together(outcomes)
    if len(outcomes) > 1:
        history.final["val"] = data.metric(held_out.probabilities, held_out.predicted, held_out.truth)
    if data.held.own and not again:  # a label that the fit has held back is an input of what it predicts
        prediction = prediction.bound.with_labels(everything.to(spec.device)).solve()
    return Fitted(
        spec,
        data.classes,
        data.given,
        with_training(split, everything.mask) if again else split,
        replace(history, prediction=None, carry=Carry()),  # a model does not keep the tensors of training
        prediction,
        calibrate(held_out.probabilities, held_out.truth) if spec.values["calibrate"] else None,
        history.carry.mask_rate,
        interrupted,
        preparation=data.preparation,
        metric=data.metric,
        held_out=held_out if len(held_out.truth) else None,
    )


@dataclass(frozen=True, eq=False)
class Prepared:
    """The data of a fit; of a store, the rows of this process.

    Attributes:
        given: the graph, with its table or features as they were given.
        graph: the same graph with the features that the method takes.
        held: the split, and the folds.
        classes: the classes.
        known: the training labels.
        metric: the score that chooses the epoch.
        preparation: makes features of the columns of tables; None if features are taken as they are.
        teachers: mask of the nodes whose predictions may teach; None for all.
        identity: tells this fit from others; empty if it has no checkpoint.
    """

    given: Graph
    graph: Graph
    held: Holdout
    classes: Classes
    known: KnownLabels
    metric: Metric
    preparation: FeatureTransform | None
    teachers: Tensor | None
    identity: str

    @classmethod
    def of(cls, given: Graph, held: Holdout, spec: Spec, named: bool) -> Prepared:
        """Make features, choose the metric, and warn of classes that are very uneven."""
        preparation = columns.learn(spec, given, held.split)
        graph = columns.prepared(given, preparation, spec)
        _check_features(graph, spec)
        classes, identity = Classes.of(graph), spec.identity(graph, held.split) if named else ""
        if isinstance(graph, StoredGraph):  # from here on, a process sees its own rows only
            given = graph = graph.mine()
            held = replace(held, split=graph.share_of(held.split), folds=tuple(map(graph.share_of, held.folds)))
        known = classes.known(graph, held.split.train & graph.labelled, spec.dtype)
        metric = imbalance.metric_of(spec, known)
        imbalance.warn(imbalance.about_metric(spec, metric, known, classes), level=3)
        teachers = None if given.table is None else of_labelled_types(given, known.mask)
        return cls(given, graph, held, classes, known, metric, preparation, teachers, identity)

    def labels_of(self, nodes: Tensor) -> KnownLabels:
        """Return the labels of the labelled ones of `nodes` (a mask)."""
        return self.classes.known(self.graph, nodes & self.graph.labelled, self.known.onehot.dtype)

    def assembled(self, spec: Spec) -> Assembly:
        """Return the method with fresh weights, and its problems with the training labels."""
        return assembled(spec, self.graph, self.known, self.held.split.held_out, self.teachers)


@dataclass(frozen=True, eq=False)
class FirstTraining:
    """What the training that held labels back has given.

    Attributes:
        spec: its settings.
        method: the trained method.
        history: what happened.
        interrupted: whether it was interrupted; its best weights so far are kept.
        following: the attempt that takes its place; None to keep it.
    """

    spec: Spec
    method: Method
    history: History
    interrupted: bool = False
    following: Attempt | None = None


def _first_training(
    attempt: Attempt, data: Prepared, progress: Progress | None, checkpoint: Path | None
) -> FirstTraining:
    """Train on the labels that are not held back; those that are choose the epoch."""
    assembly = data.assembled(attempt.spec)
    if FREE in attempt.later and assembly.method.on(assembly.inference).lipschitz is None:
        attempt = attempt.without_proof()
        assembly = data.assembled(attempt.spec)
    judge = Judge(attempt, assembly, data.assembled)
    hooks: list[Hook] = [] if checkpoint is None else [Checkpoints(checkpoint, data.identity + attempt.started_over)]
    hooks += [judge] if progress is None else [Watch(progress), judge]
    spec, method = attempt.spec, assembly.method
    try:
        history = assembly.train(*_scored(spec, data, assembly), hooks=hooks)
    except Interrupted as interruption:
        return FirstTraining(spec, method, interruption.history, interrupted=True)
    if history.best < 0 and history.end is End.NON_FINITE:
        reason = "the loss is not finite; lower lr, or scale the features"
        raise InputError(f"training ended in its first epoch: {reason}")
    try:
        return FirstTraining(spec, method, history, following=judge.following(history))
    except KeyboardInterrupt:
        return FirstTraining(spec, method, history, interrupted=True)


def _scored(spec: Spec, data: Prepared, assembly: Assembly) -> tuple[Scorer | None, Training]:
    """Return what scores an epoch, None without validation labels, and how to train then."""
    options, least = spec.training, min(spec.training.max_epochs, spec.values["least_epochs"])
    parts = {part: getattr(data.held.split, part) & data.graph.labelled for part in ("train", "val")}
    space = assembly.inference.space
    if space.count(parts["val"]) == 0:
        return None, replace(options, max_epochs=min(options.max_epochs, max(options.patience, least)))
    score = score_on(data.graph, parts, data.metric, space, spec.log_loss_decides)
    return score, replace(options, first_epoch=least - 1)  # an early epoch may be the best one by chance


def _trains_again(spec: Spec, data: Prepared, history: History) -> bool:
    """Return whether to train once more with the validation labels, on which only `refit=True` trains if given."""
    if history.best < 0 and history.end is not End.AT_ONCE:
        return False
    if spec.values["refit"] == HELD_BACK:
        return data.held.own and bool((data.held.split.val & data.graph.labelled).any())
    return spec.values["refit"]


def _trained_again(first: FirstTraining, data: Prepared, split: Split, known: KnownLabels) -> Prediction:
    """Train from fresh weights on all of `known`, for as many epochs as were best, and predict."""
    assembly = assembled(first.spec, data.graph, known, split.test, data.teachers)
    assembly.method.adopt_choices(first.method)
    epochs = max(first.history.best + 1, 1)
    return predicted(assembly.train(None, replace(first.spec.training, max_epochs=epochs)))


def _fold(first: FirstTraining, data: Prepared, fold: Split) -> Outcome:
    """Train from fresh weights on another part of the labels, for as many epochs, and predict the others."""
    prediction = _trained_again(first, data, fold, data.labels_of(fold.train))
    return Outcome.of(prediction, data.graph, fold.val)


def assembled(spec: Spec, graph: Graph, known: KnownLabels, unseen: Tensor, teachers: Tensor | None = None) -> Assembly:
    """Return the method with weights from the seed, and its problems."""

    def build(generator: Generator) -> Method:
        return spec.build(graph.num_features, known.num_classes, generator, graph.edge_types)

    hidden = unseen if spec.values["inductive"] else None
    known = imbalance.weighted(spec, Classes.of(graph), known)
    seed, device = spec.values["seed"], spec.device
    return assemble(build, graph, known, seed=seed, unseen=hidden, device=device, teachers=teachers)


def predicted(history: History) -> Prediction:
    """Return the last prediction of a training, solved as far as predictions are: training may stop earlier."""
    prediction = history.prediction
    assert prediction is not None  # training has ended
    solution, solver = prediction.solution, prediction.bound.solver
    if solution is None or solver is None or not prediction.bound.accepts_start or solver.tol >= solution.tol:
        return prediction
    return prediction.bound.solve(solution.value)


def with_training(split: Split, nodes: Tensor) -> Split:
    """Return `split` with more training nodes: weights must not be scored on labels that they have seen."""
    return Split(split.train | nodes, split.val & ~nodes, split.test & ~nodes)


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


def _most_folds(spec: Spec) -> int:
    """Return the largest number of folds; features that were learned without the first one allow no other."""
    return 1 if spec.values["inductive"] else spec.values.get("folds", 1)


def _check_graph(graph: Graph, spec: Spec) -> None:
    """Refuse a graph that lacks the edges that the method needs."""
    if isinstance(graph, StoredGraph):
        planning.check(spec)
        planning.check_batches(spec, graph)
    elif spec.training.batch_parts is not None:
        raise ConfigError(f"batch_parts: {graph.name} is in memory, and only a store has parts: lignn store build")
    if "edges" in spec.needs and not graph.num_edges:
        raise InputError(
            f"{graph.name} has no edges, so no label can reach another node; "
            "use TabularClassifier, which joins rows of features to their nearest neighbours, or method='backbone'"
        )


def _check_features(graph: Graph, spec: Spec) -> None:
    """Refuse a graph that lacks the features that the method needs."""
    if "features" in spec.needs and not graph.num_features:
        raise InputError(f"{graph.name} has no features, which method {spec.name!r} needs; try lignn or lpa")
