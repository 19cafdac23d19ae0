"""Classifiers of rows as methods of a graph: what one would use without graph networks.

Both learn from `[X | D⁻¹A X | A M_t Y]` (`neighbourhood`), or from the features alone. They are fitted at once, without
epochs; `choose` picks how much they are regularised by validation score.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.equilibrium.solvers import Solver
from lignn.errors import ConfigError, InputError
from lignn.methods.method import Method
from lignn.methods.neighbourhood import Rows, rows, width
from lignn.methods.problem import BoundMethod, Prediction, Problem, Score

if TYPE_CHECKING:
    import lightgbm

_STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
_STEPS = 300
_NEVER = -20.0
"""Logit of a class that no known node has."""
_ROUNDS = (20, 50, 100, 200)
_TREES: dict[str, Any] = {
    "learning_rate": 0.1,
    "num_leaves": 15,
    "lambda_l2": 1.0,
    "feature_fraction": 0.5,
    "verbosity": -1,
    "deterministic": True,
    "force_row_wise": True,
    "seed": 0,
}


class Tabular(Method):
    """A classifier of rows. `chosen` is the place of the variant that is used among those that were fitted.

    Args:
        neighbours: whether rows have the blocks of the neighbours, or features alone.
        columns: number of columns of a row.
    """

    def __init__(self, neighbours: bool, columns: int) -> None:
        super().__init__()
        if not columns:
            raise InputError("the graph has no features, and neighbours=False leaves nothing else; leave it out")
        self.neighbours = neighbours
        self.chosen: int | None = None

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

    def learn(self, problem: Problem) -> bool:
        """Fit to the known nodes of the problem."""
        labels = problem.labels
        known = labels.mask.numpy()
        target = labels.onehot.cpu().numpy()[known]
        weight = None
        if labels.class_weight is not None:
            weight = target @ labels.class_weight.cpu().numpy().astype(np.float64)
        self.fit_rows(rows(problem, self.neighbours)[known], target, weight, labels.multilabel)
        return True

    def on(self, problem: Problem) -> BoundTabular:
        """Bind the method to a problem."""
        return (BoundNeighbourhood if self.neighbours else BoundTabular)(self, problem)

    def adopt_choices(self, other: Method) -> None:
        """Take over the chosen variant."""
        if isinstance(other, Tabular):
            self.chosen = other.chosen


@dataclass(frozen=True, eq=False)
class BoundTabular(BoundMethod):
    """A bound classifier of rows of features: one pass, in which labels have no part."""

    method: Tabular

    def choose(self, score: Score) -> None:
        """Choose the variant with the best validation score, the first of equal ones."""
        found = [score(self._predicted(variant)) for variant in range(self.method.variants)]
        self.method.chosen = int(np.argmax(found))

    def solve(self, start: Tensor | None = None, solver: Solver | None = None) -> Prediction:  # noqa: ARG002
        """Return the output of the classifier; there is nothing to solve."""
        return self._predicted(None)

    def _predicted(self, variant: int | None) -> Prediction:
        labels = self.problem.labels
        table = rows(self.problem, self.method.neighbours)
        found = self.method.scores(table, labels.multilabel, variant)
        return Prediction(self, torch.from_numpy(found).to(labels.onehot))


@dataclass(frozen=True, eq=False)
class BoundNeighbourhood(BoundTabular):
    """A bound classifier of rows that have the known labels of the neighbours."""

    takes_labels: ClassVar[bool] = True


class Logistic(Tabular):
    """Logistic regression of scikit-learn: `Ŷ = σ(row W + b)`, with an L2 penalty chosen among five.

    Dense columns are standardised by the known rows. Multi-label tasks have one regression per class.

    Args:
        num_features: width of the features.
        num_classes: c.
        neighbours: as for `Tabular`.
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, num_features: int, num_classes: int, neighbours: bool = True) -> None:
        columns = width(num_features, num_classes, neighbours)
        super().__init__(neighbours, columns)
        # One regression for each strength of the penalty.
        self.register_buffer("weight", torch.zeros(len(_STRENGTHS), columns, num_classes))
        self.register_buffer("bias", torch.zeros(len(_STRENGTHS), num_classes))

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
    """Boosted trees of LightGBM, with a number of rounds chosen among four; one class per node.

    They are saved in LightGBM's own text format. Needs the extra `boosting`.

    Args:
        num_features: width of the features.
        num_classes: c.
        neighbours: as for `Tabular`.
    """

    def __init__(self, num_features: int, num_classes: int, neighbours: bool = True) -> None:
        super().__init__(neighbours, width(num_features, num_classes, neighbours))
        self.num_classes = num_classes
        self._booster: lightgbm.Booster | None = None
        _lightgbm()

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
        self._booster = _lightgbm().Booster(model_str=text) if text else None

    def fit_rows(self, table: Rows, target: np.ndarray, weight: np.ndarray | None, multilabel: bool) -> None:
        """Boost for the largest number of rounds; earlier ones are parts of it."""
        if multilabel:
            raise ConfigError("method: 'boosted' needs one class per node, here a node may have several; try logistic")
        trees = _lightgbm()
        objective: dict[str, Any] = {"objective": "binary" if self.num_classes == 2 else "multiclass"}
        if self.num_classes > 2:
            objective |= {"num_class": self.num_classes}
        few = {"min_data_in_leaf": max(1, min(20, len(target) // 50)), "min_data_in_bin": 1}
        settings = _TREES | objective | few | {"num_threads": torch.get_num_threads()}
        matrix = sp.csr_matrix(table) if sp.issparse(table) else table
        data = trees.Dataset(matrix, target.argmax(1), weight=weight, params={"feature_pre_filter": False, **settings})
        rounds = _ROUNDS[-1] if self.chosen is None else _ROUNDS[self.chosen]
        self._booster = trees.train(settings, data, rounds)

    def scores(self, table: Rows, multilabel: bool, variant: int | None) -> np.ndarray:  # noqa: ARG002
        """Return the probabilities after the chosen number of rounds."""
        assert self._booster is not None
        place = self.chosen if variant is None else variant
        matrix = sp.csr_matrix(table) if sp.issparse(table) else table
        found = np.asarray(self._booster.predict(matrix, num_iteration=None if place is None else _ROUNDS[place]))
        return np.stack([1 - found, found], 1) if self.num_classes == 2 else found


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError as error:
        raise ConfigError("method: 'boosted' needs LightGBM; pip install 'lignn[boosting]'") from error
    return lightgbm


def boosting_is_here() -> bool:
    """Return whether LightGBM can be imported."""
    from importlib.util import find_spec

    return find_spec("lightgbm") is not None
