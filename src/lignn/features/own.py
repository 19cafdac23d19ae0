"""A fitted transformer of the user's own in place of a `Preparation`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lignn.errors import ConfigError, InputError
from lignn.features.columns import Column
from lignn.features.preparation import Matrix


@dataclass(frozen=True, eq=False)
class OwnTransformer:
    """A transformer that was fitted elsewhere, such as a `ColumnTransformer`; it is used as it is and not saved.

    Attributes:
        transformer: with scikit-learn's `transform`.
        columns: the columns of the table of the fit; empty for a graph without a table.
    """

    transformer: Any
    columns: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        try:
            check_is_fitted(self.transformer)
        except NotFittedError as error:
            name = type(self.transformer).__name__
            raise ConfigError(f"features: {name} is not fitted; fit it to the rows that may be seen first") from error
        except TypeError:  # not made with scikit-learn's base classes: it cannot be asked
            return

    def transform(self, rows: pa.Table | Matrix | Tensor, where: str = "rows") -> Matrix:
        """Return the features of rows in single precision.

        Of a table, a transformer that was fitted to a data frame is given one with its columns, any other an array with
        all columns. Features without a table are given as they are.
        """
        given = self._given(rows, where) if isinstance(rows, pa.Table) else rows
        given = given.numpy() if isinstance(given, Tensor) else given
        try:
            found = self.transformer.transform(given)
        except (TypeError, ValueError, LookupError) as error:
            name = type(self.transformer).__name__
            raise InputError(f"{where}: features: {name} cannot transform these rows ({error})") from error
        found = sp.csr_array(found, dtype=np.float32) if sp.issparse(found) else np.asarray(found, dtype=np.float32)
        if found.ndim != 2 or found.shape[0] != _length(rows):
            raise InputError(
                f"{where}: features: one row of features per node is needed ({_length(rows)}), got shape {found.shape}"
            )
        return found

    def _given(self, rows: pa.Table, where: str) -> Any:
        names = getattr(self.transformer, "feature_names_in_", None)
        if names is None:
            return np.column_stack([column.to_numpy() for column in rows.columns])
        if missing := [str(name) for name in names if name not in rows.column_names]:
            raise InputError(f"{where}: column {missing[0]!r}, which the transformer was fitted to, is not there")
        return rows.select([str(name) for name in names]).to_pandas()


def _length(rows: Any) -> int:
    return rows.num_rows if isinstance(rows, pa.Table) else rows.shape[0]
