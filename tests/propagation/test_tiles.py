"""When the entries of a matrix are stored in tiles, and that products do not change by more than rounding."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from lignn.propagation import SparseMatrix, tiles


def filled(rows, columns, density, dtype=torch.float32):
    matrix = sp.random_array((rows, columns), density=density, rng=np.random.default_rng(0))
    return SparseMatrix.from_scipy(matrix, dtype)


def dense(rows, width, dtype=torch.float32):
    return torch.rand(rows, width, generator=torch.Generator().manual_seed(0), dtype=dtype)


@pytest.mark.parametrize(
    ("rows", "columns", "width", "dtype"),
    [
        (128, 500, 64, torch.float32),
        (150, 500, 64, torch.float32),  # 22 rows in the last group
        (30, 700, 64, torch.float64),  # less than a group
        (300, 1300, 10, torch.float64),
        (100, 200, 150, torch.float32),  # two passes over the columns
    ],
)
def test_product_in_tiles_is_the_product(rows, columns, width, dtype):
    matrix = filled(rows, columns, 0.5, dtype)
    x = dense(columns, width, dtype)
    expected = matrix.to_scipy().astype(np.float64) @ x.double().numpy()
    out = matrix @ x
    assert matrix.product._tiles
    np.testing.assert_allclose(out, expected, rtol=1e-6 if dtype == torch.float32 else 1e-13)
    assert torch.equal(matrix @ x, out)  # nothing is left of the last product


def test_product_in_tiles_has_the_same_bits_for_any_number_of_threads(threads):
    matrix, x = filled(1000, 400, 0.3), dense(400, 64)
    products = []
    for count in (1, 2, 3, 7):
        threads(count)
        products.append(matrix @ x)
    assert matrix.product._tiles
    assert all(torch.equal(product, products[0]) for product in products)


def test_gradient_of_a_product_in_tiles():
    matrix, x = filled(200, 300, 0.5, torch.float64), dense(300, 64, torch.float64).requires_grad_()
    weight = dense(200, 64, torch.float64)
    (matrix @ x * weight).sum().backward()
    assert matrix.T.product._tiles
    torch.testing.assert_close(x.grad, matrix.to_dense().T @ weight)


def test_every_entry_is_in_the_tile_of_its_columns():
    matrix = filled(150, 500, 0.5)
    stored = tiles.tiled(*matrix._arrays, 500, row_bytes=tiles.BYTES // 96)
    indptr, indices, values, order = (array.numpy() for array in stored.arrays)
    assert stored.together == 6 * tiles.ROWS
    parts = sp.csr_array((values, indices, indptr), shape=(len(order), 500)).tocoo()
    again = sp.csr_array((parts.data, (order[parts.row], parts.col)), shape=matrix.shape)
    assert (again != matrix.to_scipy()).nnz == 0
    tile = [set(indices[start:stop] // 96) for start, stop in pairwise(indptr)]
    group, place = np.divmod(np.arange(len(order)), stored.together)
    size = np.where(group == 2, 150 - 128, tiles.ROWS)
    assert all(found <= {expected} for found, expected in zip(tile, place // size, strict=True))
    assert np.array_equal(order // tiles.ROWS, group)


def test_only_lasting_and_well_filled_matrices_are_tiled():
    x = dense(2000, 64)
    sparse, well_filled = filled(1000, 2000, 0.05), filled(1000, 2000, 0.1)
    square, changed = filled(2000, 2000, 0.1), well_filled.with_values(well_filled.values * 2)
    for matrix in (sparse, square, changed, well_filled):
        matrix @ x
    assert [bool(m.product._tiles) for m in (sparse, square, changed, well_filled)] == [False, False, False, True]
    narrow = filled(1000, 90, 0.5)  # the dense matrix fits in the first-level cache
    narrow @ dense(90, 64)
    assert not narrow.product._tiles
