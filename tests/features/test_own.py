"""Transformers of the user's own."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from lignn.errors import ConfigError, InputError
from lignn.features import OwnTransformer

TABLE = pa.table({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"], "c": [0, 0, 1]})


def test_fitted_to_a_data_frame_it_is_given_one_with_its_columns():
    pytest.importorskip("pandas")
    transformer = ColumnTransformer([("n", StandardScaler(), ["a"]), ("o", OneHotEncoder(), ["b"])])
    transformer.fit(TABLE.to_pandas()[["b", "a"]])
    x = OwnTransformer(transformer).transform(TABLE)
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, transformer.transform(TABLE.to_pandas()), rtol=1e-6)
    with pytest.raises(InputError, match="new: column 'b', which the transformer was fitted to, is not there"):
        OwnTransformer(transformer).transform(TABLE.drop_columns(["b"]), "new")


def test_fitted_to_an_array_it_is_given_all_columns_or_features():
    numbers = TABLE.drop_columns(["b"])
    array = np.array([[1.0, 0], [2.0, 0], [3.0, 1]])
    scaler = StandardScaler().fit(array)
    for rows in (numbers, array, torch.from_numpy(array)):
        np.testing.assert_allclose(OwnTransformer(scaler).transform(rows), scaler.transform(array), rtol=1e-6)


def test_what_cannot_be_used():
    with pytest.raises(ConfigError, match="features: PCA is not fitted"):
        OwnTransformer(PCA())
    fitted = PCA(1).fit(np.eye(3))
    with pytest.raises(InputError, match=r"rows: features: PCA cannot transform these rows \(X has 2 features"):
        OwnTransformer(fitted).transform(np.zeros((4, 2)))


class Flat:
    def transform(self, rows):
        return np.zeros(len(rows))


def test_one_row_a_node_is_needed():
    with pytest.raises(InputError, match=r"one row of features per node is needed \(4\), got shape \(4,\)"):
        OwnTransformer(Flat()).transform(np.zeros((4, 2)))
