import numpy as np
import scipy.sparse as sp

from lignn import Graph
from lignn.datasets import stored

X = np.array([[0, 2, 6], [0, 0, 0], [5, 0, 0]], np.float32)


def test_rows_sum_to_one_and_empty_rows_stay_empty() -> None:
    found = stored.row_normalised(sp.csr_array(X))
    np.testing.assert_allclose(found.toarray(), [[0, 0.25, 0.75], [0, 0, 0], [1, 0, 0]])
    assert found.dtype == np.float32


def test_binary() -> None:
    assert np.array_equal(stored.binary(sp.csr_array(X)).toarray(), X > 0)


def test_the_given_matrix_is_not_changed() -> None:
    given = sp.csr_array(X)
    stored.row_normalised(given)
    stored.binary(given)
    assert np.array_equal(given.toarray(), X)


def test_dense_features_become_sparse() -> None:
    graph = Graph([[0], [1]], x=X, y=[0, 1, 0])
    found = stored.bag_of_words(graph)
    assert isinstance(found, sp.csr_array)
    assert found.nnz == 3
    assert np.array_equal(found.toarray(), X)
