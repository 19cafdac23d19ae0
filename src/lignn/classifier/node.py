"""`NodeClassifier`: a half-labelled graph in, the labels of all nodes out, with scikit-learn's conventions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lignn.classifier import explain, fit, imbalance, pictures, saving, scoring
from lignn.classifier.assessment import Assessed
from lignn.classifier.calibration import calibrated
from lignn.classifier.certificate import (
    Certificate,
    certify,
    one_line,
    try_starts,
    warn_if_start_matters,
    warn_if_unsolved,
)
from lignn.classifier.decision import Decision
from lignn.classifier.draft import Draft
from lignn.classifier.editing import GraphEditing
from lignn.classifier.model import Estimator, Fitted, Model, gathered
from lignn.classifier.race.auto import race
from lignn.classifier.report import about_fit
from lignn.classifier.spec import Spec
from lignn.classifier.update import Update, go_on, relabelled, solve_again
from lignn.declarations import AUTO, OF_RACE, is_race
from lignn.equilibrium import Gradient
from lignn.equilibrium.solvers import Solver
from lignn.errors import ConfigError
from lignn.graph import Graph, Split
from lignn.graph.names import node_number
from lignn.methods import Method, Prediction
from lignn.store import StoredGraph

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class NodeClassifier(GraphEditing, Assessed, ClassifierMixin, Estimator):
    """Labels for the nodes of a half-labelled graph.

    Without a method, `fit` is a race: networks, label propagation and classifiers of tables are tried on folds of the
    known labels, and the best one, or an ensemble, is fitted on all. With a method it trains that one, and `lignn` if
    only an option of a single method is given, such as `backbone`, `contraction` or `preset="paper"`.

    Parameters are stored as given and checked by `fit`; None stands for the preset's value.

    Args:
        method: "auto" for a race, to which other options of methods apply as far as candidates have them; name of a
            method of `lignn.methods`; or a `Method`, which has its network and options already.
        backbone: name of a network of `lignn.backbones`, by default gcn, a class or factory of modules, or a module.
        preset: "practical", or "paper" for the values behind the paper's tables.
        hidden: width of the network's hidden layers.
        dropout: dropout probability of the network.
        input_dropout: probability that an entry of the features is set to zero in an epoch.
        both_directions: let `rgcn` pass messages against the edges too, with weights of their own; default no.
        feature_mask: share of the nodes whose features are hidden in an epoch, so that labels must carry it.
        lr: learning rate of Adam.
        weight_decay: weight decay of Adam. The preset's values of this and of `input_dropout` become 0 where the
            training labels cannot be learned with them.
        max_epochs: maximum number of epochs.
        patience: number of epochs without a better validation score after which training stops.
        metric: validation score that chooses the epoch: "f1_micro", "f1_macro", "balanced_accuracy", "roc_auc",
            "average_precision" or "log_loss". None is "f1_micro", or "f1_macro" if one class has over 90 % of the
            training labels; for the preset "paper" always "f1_micro".
        class_weight: weight of the nodes of each class in the loss: "balanced" (inversely proportional to the number
            of training labels of a class), or weights by class name or number, where other classes have weight 1.
        teaching: weight in the loss of what the model teaches itself: once the known labels are learned, from epoch 50
            on, unlabelled nodes supervise with the class that it predicts with 90 % or more. 0 for nothing; without
            effect if `inductive`, if a node may have several classes, and for graphs in a store.
        seed: seed of weights, masks and dropout, and of the validation split if none is given.
        inductive: train without the edges of nodes that are to be predicted.
        mask_rate: share of the nodes whose label input is hidden in an epoch, β; or "adaptive".
        forward_mask: hide these inputs in the forward solve too.
        max_steps: maximum number of steps of a solve.
        tol: root mean square change below which a solve counts as converged. Predictions of an equilibrium that is
            proved to be the only one go to rounding instead, in at most 1000 steps.
        solver: "picard", "anderson", "broyden", or a solver object, which has its own `tol` and `max_steps`. For
            methods other than lignn and lae, any of `max_steps`, `tol` and `solver` replaces their own solver, by
            `anderson` unless another one is named.
        gradient: "exact", "paper", "last_step", or a gradient object.
        warm_start: start each epoch's solve from the last one's state.
        contraction: what is promised about the equilibrium (docs/guides/wellposed.md). "proved": it is the only one,
            for any labels; the weights of the label state are kept small enough. "free": nothing. "auto": proved,
            unless the training labels cannot be learned with it.
        calibrate: fit a temperature and a doubt to the held-out labels, see `Calibration`.
        refit: train once more on all known labels, for as many epochs as the best epoch took. None for the preset
            "practical": only on labels that `fit` itself has held back, not on a given validation part.
        folds: largest number of fits that hold back labels, if one holds back few: a fifth, then one half, then the
            other. Their predictions of these labels give the calibration and the validation score.
        policy: rules of a fit by name, such as `{"least_epochs": 50}` (docs/how_it_works/fit.md).
        batch_parts: number of parts of a `StoredGraph` in a batch. An epoch then makes an update for each batch, in
            which all other nodes stand still (docs/guides/scale.md). None: one exact update.
        precision: "float32" or "float64".
        device: PyTorch device to compute on. Random numbers are drawn on the CPU, so a seed gives the same masks
            everywhere. Not run on an accelerator by this project's tests.
        features: "auto" makes features of the columns of a graph's table (`Graph.table`; docs/guides/features.md), and
            takes the features of a graph without one as they are. "raw" takes features as they are, always. A fitted
            transformer of scikit-learn's kind makes features of the columns, or of the features of a graph without any.
        method_options: more options of the method, e.g. `{"lam": 0.5}` for lpa.
        backbone_options: more options of the backbone, e.g. `{"num_layers": 3}`.
        quality: of a race: "fast", "good" or "best", which is how many candidates, on how many folds.
        time: of a race: seconds after which it ends with what it has; None for no limit. Only without a limit the
            result depends on the seed alone.
        backbones: of a race: names of the networks to try; default by the quality.
        jobs: of a race: number of processes, with one thread each; 1, or a race of less than a minute, stays in this
            process.

    Attributes:
        graph_: the graph it was fitted on, with the changes made since.
        features_: the columns of the graph's table, and what became of each; empty for features that are taken as they
            are.
        split_: the split it was fitted with; nodes that `refit` or updates have trained on are in its training part.
        classes_: class numbers.
        class_names_: their names.
        method_: the trained method.
        history_: what happened in `fit`; `history_.epochs` is a list of plain records.
        n_iter_: number of epochs.
        calibration_: temperature, doubt and calibration error, None if there were too few held-out labels.
        temperature_: temperature of `calibration_`, or 1.
        metric_: name of the metric that chose the epoch.
        leaderboard_: of a race: all candidates with their scores, and what was found, in words; else None.
        well_posed_: one line of `fit` about its equilibrium: proved, measured, or how many predictions depend on the
            start of the solve; empty for methods without an equilibrium, and after a race.
    """

    def __init__(
        self,
        method: str | Method | None = None,
        backbone: Any = None,
        preset: str = "practical",
        hidden: int | None = None,
        dropout: float | None = None,
        input_dropout: float | None = None,
        both_directions: bool | None = None,
        feature_mask: float | None = None,
        lr: float | None = None,
        weight_decay: float | None = None,
        max_epochs: int | None = None,
        patience: int | None = None,
        metric: str | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        teaching: float | None = None,
        seed: int = 0,
        inductive: bool = False,
        mask_rate: float | str | None = None,
        forward_mask: bool | None = None,
        max_steps: int | None = None,
        tol: float | None = None,
        solver: str | Solver | None = None,
        gradient: str | Gradient | None = None,
        warm_start: bool | None = None,
        contraction: str | None = None,
        calibrate: bool = True,
        refit: bool | None = None,
        folds: int | None = None,
        policy: Mapping[str, float] | None = None,
        batch_parts: int | None = None,
        precision: str = "float32",
        device: str = "cpu",
        features: Any = None,
        method_options: Mapping[str, Any] | None = None,
        backbone_options: Mapping[str, Any] | None = None,
        quality: str | None = None,
        time: float | None = None,
        backbones: str | Sequence[str] | None = None,
        jobs: int | None = None,
        **unknown: Any,
    ) -> None:
        self._refuse(unknown)
        self.method = method
        self.backbone = backbone
        self.preset = preset
        self.hidden = hidden
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.both_directions = both_directions
        self.feature_mask = feature_mask
        self.lr = lr
        self.weight_decay = weight_decay
        self.max_epochs = max_epochs
        self.patience = patience
        self.metric = metric
        self.class_weight = class_weight
        self.teaching = teaching
        self.seed = seed
        self.inductive = inductive
        self.mask_rate = mask_rate
        self.forward_mask = forward_mask
        self.max_steps = max_steps
        self.tol = tol
        self.solver = solver
        self.gradient = gradient
        self.warm_start = warm_start
        self.contraction = contraction
        self.calibrate = calibrate
        self.refit = refit
        self.folds = folds
        self.policy = policy
        self.batch_parts = batch_parts
        self.precision = precision
        self.device = device
        self.features = features
        self.method_options = method_options
        self.backbone_options = backbone_options
        self.quality = quality
        self.time = time
        self.backbones = backbones
        self.jobs = jobs

    def fit(
        self,
        graph: Graph,
        split: Split | None = None,
        *,
        progress: Callable[[Any], None] | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Self:
        """Train on the known labels of `graph`, or race for the best method.

        Interrupted (Ctrl-C), it is left fitted with the best weights so far, and the interruption goes on.

        Args:
            graph: with labels; y = -1 is unlabelled.
            split: whose training labels to learn from and whose validation labels to hold back; test labels are never
                looked at. None is the graph's only split; if it has none, or several, all known labels are learned
                from. Without validation labels a fifth of the labels to learn from is held back, and is known in the
                predictions.
            progress: called with the history after every epoch; in a race with its `Standing` after every fit.
            checkpoint: file to write training to as it goes, and to go on from if it is there.
        """
        given = self.get_params(deep=False)
        file = None if checkpoint is None else Path(checkpoint)
        split = fit.split_for(graph, split, level=1)
        racing = is_race(given) and not self._is_stored(graph, given)
        if racing:  # its leaderboard says in plain words what can be relied on
            self._take(race(given, graph, split, progress, file))
            self.well_posed_ = ""
        else:
            self._take(fit.fit(Spec.resolve(given), graph, split, progress, file))
            warn_if_unsolved(self._fitted.prediction)
        if self._fitted.interrupted:
            raise KeyboardInterrupt
        if not racing:
            starts = warn_if_start_matters(self._fitted.prediction)
            self.well_posed_ = one_line(self._fitted.prediction, starts)
        imbalance.warn(about_fit(self._fitted), level=1)
        return self

    def _is_stored(self, graph: Graph, given: Mapping[str, Any]) -> bool:
        """Return whether a graph is in a store, where no methods race: the default one is trained."""
        stored = isinstance(graph, StoredGraph)
        if stored and any(given[name] is not None for name in ("method", *OF_RACE)):
            raise ConfigError(f"{graph.name}: is a store, in which methods cannot race; name one by method=")
        return stored

    def _take(self, model: Model) -> None:
        """All fitted attributes follow from one value."""
        self._model: Model = model
        self._certified: tuple[Prediction, Certificate] | None = None
        if isinstance(model, Fitted):
            self.graph_, self.split_ = model.graph, model.split
        self.method_ = model.method
        self.classes_, self.class_names_ = np.arange(len(model.classes)), model.classes.names
        self.features_ = () if model.preparation is None else model.preparation.columns
        self.n_features_in_ = model.inputs.num_features
        self.history_, self.n_iter_ = model.history, len(model.history.epochs)
        self.calibration_, self.metric_ = model.calibration, model.metric.name
        self.leaderboard_ = model.leaderboard
        self.temperature_ = 1.0 if model.calibration is None else model.calibration.temperature

    def predict(self, graph: Graph | None = None, *, known: Tensor | np.ndarray | None = None) -> np.ndarray:
        """Return class numbers (n), or 0/1 rows (n×c) for multi-label tasks.

        Args:
            graph: None, or a graph with the same content: the fitted one, with the labels known by now. Of another
                graph all labels are inputs, except those that its only split holds back for validation or test.
            known: mask of the nodes whose labels are inputs instead; needed for another graph with several splits.
        """
        return _array(self._on(graph, known).labels)

    def predict_proba(self, graph: Graph | None = None, *, known: Tensor | np.ndarray | None = None) -> np.ndarray:
        """Return calibrated probabilities, n×c; the arguments are those of `predict`."""
        return _array(self._calibrated(self._on(graph, known)))

    def decision(self, graph: Graph | None = None, *, known: Tensor | np.ndarray | None = None) -> Decision:
        """Return labels, names, confidence and evidence of every node, and which labels were inputs.

        The arguments are those of `predict`.
        """
        prediction = self._on(graph, known)
        labels = prediction.problem.labels
        given = labels.onehot if labels.multilabel else labels.onehot.argmax(1)
        return Decision.of(
            _array(self._calibrated(prediction)),
            _array(prediction.labels),
            _array(prediction.evidence),
            _array(labels.mask),
            _array(given),
            prediction.problem.edges.node_ids,
            self.class_names_,
        )

    def diagnose(self) -> Certificate:
        """Return the convergence certificate of the last solve; `str` of it is in words."""
        check_is_fitted(self)
        prediction = self._fitted.prediction
        if self._certified is None or self._certified[0] is not prediction:
            self._certified = prediction, certify(prediction, try_starts(prediction))
        return self._certified[1]

    def update_labels(self, labels: Mapping[Any, Any], epochs: int = 0) -> Update:
        """Take new, corrected or withdrawn labels into account without starting over.

        The answer depends on the labels that are known then, not on those of before: the solve starts from zero,
        unless a bound that holds for all labels proves that there is one equilibrium, and it is solved to rounding.

        Args:
            labels: class number or name (a collection of them for multi-label tasks) by node number or id (a text);
                None makes a label unknown again.
            epochs: number of epochs to train from the present weights; 0 only solves again.
        """
        check_is_fitted(self)
        if not isinstance(epochs, Integral) or epochs < 0:
            raise ConfigError(f"epochs: a whole number of at least 0 is needed, got {epochs!r}")
        fitted = self._fitted
        known = relabelled(fitted.prediction.problem.labels, self.graph_, fitted.classes, labels)
        if epochs:
            trained = go_on(fitted, known, scoring.labels_by_now(fitted), epochs)
            reason = f"the weights are new: trained for {epochs} more epochs"
            update = Update(fitted.prediction, trained.prediction, reason)
            self._take(trained)
        else:
            update = solve_again(fitted.prediction, known)
            self._model = replace(fitted, prediction=update.after)
        warn_if_unsolved(update.after)
        return update

    def add_nodes(
        self,
        features: Any,
        edges: Any = None,
        ids: Sequence[str] | None = None,
        edge_weight: Any = None,
        edge_type: Any = None,
        edge_columns: Any = None,
    ) -> Decision:
        """Predict nodes that were not there in training, without training; they stay part of the graph.

        Args:
            features: one row per new node; the columns of a data frame may be in any order. For a graph with a table,
                rows of its columns: a data frame, an Arrow table, or a list of dictionaries. For a graph without
                features, the number of new nodes.
            edges: 2×E, sources above targets, as numbers (the first new node follows the last old one) or ids. In an
                undirected graph they are used in both directions. Rows of a graph of one table are joined by its rules
                besides.
            ids: ids of the new nodes, for a graph with ids; rows without a column of ids are numbered on.
            edge_weight: one weight per edge, for a graph with weights.
            edge_type: one type per edge, by name or number, for a graph with types of edges.
            edge_columns: one row per edge, for a graph whose edges carry columns.

        Returns:
            The decision on the new nodes.
        """
        check_is_fitted(self)
        old = self.graph_.num_nodes
        draft = Draft.of(self._fitted).with_nodes(features, edges, ids, edge_weight, edge_type, edge_columns)
        self._take(draft.solved(self._fitted))
        warn_if_unsolved(self._fitted.prediction)
        return self.decision()[np.flatnonzero(self.graph_.is_row.numpy()[old:]) + old]

    def explain(self, node: Any, k: int = 10) -> explain.Explanation:
        """Return the `k` known labels that count most for the prediction at a node (its number or id)."""
        check_is_fitted(self)
        fitted, number = self._fitted, node_number(self.graph_, node)
        return explain.explain(fitted.prediction, self.graph_, fitted.classes, number, k, self.calibration_)

    def plot_neighbourhood(self, node: Any, hops: int = 1, ax: Axes | None = None) -> Axes:
        """Draw the nodes around one (its number or id), and return the axes.

        The colour is the predicted class, faint where it is unsure; a ring is the known label.

        Args:
            node: the node in the middle.
            hops: how far to go, in both directions of the edges; at most 60 nodes are drawn.
            ax: axes to draw on; None for new ones.
        """
        check_is_fitted(self)
        return pictures.neighbourhood(self.decision(), self.graph_, node_number(self.graph_, node), hops, ax)

    def suggest(self, k: int = 10) -> np.ndarray:
        """Return the numbers of the `k` unlabelled nodes to label next, the most valuable first."""
        check_is_fitted(self)
        return explain.suggest(self._fitted.prediction, k).numpy()

    def gathered(self) -> Self:
        """Return this classifier with the rows of all processes, in the first of several processes that fitted it.

        The others return it with their own rows. All processes must call this together.
        """
        check_is_fitted(self)
        if isinstance(self._model, Fitted):
            self._take(gathered(self._model))
        return self

    def save(self, folder: str | PathLike[str], graph: bool = True) -> None:
        """Write the model, with the parameters it was fitted with, to a folder; `lignn.load` reads it.

        Args:
            folder: the folder; an earlier model there is replaced.
            graph: write the graph too. Without it, the model can be handed on: no features, labels or ids of the graph
                are in its files, and it predicts other graphs only.
        """
        check_is_fitted(self)
        saving.write(folder, gathered(self._fitted) if graph else self._model, graph=graph)

    def _on(self, graph: Graph | None, known: Tensor | np.ndarray | None) -> Prediction:
        """Return the prediction on the fitted graph or another one; the labels it is given follow one rule."""
        check_is_fitted(self)
        prediction = scoring.predict_on(self._model, graph, known)
        if not (isinstance(self._model, Fitted) and prediction is self._model.prediction):
            warn_if_unsolved(prediction)
        return prediction

    def _calibrated(self, prediction: Prediction) -> Tensor:
        return calibrated(prediction.probabilities, self.calibration_, prediction.problem.labels.multilabel)


def _array(values: Tensor) -> np.ndarray:
    """Return a copy for the caller, who may write to it."""
    return values.detach().cpu().clone().numpy()


def AutoClassifier(  # noqa: N802
    quality: str = "good", parameters: Mapping[str, Any] | None = None, **given: Any
) -> NodeClassifier:
    """Return `NodeClassifier(method="auto")`, whose former name this is; for one more version.

    Args:
        quality: as for `NodeClassifier`.
        parameters: more parameters of `NodeClassifier`.
        given: likewise.
    """
    warnings.warn("AutoClassifier is NodeClassifier(method='auto') now", DeprecationWarning, stacklevel=2)
    return NodeClassifier(**{"method": AUTO, "quality": quality, **(parameters or {}), **given})
