"""`NodeClassifier`: a half-labelled graph in, the labels of all nodes out, with scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lignn.classifier import explain, fitting, growth, saving, scoring, suggest
from lignn.classifier.calibration import at_temperature
from lignn.classifier.certificate import Certificate, certify, unique_for_all_labels
from lignn.classifier.decision import Decision
from lignn.classifier.fitting import Fitted, try_starts, warn_if_start_matters, warn_if_unsolved
from lignn.classifier.settings import Settings
from lignn.classifier.sharing import gathered
from lignn.classifier.update import Update, relabelled, solve_again
from lignn.declarations import DEFAULT_BACKBONE, DEFAULT_METHOD
from lignn.equilibrium import Gradient
from lignn.equilibrium.solvers import Solver
from lignn.errors import ConfigError, did_you_mean
from lignn.graph import Graph, Split
from lignn.graph.names import node_number
from lignn.methods import Method, Prediction
from lignn.training import Progress


class NodeClassifier(ClassifierMixin, BaseEstimator):
    """Labels for the nodes of a half-labelled graph.

    Parameters are stored as given and checked by `fit`; None stands for the preset's value.

    Args:
        method: name of a method of `lignn.methods`, or a `Method`, which has its network and options already.
        backbone: name of a network of `lignn.backbones`, a class or factory of modules, or a module.
        preset: "practical", or "paper" for the values behind the paper's tables.
        hidden: width of the network's hidden layers.
        dropout: dropout probability of the network.
        feature_mask: share of the nodes whose features are hidden in an epoch, so that labels must carry it.
        lr: learning rate of Adam.
        weight_decay: weight decay of Adam.
        max_epochs: maximum number of epochs.
        patience: number of epochs without a better validation score after which training stops.
        seed: seed of weights, masks and dropout, and of the validation split if none is given.
        inductive: train without the edges of nodes that are to be predicted.
        mask_rate: share of the nodes whose label input is hidden in an epoch, β; or "adaptive".
        forward_mask: hide these inputs in the forward solve too.
        max_steps: maximum number of steps of a solve.
        tol: root mean square change below which a solve counts as converged.
        solver: "picard", "anderson", "broyden", or a solver object, which has its own `tol` and `max_steps`. For
            methods other than lignn and lae, any of `max_steps`, `tol` and `solver` replaces their own solver, by
            `anderson` unless another one is named.
        gradient: "exact", "paper", "last_step", or a gradient object.
        warm_start: start each epoch's solve from the last one's state.
        calibrate: fit a temperature to the held-out labels.
        refit: train once more on all known labels, for as many epochs as the best epoch took.
        precision: "float32" or "float64".
        device: PyTorch device to compute on. Random numbers are drawn on the CPU, so a seed gives the same masks
            everywhere. Not run on an accelerator by this project's tests.
        method_options: more options of the method, e.g. `{"lam": 0.5}` for lpa.
        backbone_options: more options of the backbone, e.g. `{"num_layers": 3}`.

    Attributes:
        graph_: the graph it was fitted on, and nodes added since.
        split_: the split it was fitted with; nodes that `refit` or updates have trained on are in its training part.
        classes_: class numbers.
        class_names_: their names.
        method_: the trained method.
        history_: what happened in `fit`; `history_.epochs` is a list of plain records.
        n_iter_: number of epochs.
        calibration_: temperature and calibration error, None if there were too few held-out labels.
        temperature_: temperature of `calibration_`, or 1.
    """

    def __init__(
        self,
        method: str | Method = DEFAULT_METHOD,
        backbone: Any = DEFAULT_BACKBONE,
        preset: str = "practical",
        hidden: int | None = None,
        dropout: float | None = None,
        feature_mask: float | None = None,
        lr: float | None = None,
        weight_decay: float | None = None,
        max_epochs: int | None = None,
        patience: int | None = None,
        seed: int = 0,
        inductive: bool = False,
        mask_rate: float | str | None = None,
        forward_mask: bool | None = None,
        max_steps: int | None = None,
        tol: float | None = None,
        solver: str | Solver | None = None,
        gradient: str | Gradient | None = None,
        warm_start: bool | None = None,
        calibrate: bool = True,
        refit: bool = False,
        precision: str = "float32",
        device: str = "cpu",
        method_options: Mapping[str, Any] | None = None,
        backbone_options: Mapping[str, Any] | None = None,
        **unknown: Any,
    ) -> None:
        self._refuse(unknown)
        self.method = method
        self.backbone = backbone
        self.preset = preset
        self.hidden = hidden
        self.dropout = dropout
        self.feature_mask = feature_mask
        self.lr = lr
        self.weight_decay = weight_decay
        self.max_epochs = max_epochs
        self.patience = patience
        self.seed = seed
        self.inductive = inductive
        self.mask_rate = mask_rate
        self.forward_mask = forward_mask
        self.max_steps = max_steps
        self.tol = tol
        self.solver = solver
        self.gradient = gradient
        self.warm_start = warm_start
        self.calibrate = calibrate
        self.refit = refit
        self.precision = precision
        self.device = device
        self.method_options = method_options
        self.backbone_options = backbone_options

    def _refuse(self, unknown: Mapping[str, Any]) -> None:
        for name in unknown:
            known = self._get_param_names()
            raise ConfigError(f"{type(self).__name__} has no parameter {name!r}; {did_you_mean(name, known)}")

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; takes effect at the next `fit`."""
        self._refuse({name: None for name in params if name not in self._get_param_names()})
        return super().set_params(**params)

    def fit(
        self,
        graph: Graph,
        split: Split | None = None,
        *,
        progress: Progress | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Self:
        """Train on the known labels of `graph`.

        Interrupted (Ctrl-C), it is left fitted with the best weights so far, and the interruption goes on.

        Args:
            graph: with labels; y = -1 is unlabelled.
            split: whose training labels to learn from and whose validation labels to hold back; test labels are never
                looked at. Without validation labels, or for None (all known labels), a fifth of the labels to learn
                from is held back, and is known in the predictions.
            progress: called with the history after every epoch.
            checkpoint: file to write training to as it goes, and to go on from if it is there.
        """
        settings = Settings.of(self.get_params(deep=False))
        file = None if checkpoint is None else Path(checkpoint)
        self._take(fitting.fit(settings, graph, split, progress, file))
        warn_if_unsolved(self._fitted.prediction)
        if self._fitted.interrupted:
            raise KeyboardInterrupt
        warn_if_start_matters(self._fitted.prediction)
        return self

    def _take(self, fitted: Fitted) -> None:
        """All fitted attributes follow from one value."""
        self._fitted = fitted
        self._certified: tuple[Prediction, Certificate] | None = None
        self.graph_, self.split_, self.method_ = fitted.graph, fitted.split, fitted.prediction.bound.method
        self.classes_, self.class_names_ = np.arange(len(fitted.classes)), fitted.classes.names
        self.n_features_in_ = fitted.graph.num_features
        self.history_, self.n_iter_ = fitted.history, len(fitted.history.epochs)
        self.calibration_ = fitted.calibration
        self.temperature_ = 1.0 if fitted.calibration is None else fitted.calibration.temperature

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

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

    def score(
        self,
        nodes: str | Tensor | np.ndarray = "test",
        graph: Graph | None = None,
        *,
        known: Tensor | np.ndarray | None = None,
    ) -> float:
        """Return F1-micro (for one label a node, accuracy) on the labelled ones of some nodes.

        A scored node's own label is hidden from the input, except for training nodes, whose labels the weights know.

        Args:
            nodes: a mask, or a part of the split: "train", "val", "test". The split is that of the fit, or the only one
                of another graph. After `refit=True` the validation nodes are training nodes.
            graph: as for `predict`.
            known: as for `predict`.
        """
        check_is_fitted(self)
        return scoring.score(self._fitted, nodes, graph, known)

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
        unless a bound that holds for all labels (Theorem 1) proves that the start does not matter.

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
            trained = fitting.go_on(fitted, known, scoring.labels_by_now(fitted), epochs)
            reason = f"the weights are new: trained for {epochs} more epochs"
            update = Update(fitted.prediction, trained.prediction, reason)
            self._take(trained)
        else:
            update = solve_again(fitted.prediction, known)
            self._fitted = replace(fitted, prediction=update.after)
        warn_if_unsolved(update.after)
        return update

    def add_nodes(
        self, features: Any, edges: Any, ids: Sequence[str] | None = None, edge_weight: Any = None
    ) -> Decision:
        """Predict nodes that were not there in training, without training; they stay part of the graph.

        Args:
            features: one row per new node; the columns of a data frame may be in any order. For a graph without
                features, the number of new nodes.
            edges: 2×E, sources above targets, as numbers (the first new node follows the last old one) or ids. In an
                undirected graph they are used in both directions.
            ids: ids of the new nodes, for a graph with ids.
            edge_weight: one weight per edge, for a graph with weights.

        Returns:
            The decision on the new nodes.
        """
        check_is_fitted(self)
        fitted, old = self._fitted, self.graph_.num_nodes
        graph = growth.grow(self.graph_, features, edges, ids, edge_weight)
        bound = scoring.bind(fitted, graph, growth.labels_for(fitted.prediction, graph.num_nodes))
        proved = bound.accepts_start and unique_for_all_labels(bound)
        prediction = bound.solve(growth.state_for(fitted.prediction, graph.num_nodes) if proved else None)
        split = growth.split_for(self.split_, graph.num_nodes)
        self._take(replace(fitted, graph=graph, split=split, prediction=prediction))
        warn_if_unsolved(prediction)
        return self.decision()[slice(old, None)]

    def explain(self, node: Any, k: int = 10) -> explain.Explanation:
        """Return the `k` known labels that count most for the prediction at a node (its number or id)."""
        check_is_fitted(self)
        fitted, number = self._fitted, node_number(self.graph_, node)
        return explain.explain(fitted.prediction, self.graph_, fitted.classes, number, k, self.temperature_)

    def suggest(self, k: int = 10) -> np.ndarray:
        """Return the numbers of the `k` unlabelled nodes to label next, the most valuable first."""
        check_is_fitted(self)
        return suggest.suggest(self._fitted.prediction, k).numpy()

    def gathered(self) -> Self:
        """Return this classifier with the rows of all processes, in the first of several processes that fitted it.

        The others return it with their own rows. All processes must call this together.
        """
        check_is_fitted(self)
        self._take(gathered(self._fitted))
        return self

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the model, with the parameters it was fitted with, to a folder; `lignn.load` reads it.

        An earlier model there is replaced.
        """
        check_is_fitted(self)
        saving.write(folder, gathered(self._fitted))

    def _on(self, graph: Graph | None, known: Tensor | np.ndarray | None) -> Prediction:
        """Return the prediction on the fitted graph or another one; the labels it is given follow one rule."""
        check_is_fitted(self)
        prediction = scoring.predict_on(self._fitted, graph, known)
        if prediction is not self._fitted.prediction:
            warn_if_unsolved(prediction)
        return prediction

    def _calibrated(self, prediction: Prediction) -> Tensor:
        return at_temperature(prediction.probabilities, self.temperature_, prediction.problem.labels.multilabel)


def _array(values: Tensor) -> np.ndarray:
    """Return a copy for the caller, who may write to it."""
    return values.detach().cpu().clone().numpy()
