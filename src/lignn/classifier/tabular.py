"""A half-labelled table without a graph: rows are joined to their nearest neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from lignn.classifier.calibration import calibrated
from lignn.classifier.growth import labels_for, state_for
from lignn.classifier.node import NodeClassifier
from lignn.equilibrium.solvers import Picard
from lignn.errors import InputError
from lignn.graph import Graph
from lignn.methods import Problem

_PASSES = 50
"""Number of steps for new rows: enough for a map that contracts, and the same for all rows."""


class TabularClassifier(ClassifierMixin, BaseEstimator):
    """Labels for the rows of a table, used as `sklearn.semi_supervised.LabelSpreading`.

    `fit(X, y)` with y = -1 for unlabelled rows joins each row to its nearest neighbours and fits a `NodeClassifier` on
    that graph. `predict(X)` joins new rows to their nearest rows of the table by edges in one direction, so that
    predictions do not depend on which rows are asked for together.

    Args:
        n_neighbors: number of neighbours of a row.
        method: method of `NodeClassifier`.
        seed: seed of `NodeClassifier`.
        options: more parameters of `NodeClassifier` by name.

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
    ) -> None:
        self.n_neighbors = n_neighbors
        self.method = method
        self.seed = seed
        self.options = options

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to a table.

        Args:
            X: n×d numbers.
            y: n labels, -1 = unlabelled; texts and -1 together need an array of dtype=object.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        if not isinstance(self.n_neighbors, Integral) or self.n_neighbors < 1:
            raise InputError(f"n_neighbors: at least 1 is needed, got {self.n_neighbors!r}")
        if y.dtype.kind in "UST" and "-1" in y.astype(str):
            raise InputError("y: NumPy turns -1 beside texts into '-1'; make y with dtype=object, and -1 a number")
        unlabelled = np.array([label == -1 for label in y.tolist()])  # texts compared with a number, one by one
        check_classification_targets(y[~unlabelled])
        classes, numbers = np.unique(y[~unlabelled], return_inverse=True)
        if len(classes) < 2:
            raise InputError(f"labels of at least two classes are needed, y has {len(classes)} class")
        count = min(int(self.n_neighbors), len(X) - 1)
        target = np.full(len(X), -1)
        target[~unlabelled] = numbers
        names = tuple(map(str, range(len(classes))))
        graph = Graph.knn(X, count, y=target, class_names=names, name="table").to_undirected()
        options = {"precision": "float64", "method": self.method, "seed": self.seed} | dict(self.options or {})
        self.classes_: np.ndarray = classes
        self.node_classifier_: NodeClassifier = NodeClassifier(**options).fit(graph)
        self.n_iter_ = max(1, self.node_classifier_.n_iter_)
        self.transduction_ = np.where(unlabelled, classes[self.node_classifier_.predict()], y)
        self._table: Any = NearestNeighbors(n_neighbors=count).fit(X)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of `classes_` for each row."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._followers(X, self._table.kneighbors(X, return_distance=False))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable label of each row."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

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
