"""What a trained model is, with the graph it was trained on and without, and the estimator that holds one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from lignn.classifier.calibration import Calibration, Outcome
from lignn.classifier.columns import Inputs
from lignn.classifier.spec import Spec
from lignn.errors import ConfigError, InputError, did_you_mean
from lignn.graph import Graph, Split
from lignn.graph.split import PARTS
from lignn.labels import Classes
from lignn.methods import Method, Prediction, Problem
from lignn.store import share_of, whole_of
from lignn.training import History, Metric

if TYPE_CHECKING:
    from lignn.classifier.race.leaderboard import Leaderboard
    from lignn.features import FeatureTransform

NO_GRAPH = (
    "the model was saved without the graph it was trained on, which this needs; "
    "give it another graph, predict(graph), or save it with its graph"
)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The result of fitting.

    Attributes:
        spec: the settings it was fitted with.
        classes: the classes that it tells apart.
        graph: the graph it works on.
        split: the split it was fitted with; nodes that `refit` or updates have trained on are in its training part.
        history: history of training; of the first one, if there were two.
        prediction: the trained method's prediction on the graph; `prediction.bound` is the method on it.
        calibration: None if not wanted, or if there were too few held-out labels.
        mask_rate: β that the next epoch would have; None if the method does not adapt it.
        interrupted: whether training was interrupted.
        further: number of epochs that updates have trained since.
        preparation: makes features of the columns of tables; None if features are taken as they are.
        metric: the validation score that chose the epoch.
        held_out: predictions at the labels that `fit` held back, by models that had not seen them; None if there were
            too few labels, and for models of lignn 0.2 and before.
        leaderboard: the race that chose it; None if its method was named.
    """

    spec: Spec
    classes: Classes
    graph: Graph
    split: Split
    history: History
    prediction: Prediction
    calibration: Calibration | None
    mask_rate: float | None = None
    interrupted: bool = False
    further: int = 0
    preparation: FeatureTransform | None = None
    metric: Metric = field(default_factory=Metric)
    held_out: Outcome | None = None
    leaderboard: Leaderboard | None = None

    @property
    def has_seen_held_out(self) -> bool:
        """Whether labels that `fit` held back have become training labels since."""
        left = int((self.split.val & self.graph.labelled).sum())
        return left < (1 if self.held_out is None else len(self.held_out.truth))

    @property
    def method(self) -> Method:
        """The trained method."""
        return self.prediction.bound.method

    @property
    def inputs(self) -> Inputs:
        """The features that the method takes."""
        x = self.prediction.problem.x
        graph = self.graph
        return Inputs(0 if x is None else x.shape[1], graph.feature_names, graph.edge_types, graph.reading)


@dataclass(frozen=True, eq=False)
class HandedOn:
    """A model without the graph it was trained on: no features, labels or ids of it; see `Fitted`."""

    spec: Spec
    classes: Classes
    history: History
    calibration: Calibration | None
    preparation: FeatureTransform | None
    metric: Metric
    method: Method
    inputs: Inputs
    leaderboard: Leaderboard | None = None


Model = Fitted | HandedOn
"""All that a prediction on another graph needs; `Fitted` has a graph of its own besides."""


def with_graph(model: Model) -> Fitted:
    """Return a model that has the graph it was trained on; raise for one that was saved without."""
    if not isinstance(model, Fitted):
        raise InputError(NO_GRAPH)
    return model


class Estimator(BaseEstimator):
    """An estimator whose parameters are explicit, and whose model may have been saved without its graph."""

    _model: Model

    def _refuse(self, unknown: Mapping[str, Any]) -> None:
        for name in unknown:
            known = self._get_param_names()
            raise ConfigError(f"{type(self).__name__} has no parameter {name!r}; {did_you_mean(name, known)}")

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; takes effect at the next `fit`."""
        self._refuse({name: None for name in params if name not in self._get_param_names()})
        return super().set_params(**params)

    @property
    def _fitted(self) -> Fitted:
        """The model with its graph; raises for one that was saved without."""
        return with_graph(self._model)

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in vars(self)

    if not TYPE_CHECKING:  # a type checker would take any attribute to be there

        def __getattr__(self, name: str) -> Any:
            if name in ("graph_", "split_") and "_model" in vars(self):
                raise InputError(NO_GRAPH)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def gathered(fitted: Fitted) -> Fitted:
    """Return the fit with the rows of all processes in the first one; in the others, and if there are none, itself.

    The result belongs to one process: it solves and predicts on the whole graph alone.
    """
    prediction, processes = fitted.prediction, fitted.prediction.problem.processes
    if processes.count == 1:
        return fitted

    def mask_of_all(mask: Tensor) -> Tensor:
        return processes.whole(mask.to(torch.uint8)).bool()

    labels, solution = prediction.problem.labels, prediction.solution
    mask, onehot = mask_of_all(labels.mask), processes.whole(labels.onehot)
    split = Split(*(mask_of_all(getattr(fitted.split, part)) for part in PARTS))
    probabilities = processes.whole(prediction.probabilities)
    if solution is not None:
        solution = replace(solution, value=processes.whole(solution.value), adjoints=[])
    if not processes.is_first:
        return fitted
    graph = whole_of(fitted.graph).replace(name=fitted.graph.name)
    problem = Problem.with_labels(graph, replace(labels, mask=mask, onehot=onehot, share=share_of(graph)))
    bound = prediction.bound.method.on(problem)
    return replace(fitted, graph=graph, split=split, prediction=Prediction(bound, probabilities, solution))
