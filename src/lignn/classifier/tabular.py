"""A half-labelled table without a graph: rows are joined to their nearest neighbours."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import Tags, assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from lignn.classifier.calibration import calibrated
from lignn.classifier.growth import labels_for, state_for
from lignn.classifier.node import NodeClassifier
from lignn.equilibrium.solvers import Picard
from lignn.errors import DataWarning, InputError
from lignn.features import Preparation, as_table
from lignn.graph import Graph, names
from lignn.graph.arrow_tables import in_memory
from lignn.graph.tables import kinds
from lignn.methods import Problem

_PASSES = 50
"""Number of steps for new rows: enough for a map that contracts, and the same for all rows."""


class TabularClassifier(ClassifierMixin, BaseEstimator):
    """Labels for the rows of a table, used as `sklearn.semi_supervised.LabelSpreading`.

    `fit(X, y)` with unlabelled rows joins each row to its nearest neighbours and fits a `NodeClassifier` on that graph.
    Columns of any kind are read and prepared as those of a graph. Numbers without gaps are compared as they are if that
    finds as many of the known labels, each from the others, within one standard error. `predict(X)` joins new rows to
    their nearest rows of the table by edges in one direction, so that predictions do not depend on which rows are asked
    for together.

    Args:
        n_neighbors: number of neighbours of a row.
        method: method of `NodeClassifier`.
        seed: seed of `NodeClassifier`.
        options: more parameters of `NodeClassifier` by name.
        missing: labels that mean unknown, besides None and NaN. By default an empty text, the usual marks such as NA
            and ?, and -1, unless rows are unlabelled by another mark: then -1 is a class.

    Attributes:
        classes_: the labels that occur, sorted.
        transduction_: the label of every row of the table; known ones as given.
        node_classifier_: the classifier on the graph.
        n_features_in_: number of columns.
        n_iter_: number of epochs, at least 1.
    """

    def __init__(
        self,
        n_neighbors: int = 10,
        method: str = "lpa",
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
        missing: Collection[Any] | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.method = method
        self.seed = seed
        self.options = options
        self.missing = missing

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to a table.

        Args:
            X: n rows: an array, a data frame with columns of any kind, an Arrow table, or a list of dictionaries.
            y: n labels, some of which are unknown.
        """
        rows = self._rows(X, reset=True)
        if y is None:
            raise ValueError("TabularClassifier requires y to be passed, but the target y is None")
        if not isinstance(self.n_neighbors, Integral) or self.n_neighbors < 1:
            raise InputError(f"n_neighbors: at least 1 is needed, got {self.n_neighbors!r}")
        labels = np.asarray(column_or_1d(y, warn=True), dtype=object)
        check_consistent_length(rows, labels)
        known = ~_unknown(labels, self.missing)
        given = np.array(labels[known].tolist())
        assert_all_finite(given, input_name="y")
        check_classification_targets(given)
        classes, numbers = np.unique(given, return_inverse=True)
        if len(classes) < 2:
            raise InputError(f"labels of at least two classes are needed, y has {len(classes)} class")
        target = np.full(len(labels), -1)
        target[known] = numbers
        count = min(int(self.n_neighbors), len(labels) - 1)
        self._preparation: Preparation | None = Preparation.fit(rows, None, "X")
        features = self._features(rows)
        plain = kinds.matrix(rows)
        if plain is not None and _plain_will_do(_found(plain, target, count), _found(features, target, count)):
            self._preparation, features = None, plain.astype(np.float64)
        class_names = tuple(map(str, range(len(classes))))
        graph = Graph.knn(features, count, y=target, class_names=class_names, name="table").to_undirected()
        options = {"precision": "float64", "method": self.method, "seed": self.seed} | dict(self.options or {})
        self.classes_: np.ndarray = classes
        self.node_classifier_: NodeClassifier = NodeClassifier(**options).fit(graph)
        self.n_iter_ = max(1, self.node_classifier_.n_iter_)
        self.transduction_ = classes[np.where(known, target, self.node_classifier_.predict())]
        self._table: Any = NearestNeighbors(n_neighbors=count).fit(features)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of `classes_` for each row."""
        check_is_fitted(self)
        features = self._features(self._rows(X, reset=False))
        return self._followers(features, self._table.kneighbors(features, return_distance=False))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable label of each row."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def _rows(self, X: Any, reset: bool) -> pa.Table:
        """Return rows as a table of columns of any kind; those of an array are named by their numbers."""
        named = isinstance(X, Mapping) or hasattr(X, "__arrow_c_stream__") or hasattr(X, "iloc")
        listed = isinstance(X, Sequence) and len(X) > 0 and isinstance(X[0], Mapping)
        if (named or listed) and not sp.issparse(X):
            table = as_table(X)
            checked = X if hasattr(X, "iloc") else np.empty((table.num_rows, table.num_columns))
            validate_data(self, checked, reset=reset, skip_check_array=True)
        else:
            array = validate_data(
                self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan", ensure_min_samples=2 if reset else 1
            )
            if array.dtype.kind not in "OUS":
                array = array.astype(np.float64)
            table = as_table({str(number): _column(column) for number, column in enumerate(array.T)})
        forms = {} if reset else self._forms
        found = kinds.features(in_memory("X", table), table, forms)
        self._forms: dict[str, str] = found.forms
        return found.table(table.column_names)

    def _features(self, rows: pa.Table) -> np.ndarray:
        """Return what rows are compared by; a constant if they have no columns that tell them apart."""
        x = kinds.matrix(rows) if self._preparation is None else self._preparation.transform(rows, "X")
        if x is None:
            raise InputError("X: the rows of the fit were numbers without gaps; give such rows")
        dense = x if isinstance(x, np.ndarray) else x.toarray()
        return dense.astype(np.float64) if dense.shape[1] else np.zeros((rows.num_rows, 1))

    def _followers(self, X: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
        """Return probabilities of new rows, each behind edges from its neighbours in the table.

        Nothing leads back to the table, whose equilibrium stays. A fixed number of steps carries it over, so that no
        row's answer depends on when others have converged. A method with a fixed number of passes makes just those.
        """
        classifier = self.node_classifier_
        table, prediction = classifier.graph_, classifier._fitted.prediction
        assert isinstance(table.x, Tensor)
        old = table.num_nodes
        new = old + np.arange(len(X)).repeat(neighbours.shape[1])
        graph = Graph(
            np.concatenate([table.edge_index.numpy(), [neighbours.flatten(), new]], 1),
            x=np.concatenate([table.x.numpy(), X]),
        )
        problem = Problem.with_labels(graph, labels_for(prediction.problem.labels, graph.num_nodes))
        start = state_for(prediction, graph.num_nodes)
        solver = None if start is None else Picard(tol=0, max_steps=_PASSES)
        probabilities = prediction.bound.method.on(problem).solve(start, solver).probabilities
        return calibrated(probabilities[old:], classifier.calibration_, multilabel=False).cpu().numpy()


def _column(values: np.ndarray) -> pa.Array:
    """Return a column of an array; NaN is a gap."""
    try:
        return pa.array(values.tolist() if values.dtype.kind == "O" else values, from_pandas=True)
    except pa.ArrowException as error:
        raise TypeError(
            f"X: argument must be a string or a number in each cell, one kind a column ({error})"
        ) from error


def _unknown(labels: np.ndarray, missing: Collection[Any] | None) -> np.ndarray:
    """Return which labels mean unknown."""
    gaps = np.array([label is None or str(label) in ("nan", "NaT", "<NA>") for label in labels.tolist()], bool)
    if missing is not None:
        return gaps | np.array([label in set(missing) for label in labels.tolist()], bool)
    marks = names.missing_marks(None) - {"-1", "-1.0"}
    gaps |= np.array([isinstance(label, str) and label.strip() in marks for label in labels.tolist()], bool)
    minus = np.array([str(label) in ("-1", "-1.0") for label in labels.tolist()], bool)
    if gaps.any() or not minus.any():
        return gaps
    others = {str(label) for label in labels[~minus].tolist()}
    if others <= {"0", "1", "0.0", "1.0"}:
        words = f"y: -1 ({minus.sum()} rows) is read as unknown; give missing=[] if it is a class"
        warnings.warn(words, DataWarning, stacklevel=3)
    return minus


def _plain_will_do(plain: np.ndarray, prepared: np.ndarray) -> bool:
    """Return whether as many labels are found by numbers as they are, or fewer within one standard error."""
    error = np.std(prepared) / np.sqrt(len(prepared))
    return bool(plain.mean() >= prepared.mean() - error)


def _found(features: np.ndarray, target: np.ndarray, count: int) -> np.ndarray:
    """Return which known labels the nearest other known rows have."""
    known = np.flatnonzero(target >= 0)
    nearest = NearestNeighbors(n_neighbors=min(count, len(known) - 1)).fit(features[known])
    near = nearest.kneighbors(return_distance=False)
    votes = np.apply_along_axis(np.bincount, 1, target[known][near], minlength=target.max() + 1)
    return np.asarray(votes.argmax(1) == target[known])
