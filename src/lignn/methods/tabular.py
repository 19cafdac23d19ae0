"""Classifiers of rows as methods of a graph: what one would use without graph networks.

Both learn from `[X | D⁻¹A X | columns of labels]` (`neighbourhood`), or from the features alone. They are fitted at
once, without epochs; `choose` picks how much they are regularised by validation score.

Known labels are hidden in folds while a classifier learns, which is the masked label strategy without a gradient: the
row of a node has labels of other folds only. It is not enough to leave out the node's own label. A share of the labels
in a group, with the own one left out, is smaller for nodes of that class, so it tells the label.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Generator, Tensor

from lignn.equilibrium import Solution, solve
from lignn.equilibrium.solvers import Picard, Solver
from lignn.errors import ConfigError, InputError
from lignn.methods.method import Method
from lignn.methods.neighbourhood import (
    LabelColumns,
    Rows,
    beside,
    features,
    principal,
    rows,
    width,
    with_presence,
    without_rounding,
)
from lignn.methods.problem import BoundMethod, Effects, Prediction, Problem, Score

if TYPE_CHECKING:
    import lightgbm

_SEED = 0
"""Seed of the folds in which labels are hidden, and of the trees."""
_STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
_STEPS = 300
_NEVER = -20.0
"""Logit of a class that no known node has."""
_ROUNDS = (20, 50, 100, 200, 400)
_TREES: dict[str, Any] = {
    "learning_rate": 0.1,
    "num_leaves": 15,
    "lambda_l2": 1.0,
    "feature_fraction": 0.5,
    "verbosity": -1,
    "deterministic": True,
    "force_row_wise": True,
    "seed": _SEED,
}


class Tabular(Method):
    """A classifier of rows, `Ŷ = f([X | D⁻¹A X | columns of (I - M_t) Ŷ + M_t Y])`.

    Without steps, labels of unknown nodes are not in the rows. With steps, a first classifier predicts them. A second
    one is fitted to rows that have these predictions too, made for each fold without the labels of that fold as inputs,
    and its own predictions take their place until they no longer change or the steps are used up.

    Args:
        num_features: width of the features.
        num_classes: c.
        neighbours: whether rows have the blocks of the neighbours, or features alone.
        hops: 1 for labels of neighbours; 2 also for labels of nodes that share a neighbour; 0 for no labels.
        shares: share of each class and logarithm of its number as columns, instead of the number alone.
        label_folds: number of folds in which known labels are hidden while learning; 0 to hide none.
        max_steps: how often predictions are fed back at most; 0 for never.
        tol: root mean square change of the predictions at which they have converged; 0 to take all steps.
        edge_types: names of the types of edges whose labels are counted apart; None for all edges together.
        most_columns: number of features beyond which their leading principal directions take their place, this number
            of them in a row with the neighbours' block; 0 for no limit.

    Attributes:
        chosen: the place of the variant that is used among those that were fitted.
        first: the classifier whose predictions the second one starts from; None if predictions are not fed back.
    """

    first: Tabular | None
    projection: Tensor | None

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        neighbours: bool = True,
        hops: int = 1,
        shares: bool = False,
        label_folds: int = 0,
        max_steps: int = 0,
        tol: float = 0.0,
        edge_types: Sequence[str] | None = None,
        most_columns: int = 0,
    ) -> None:
        super().__init__()
        if label_folds < 0 or label_folds == 1:
            raise ConfigError(f"label_folds: at least 2, or 0 to hide no labels, is needed, got {label_folds!r}")
        if max_steps and not label_folds:
            raise ConfigError("label_folds: labels must be hidden if predictions are fed back; give at least 2")
        self.labels = LabelColumns(hops, tuple(edge_types or ()), shares)
        projected = 0 < most_columns < num_features
        kept = most_columns // (1 + neighbours) if projected else num_features
        self.columns = width(kept, num_classes, neighbours, self.labels)
        self.register_buffer("projection", torch.zeros(num_features, kept) if projected else None)
        if not self.columns:
            raise InputError("the graph has no features, and neighbours=False leaves nothing else; leave it out")
        self.neighbours, self.label_folds = neighbours, label_folds
        self.solver = Picard(tol=tol, max_steps=max_steps)
        self.num_classes = num_classes
        self.chosen: int | None = None
        one_step = (num_features, num_classes, neighbours, hops, shares, label_folds)
        fed_back = self.takes_labels and max_steps > 0
        last = {"edge_types": edge_types, "most_columns": most_columns}
        self.first = type(self)(*one_step, **last) if fed_back else None  # type: ignore[arg-type]
        self.reset()

    def reset(self) -> None:
        """Create the weights, for classifiers that have them as tensors."""

    @abstractmethod
    def fit_rows(self, table: Rows, target: np.ndarray, weight: np.ndarray | None, multilabel: bool) -> None:
        """Fit to rows of known nodes; `target` are rows of zeros and ones, `weight` one number per row."""

    @property
    @abstractmethod
    def variants(self) -> int:
        """The number of variants to choose from."""

    @abstractmethod
    def scores(self, table: Rows, multilabel: bool, variant: int | None) -> np.ndarray:
        """Return probabilities of one variant; for None of the chosen one."""

    @property
    def takes_labels(self) -> bool:
        """Whether rows have columns of labels."""
        return self.neighbours and self.labels.hops > 0

    def learn(self, problem: Problem) -> bool:
        """Fit to the known nodes of the problem."""
        labels = problem.labels
        if self.projection is not None:
            directions = principal(problem, min(self.projection.shape[1], labels.num_nodes))
            self.projection[:, : directions.shape[1]] = torch.from_numpy(directions)
        if not (self.takes_labels and self.label_folds):
            self._fit(problem, [(labels.mask, labels.onehot)])
            return True
        folds = labels.folds(self.label_folds, Generator().manual_seed(_SEED))
        states = [fold.given.onehot for fold in folds]
        if self.first is not None:
            self.first.learn(problem)
            variant = self.variants // 2 if self.first.chosen is None else self.first.chosen
            guesses = [self.first.probabilities(problem, state, variant) for state in states]
            states = [fold.given.clamp(guess * fold.shown) for fold, guess in zip(folds, guesses, strict=True)]
        self._fit(problem, [(fold.supervised, state) for fold, state in zip(folds, states, strict=True)])
        return True

    def _fit(self, problem: Problem, parts: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Fit to parts of the known nodes (masks), each with rows made from a label state of its own."""
        labels = problem.labels
        known = labels.mask.numpy()
        target = labels.onehot.cpu().numpy()[known]
        weight = None
        if labels.class_weight is not None:
            weight = target @ labels.class_weight.cpu().numpy().astype(np.float64)
        self.fit_rows(self._table(problem, parts)[known], target, weight, labels.multilabel)

    def _table(self, problem: Problem, parts: Sequence[tuple[Tensor, Tensor]]) -> Rows:
        """Return rows of all nodes; those of each part have the labels of its state, others have none."""
        if not self.neighbours:
            return rows(problem, False, projection=self._projected)
        inputs = np.zeros((problem.labels.num_nodes, self.labels.width(problem.labels.num_classes)))
        for nodes, state in parts:
            inputs[nodes.numpy()] = self.labels.of(problem, state)[nodes.numpy()]
        return rows(problem, True, inputs, self._projected)

    @property
    def _projected(self) -> np.ndarray | None:
        """The directions as they are saved; None for all features."""
        return None if self.projection is None else self.projection.cpu().double().numpy()

    def probabilities(self, problem: Problem, state: Tensor, variant: int | None = None) -> Tensor:
        """Return the probabilities of all nodes for a label state (n×c)."""
        labels = problem.labels
        table = self._table(problem, [(torch.ones_like(labels.mask), state)])
        return torch.from_numpy(self.scores(table, labels.multilabel, variant)).to(labels.onehot)

    def on(self, problem: Problem) -> BoundTabular:
        """Bind the method to a problem."""
        return (BoundNeighbourhood if self.takes_labels else BoundTabular)(self, problem)

    def adopt_choices(self, other: Method) -> None:
        """Take over the chosen variant."""
        if isinstance(other, Tabular):
            self.chosen = other.chosen
            if self.first is not None and other.first is not None:
                self.first.adopt_choices(other.first)


@dataclass(frozen=True, eq=False)
class BoundTabular(BoundMethod):
    """A bound classifier of rows; labels have no part in rows of features."""

    method: Tabular

    @property
    def iterates(self) -> bool:
        """Whether predictions are fed back until they no longer change."""
        return self.method.first is not None and self.method.solver.tol > 0

    def choose(self, score: Score) -> None:
        """Choose the variant with the best validation score, the first of equal ones."""
        if self.method.first is not None:
            self.method.first.on(self.problem).choose(score)
        found = [score(self._predicted(variant)) for variant in range(self.method.variants)]
        self.method.chosen = int(np.argmax(found))

    def solve(self, start: Tensor | None = None, solver: Solver | None = None) -> Prediction:  # noqa: ARG002
        """Predict from known labels; with several steps, from the first classifier's predictions on."""
        return self._predicted(None)

    def _predicted(self, variant: int | None) -> Prediction:
        if self.method.first is None:
            return Prediction(self, self._step(torch.zeros_like(self.problem.labels.onehot), variant))
        solution = solve(partial(self._step, variant=variant), self._start, self.method.solver, throw=False)
        return Prediction(self, solution.value, solution)

    def _step(self, state: Tensor, variant: int | None = None) -> Tensor:
        """Return `f((I - M_t) Ŷ + M_t Y)`."""
        return self.method.probabilities(self.problem, self.problem.labels.clamp(state), variant)

    @property
    def _start(self) -> Tensor:
        """The predictions that are fed back first."""
        assert self.method.first is not None
        return self.method.first.predict(self.problem).probabilities


@dataclass(frozen=True, eq=False)
class BoundNeighbourhood(BoundTabular):
    """A bound classifier of rows that have the known labels of other nodes."""

    takes_labels: ClassVar[bool] = True

    def effects(self, prediction: Prediction, node: int, number: int) -> Effects:
        """Return what the known labels do for a prediction, by making its row again without them.

        Predictions that are fed back stay as they are.
        """
        labels, columns, solution = self.problem.labels, self.method.labels, prediction.solution
        given = with_presence(labels.onehot if solution is None else labels.clamp(self._fed_back(solution)))
        weights = np.stack([way.weights(node) for way in columns.ways(self.problem)])
        sums = (weights @ given)[:, None]
        known = np.flatnonzero(labels.mask.numpy() & (weights != 0).any(0))
        known_weights = weights[:, known, None]
        without = sums - known_weights * given[known]
        instead = without if solution is None else without + known_weights * with_presence(solution.value)[known]
        without_all = sums - (known_weights * given[known]).sum(1, keepdims=True)
        changed = without_rounding(np.concatenate([sums, without_all, without, instead], axis=1), sums)
        inputs = np.hstack([columns.shown(each) for each in changed])
        table = beside(features(self.problem, self.method._projected)[np.full(len(inputs), node)], inputs)
        now, nothing, *others = self.method.scores(table, labels.multilabel, None)[:, number].tolist()
        gains, shares = torch.zeros(2, labels.num_nodes, dtype=torch.float64)
        shares[known] = now - torch.tensor(others[: len(known)], dtype=torch.float64)
        gains[known] = now - torch.tensor(others[len(known) :], dtype=torch.float64)
        return Effects(gains, shares, now - nothing)

    def _fed_back(self, solution: Solution) -> Tensor:
        """Return the state that the last step of a solve has started from."""
        state = self._start
        for _ in range(solution.steps - 1):
            state = self._step(state)
        return state


class Logistic(Tabular):
    """Logistic regression of scikit-learn: `Ŷ = σ(row W + b)`, with an L2 penalty chosen among five.

    Dense columns are standardised by the known rows. Multi-label tasks have one regression per class.
    """

    weight: Tensor
    bias: Tensor

    def reset(self) -> None:
        """Create one regression for each strength of the penalty."""
        self.register_buffer("weight", torch.zeros(len(_STRENGTHS), self.columns, self.num_classes))
        self.register_buffer("bias", torch.zeros(len(_STRENGTHS), self.num_classes))

    @property
    def variants(self) -> int:
        """The number of penalties."""
        return len(_STRENGTHS)

    def get_extra_state(self) -> Tensor:
        """Return the place of the chosen penalty, -1 for none."""
        return torch.tensor(-1 if self.chosen is None else self.chosen)

    def set_extra_state(self, state: Tensor) -> None:
        """Restore what `get_extra_state` returned."""
        self.chosen = None if state < 0 else int(state)

    def fit_rows(self, table: Rows, target: np.ndarray, weight: np.ndarray | None, multilabel: bool) -> None:
        """Fit one regression for each penalty; only the chosen one if there is one already."""
        centre, scale = _scales(table)
        ready = table if sp.issparse(table) else (table - centre) / scale
        for place, strength in enumerate(_STRENGTHS):
            if self.chosen in (None, place):
                fit = _one_per_class if multilabel else _multinomial
                coefficients, intercept = fit(ready, target, weight, strength)
                coefficients /= scale[:, None]
                self.weight[place] = torch.from_numpy(coefficients)
                self.bias[place] = torch.from_numpy(intercept - centre @ coefficients)

    def scores(self, table: Rows, multilabel: bool, variant: int | None) -> np.ndarray:
        """Return `σ(row W + b)`."""
        if variant is None:
            variant = _STRENGTHS.index(1.0) if self.chosen is None else self.chosen
        weight, bias = (each[variant].cpu().double().numpy() for each in (self.weight, self.bias))
        logits = torch.from_numpy(np.asarray(table @ weight + bias))
        return (logits.sigmoid() if multilabel else logits.softmax(1)).numpy()


def _scales(table: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation of dense columns; sparse ones keep their zeros and their scale."""
    if sp.issparse(table):
        return np.zeros(table.shape[1]), np.ones(table.shape[1])
    deviation = table.std(0)
    return table.mean(0), np.where(deviation > 1e-12, deviation, 1.0)


def _multinomial(
    table: Rows, target: np.ndarray, weight: np.ndarray | None, strength: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients (columns×c) and intercepts (c); a class without a known node is never predicted."""
    number = target.argmax(1)
    model = _regression(table, number, weight, strength)
    present, two = model.classes_, len(model.classes_) == 2
    coefficients, intercept = np.zeros((table.shape[1], target.shape[1])), np.full(target.shape[1], _NEVER)
    # Of two classes there is one row: the logit of the second against the first, whose own is zero.
    found = np.stack([np.zeros_like(model.coef_[0]), model.coef_[0]]) if two else model.coef_
    coefficients[:, present] = found.T
    intercept[present] = [0.0, model.intercept_[0]] if two else model.intercept_
    return coefficients, intercept


def _one_per_class(
    table: Rows, target: np.ndarray, weight: np.ndarray | None, strength: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients (columns×c) and intercepts (c) of independent classes."""
    coefficients, intercept = np.zeros((table.shape[1], target.shape[1])), np.empty(target.shape[1])
    for c, wanted in enumerate(target.T):
        if wanted.min() == wanted.max():
            intercept[c] = _NEVER * (1 - 2 * wanted[0])
        else:
            model = _regression(table, wanted, weight, strength)
            coefficients[:, c], intercept[c] = model.coef_[0], model.intercept_[0]
    return coefficients, intercept


def _regression(table: Rows, wanted: np.ndarray, weight: np.ndarray | None, strength: float) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # stopping early regularises too
        return LogisticRegression(C=strength, max_iter=_STEPS).fit(table, wanted, weight)


class Boosted(Tabular):
    """Boosted trees of LightGBM, with a number of rounds chosen among five; one class per node.

    They are saved in LightGBM's own text format.
    """

    _booster: lightgbm.Booster | None = None

    @property
    def variants(self) -> int:
        """The number of rounds to choose from."""
        return len(_ROUNDS)

    def get_extra_state(self) -> Tensor:
        """Return the chosen number of rounds and the trees as the bytes of LightGBM's text."""
        text = "" if self._booster is None else self._booster.model_to_string()
        place = -1 if self.chosen is None else self.chosen
        return torch.frombuffer(bytearray(f"{place}\n{text}".encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Restore what `get_extra_state` returned."""
        place, _, text = bytes(state.cpu().numpy()).decode().partition("\n")
        self.chosen = None if int(place) < 0 else int(place)
        if text:
            from lightgbm import Booster

            self._booster = Booster(model_str=text)

    def fit_rows(self, table: Rows, target: np.ndarray, weight: np.ndarray | None, multilabel: bool) -> None:
        """Boost for the largest number of rounds; earlier ones are parts of it."""
        if multilabel:
            raise ConfigError("method: 'boosted' needs one class per node, here a node may have several; try logistic")
        import lightgbm  # a plain fit of a network does not wait for it

        objective: dict[str, Any] = {"objective": "binary" if self.num_classes == 2 else "multiclass"}
        if self.num_classes > 2:
            objective |= {"num_class": self.num_classes}
        few = {"min_data_in_leaf": max(1, min(20, len(target) // 50)), "min_data_in_bin": 1}
        settings = _TREES | objective | few | {"num_threads": torch.get_num_threads()}
        matrix = sp.csr_matrix(table) if sp.issparse(table) else table
        data = lightgbm.Dataset(
            matrix, target.argmax(1), weight=weight, params={"feature_pre_filter": False, **settings}
        )
        rounds = _ROUNDS[-1] if self.chosen is None else _ROUNDS[self.chosen]
        self._booster = lightgbm.train(settings, data, rounds)

    def scores(self, table: Rows, multilabel: bool, variant: int | None) -> np.ndarray:  # noqa: ARG002
        """Return the probabilities after the chosen number of rounds."""
        assert self._booster is not None
        place = self.chosen if variant is None else variant
        matrix = sp.csr_matrix(table) if sp.issparse(table) else table
        found = np.asarray(self._booster.predict(matrix, num_iteration=None if place is None else _ROUNDS[place]))
        return np.stack([1 - found, found], 1) if self.num_classes == 2 else found
