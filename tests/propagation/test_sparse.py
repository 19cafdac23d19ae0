import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from lignn.errors import InputError
from lignn.propagation import SparseMatrix
from lignn.propagation.sparse import _multiply_elsewhere

DTYPES = [torch.float32, torch.float64]
WIDTHS = [0, 1, 2, 3, 5, 8, 40, 63, 64, 128, 129, 300]


def random_matrix(rows=40, columns=30, density=0.2, dtype=torch.float64, seed=0):
    matrix = sp.random_array((rows, columns), density=density, rng=np.random.default_rng(seed), format="lil")
    matrix[3, :] = 0  # an empty row,
    matrix[5, :] = 1  # a full one
    matrix[:, 7] = 0  # and an empty column
    return SparseMatrix.from_scipy(matrix, dtype)


def random_dense(*shape, dtype=torch.float64, seed=1):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_product_equals_the_dense_one(width, dtype):
    matrix, dense = random_matrix(dtype=dtype), random_dense(30, width, dtype=dtype)
    torch.testing.assert_close(matrix @ dense, matrix.to_dense() @ dense)


def test_product_with_a_vector_is_a_vector():
    matrix, vector = random_matrix(), random_dense(30)
    torch.testing.assert_close(matrix @ vector, matrix.to_dense() @ vector)


@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[::2], lambda x: x[:, :1].expand(60, 4)])
def test_dense_matrix_may_have_any_strides(view):
    dense = view(random_dense(60, 30))
    matrix = random_matrix(columns=dense.shape[0])
    torch.testing.assert_close(matrix @ dense, matrix.to_dense() @ dense)


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0), (4, 4)])
def test_matrix_without_entries_gives_zeros(shape):
    matrix = SparseMatrix.from_scipy(sp.csr_array(shape))
    assert torch.equal(matrix @ torch.ones(shape[1], 3, dtype=torch.float64), torch.zeros(shape[0], 3).double())
    assert matrix.T.shape == shape[::-1]


def test_entries_given_twice_are_summed_and_sorted():
    matrix = SparseMatrix.from_scipy(sp.coo_array(([1.0, 2, 3], ([0, 0, 0], [2, 1, 2])), shape=(1, 3)))
    assert matrix.indices.tolist() == [1, 2]
    assert matrix.values.tolist() == [2.0, 4.0]


def test_first_and_second_gradient_equal_finite_differences():
    matrix, dense = random_matrix(12, 9), random_dense(9, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: matrix @ x, dense)
    assert torch.autograd.gradgradcheck(lambda x: (matrix @ x) ** 3, dense)


def test_no_tape_under_no_grad_and_inference_mode():
    matrix, dense = random_matrix(), random_dense(30, 4).requires_grad_()
    with torch.no_grad():
        assert not (matrix @ dense).requires_grad
    with torch.inference_mode():
        assert (matrix @ dense).is_inference()
    assert "_transposed" not in vars(matrix)  # not needed, so not built


def test_operator_passes_the_checks_of_pytorch():
    matrix, dense = random_matrix(), random_dense(30, 4).requires_grad_()
    torch.library.opcheck(torch.ops.lignn.spmm.default, (*matrix._arrays, dense, list(matrix.T._arrays)))
    torch.library.opcheck(torch.ops.lignn.spmm.default, (*matrix._arrays, dense.detach(), []))
    with pytest.raises(InputError, match="transposed"):
        torch.ops.lignn.spmm(*matrix._arrays, dense, [])


def test_other_devices_get_the_same_from_torch_sparse():
    matrix, dense = random_matrix(), random_dense(30, 4)
    torch.testing.assert_close(_multiply_elsewhere(*matrix._arrays, dense, ()), matrix @ dense)


def test_transpose_is_built_once_and_is_the_matrix_itself_if_symmetric():
    matrix = random_matrix()
    assert matrix.T is matrix.T
    assert matrix.T.T is matrix
    assert torch.equal(matrix.T.to_dense(), matrix.to_dense().T)
    symmetric = SparseMatrix.from_scipy(sp.diags_array([[2.0, 3], [1.0, 4, 5], [2.0, 3]], offsets=[-1, 0, 1]))
    assert symmetric.T is symmetric


@pytest.mark.parametrize("matrix", [random_matrix(), SparseMatrix.from_scipy(sp.eye_array(30))])
def test_other_values_at_the_same_positions(matrix):
    values, dense = random_dense(matrix.nnz), random_dense(30, 4).requires_grad_()
    other = matrix.with_values(values)
    csr = matrix.to_scipy()
    wanted = torch.from_numpy(sp.csr_array((values.numpy(), csr.indices, csr.indptr), shape=csr.shape).toarray())
    assert torch.equal(other.to_dense(), wanted)
    assert torch.equal(other.T.to_dense(), wanted.T)
    assert torch.equal(other.T.T.to_dense(), wanted)
    assert torch.equal(other.with_values(2 * values).T.to_dense(), 2 * wanted.T)
    torch.testing.assert_close(other @ dense, wanted @ dense)
    grad = random_dense(matrix.shape[0], 4, seed=2)
    torch.testing.assert_close(torch.autograd.grad(other @ dense, dense, grad)[0], wanted.T @ grad)
    with pytest.raises(InputError, match="entries of type"):
        matrix.with_values(values[1:])


def test_conversions_keep_the_numbers():
    matrix = random_matrix()
    assert (matrix.to_scipy() != SparseMatrix.from_scipy(matrix.to_scipy()).to_scipy()).nnz == 0
    assert torch.equal(matrix.torch_sparse.to_dense(), matrix.to_dense())
    assert torch.equal(matrix.to(torch.float32).values, matrix.values.float())
    assert matrix.to(torch.float64) is matrix


def test_matrix_is_independent_of_the_scipy_matrix_it_came_from():
    source = sp.csr_array(np.eye(3))
    matrix = SparseMatrix.from_scipy(source)
    source.data[:] = 7
    assert matrix.values.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("dense", "message"),
    [
        (torch.ones(31, 2, dtype=torch.float64), r"40 × 30 matrix can multiply a tensor of 30 rows.*\(31, 2\)"),
        (torch.ones(2, 30, 2, dtype=torch.float64), r"\(2, 30, 2\)"),
        (torch.ones(30, 2), r"matrix is torch.float64 and the tensor torch.float32"),
    ],
)
def test_product_that_does_not_fit_is_refused(dense, message):
    with pytest.raises(InputError, match=message):
        random_matrix() @ dense


@pytest.mark.parametrize(
    ("indptr", "indices", "values", "message"),
    [
        ([0, 1, 2], [0, 3], [1.0, 1.0], "column indices from 0 to 3 do not fit in a matrix of 3 columns"),
        ([0, 1, 2], [0, -1], [1.0, 1.0], "column indices from -1"),
        ([0, 2, 1], [0, 1], [1.0, 1.0], "rise from 0 to the number of entries, 2"),
        ([0, 1], [0], [1.0], "2 rows needs 3 row pointers"),
        ([0, 1, 2], [0], [1.0, 1.0], "as many indices as values"),
        ([0, 1, 2], [0, 1], [1, 1], "float32 or float64, not torch.int64"),
        ([0.0, 1.0, 2.0], [0, 1], [1.0, 1.0], "must both be int32 or both int64"),
    ],
)
def test_arrays_that_are_no_matrix_are_refused(indptr, indices, values, message):
    with pytest.raises(InputError, match=message):
        SparseMatrix(torch.tensor(indptr), torch.tensor(indices), torch.tensor(values), (2, 3))


def test_importing_the_package_imports_neither_numba_nor_pyg():
    code = "import sys, lignn.propagation; print([m for m in ('numba', 'torch_geometric') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
