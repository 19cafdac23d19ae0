"""How good a fitted classifier is, and which of the labels that it was given look wrong."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lignn.classifier import scoring
from lignn.classifier.model import Fitted, Model
from lignn.classifier.report import Report, report
from lignn.classifier.suspects import Suspects, suspects
from lignn.graph import Graph


class Assessed:
    """The part of `NodeClassifier` that compares predictions with labels."""

    _fitted: Fitted
    _model: Model

    def score(
        self,
        nodes: str | Tensor | np.ndarray | None = None,
        graph: Graph | None = None,
        *,
        known: Tensor | np.ndarray | None = None,
        metric: str | None = None,
    ) -> float:
        """Return a score on the labelled ones of some nodes, F1-micro (accuracy) unless `fit` had another metric.

        A scored node's own label is hidden from the input, except for training nodes, whose labels the weights know.

        Args:
            nodes: a mask, or a part of the split: "train", "val", "test". The split is that of the fit, or the only one
                of another graph. After `refit=True` the validation nodes are training nodes. "held_out" is for the
                labels that `fit` held back, as they were predicted before the model was trained on them too. None is
                "test" if test nodes have labels, else "held_out".
            graph: as for `predict`.
            known: as for `predict`.
            metric: as for the classifier; None for the one that chose the epoch. Larger is better for all of them:
                the log loss is negative, as that of scikit-learn's scorers.
        """
        check_is_fitted(self)
        return scoring.score(self._model, nodes, graph, known, metric)

    def report(
        self,
        nodes: str | Tensor | np.ndarray | None = None,
        graph: Graph | None = None,
        *,
        known: Tensor | np.ndarray | None = None,
        metric: str | None = None,
    ) -> Report:
        """Return the score beside that of a guess, and precision, recall and support of every class.

        The arguments are those of `score`; `str` of the report is in words.
        """
        check_is_fitted(self)
        return report(self._fitted, nodes, graph, known, metric)

    def suspects(self, k: int = 10, folds: int = 5) -> Suspects:
        """Return the `k` known labels that predictions contradict most.

        Each label is predicted by a classifier with the same settings that neither was given it nor trained on it: the
        known labels are divided into folds, and a classifier is fitted without the labels of each fold in turn.

        Args:
            k: maximum number of suspects.
            folds: number of folds, and of fits.
        """
        check_is_fitted(self)
        return suspects(self._fitted, k, folds)
