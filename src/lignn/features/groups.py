"""Columns of one treatment together: scikit-learn's transformers, and their fitted state as arrays and JSON.

A group is fitted, reduced to its state, and made again from that. So a loaded one is the fitted one by construction,
and nothing is kept that the transform does not need, such as the rare values of a category.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, QuantileTransformer, StandardScaler

from lignn.features.columns import rare
from lignn.features.dates import circle

Treatment = Literal["standard", "quantiles", "boolean", "cycle", "category", "words", "characters"]
Input = tuple[str, str]
"""A column, and for dates its part; the part is empty otherwise."""
Arrays = dict[str, np.ndarray]

MAX_CATEGORIES = 100
"""One-hot columns of a category; less frequent values are together in one of them."""
QUANTILES, ROWS_EACH = 100, 5
"""Points of a column's distribution that scaling by quantiles keeps: at most 100, and one for five rows."""
FARTHEST = 1e6
"""Prepared numbers of new rows end here, so that none overflows."""

_RARE_VALUE = "\0"
_ATTRIBUTES = {
    "scaler": ("mean_", "scale_", "var_"),
    "quantiles": ("quantiles_", "references_"),
    "tfidf": ("idf_",),
}
"""Fitted attributes of transformers, by the step's name in a pipeline."""


@dataclass(frozen=True, eq=False)
class Group:
    """Columns that are transformed together.

    Attributes:
        treatment: what is done with them.
        inputs: the columns.
        width: number of columns that texts are hashed to.
        steps: the fitted transformers.
        values: of a category: the values that have a column of their own, None for missing, and whether there are
            others, which share one; a pair for each column.
    """

    treatment: Treatment
    inputs: tuple[Input, ...]
    width: int
    steps: Pipeline
    values: tuple[tuple[tuple[str | None, ...], bool], ...] = ()

    @classmethod
    def fit(cls, treatment: Treatment, inputs: tuple[Input, ...], values: np.ndarray, width: int) -> Group:
        """Fit the transformers of a treatment to the values of some columns, n×k."""
        with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn adds up all numbers, such as ±1e308
            steps = _pipeline(treatment, width, len(values)).fit(values)
        group = cls(treatment, inputs, width, steps)
        if treatment == "category":
            group = replace(group, values=_categories(steps["onehot"]))
        return cls.restored(*group.state())

    def transform(self, values: np.ndarray) -> np.ndarray | sp.csr_array:
        """Return the features of some rows in single precision."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.steps.transform(values)
        if sp.issparse(found):
            return sp.csr_array(found, dtype=np.float32)
        return np.clip(found, -FARTHEST, FARTHEST).astype(np.float32)

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns of `transform`."""
        names = [name if part in ("", "age") else f"{name} {part}" for name, part in self.inputs]
        if self.treatment in ("words", "characters"):
            return [f"{names[0]}: {self.treatment} {number}" for number in range(self.width)]
        if self.treatment == "category":
            return [
                f"{name} = {value}"
                for name, (values, others) in zip(names, self.values, strict=True)
                for value in [*("missing" if one is None else one for one in values), *["other values"] * others]
            ]
        if self.treatment == "cycle":
            return [f"{name} {axis}" for axis in ("sin", "cos") for name in names]
        return names + [f"{names[number]}: missing" for number in np.flatnonzero(self._had_missing())]

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """Return the fitted state: values as JSON has them, and arrays."""
        arrays: Arrays = {}
        for name, step in self.steps.steps:
            arrays |= {f"{name}.{key}": np.asarray(getattr(step, key)) for key in _ATTRIBUTES.get(name, ())}
            if name == "imputer":
                arrays["imputer.missing"] = self._had_missing()
        values = [[list(known), others] for known, others in self.values]
        inputs = [list(one) for one in self.inputs]
        return {"treatment": self.treatment, "inputs": inputs, "width": self.width, "values": values}, arrays

    @classmethod
    def restored(cls, record: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Group:
        """Return the group of which `state` returned these."""
        treatment, width = record["treatment"], record["width"]
        values = tuple((tuple(known), others) for known, others in record["values"])
        steps = _pipeline(treatment, width, 1)
        for name, step in steps.steps:
            if name == "onehot":
                step.set_params(min_frequency=2).fit(_table_of(values))
            elif name == "imputer":
                missing = arrays["imputer.missing"]
                step.fit(np.stack([np.where(missing, np.nan, 0.0), np.zeros(len(missing))]))
            elif name in ("hashing", "circle"):
                step.fit([""] if name == "hashing" else np.zeros((1, 1)))
            for key in _ATTRIBUTES.get(name, ()):
                setattr(step, key, arrays[f"{name}.{key}"])
            if name in _ATTRIBUTES:
                step.n_features_in_ = arrays[f"{name}.{_ATTRIBUTES[name][0]}"].shape[-1]
        inputs = tuple((name, part) for name, part in record["inputs"])
        return cls(treatment, inputs, width, steps, values)

    def _had_missing(self) -> np.ndarray:
        """Return which columns had missing values when they were fitted, and have an indicator since."""
        imputer = self.steps["imputer"]
        missing = np.zeros(imputer.n_features_in_, dtype=bool)
        if imputer.indicator_ is not None:
            missing[imputer.indicator_.features_] = True
        return missing


def _pipeline(treatment: Treatment, width: int, num_rows: int) -> Pipeline:
    """Return the transformers of a treatment; missing numbers become the mean, which is 0 after scaling."""
    if treatment in ("words", "characters"):
        words = treatment == "words"
        hashing = HashingVectorizer(
            analyzer="word" if words else "char_wb",
            ngram_range=(1, 1) if words else (3, 4),
            n_features=width,
            norm=None,
            alternate_sign=False,
            dtype=np.float32,
        )
        return Pipeline([("hashing", hashing), ("tfidf", TfidfTransformer(sublinear_tf=True))])
    if treatment == "category":
        onehot = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            min_frequency=rare(num_rows),
            max_categories=MAX_CATEGORIES,
            dtype=np.float32,
        )
        return Pipeline([("onehot", onehot)])
    points = min(QUANTILES, max(num_rows // ROWS_EACH, min(ROWS_EACH, num_rows)))
    quantiles = QuantileTransformer(n_quantiles=points, random_state=0)
    imputer = SimpleImputer(
        strategy="constant", fill_value=0.0, add_indicator=treatment != "cycle", keep_empty_features=True
    )
    steps = {
        "standard": [("scaler", StandardScaler())],
        "quantiles": [("quantiles", quantiles), ("scaler", StandardScaler())],
        "boolean": [],
        "cycle": [("circle", FunctionTransformer(circle))],
    }[treatment]
    return Pipeline([*steps, ("imputer", imputer)])


def _categories(onehot: OneHotEncoder) -> tuple[tuple[tuple[str | None, ...], bool], ...]:
    """Return the frequent values of each column, and whether it has others."""
    found = []
    for values, others in zip(onehot.categories_, onehot.infrequent_categories_, strict=True):
        infrequent = set() if others is None else set(others)
        found.append((tuple(value for value in values if value not in infrequent), bool(infrequent)))
    return tuple(found)


def _table_of(columns: tuple[tuple[tuple[str | None, ...], bool], ...]) -> np.ndarray:
    """Return a table in which the frequent values of each column are there twice and one other value once."""
    lists = [[*known, *known, *[_RARE_VALUE] * others] for known, others in columns]
    longest = max(map(len, lists))
    return np.array([one + [one[0]] * (longest - len(one)) for one in lists], dtype=object).T
