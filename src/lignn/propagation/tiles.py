"""The entries of a well-filled matrix in tiles, so that a product gathers from the first-level cache.

A row of bag-of-words features may have hundreds of entries. Row by row, a product with 64 columns gathers each of their
sources from the second-level cache or from further away. In a tile, 64 rows gather from the same few sources, which
stay in the first-level cache: a product with the features of Photo, a third of whose entries are not zero, then takes
little more than half of the time.

A row is stored in several parts, one for each tile, and its parts are added up in the order of the tiles. So the sum of
a row still does not depend on threads. Whether a matrix is tiled is decided by counts of its entries alone, before its
first product: the same data has the same bits, also after a training is resumed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

ROWS = 64  # of a tile; their sums stay in the second-level cache
BYTES = 24 << 10  # of the dense matrix that a tile gathers from: three quarters of a first-level cache
FILLED = 8  # mean number of entries of a row in a tile; with fewer, reading and writing sums takes longer than it saves


@dataclass(frozen=True, eq=False)
class Tiles:
    """A matrix in tiles: the parts of its rows, first by 64 rows, then by tile.

    Attributes:
        arrays: where each part starts, column of each entry, the entries, and the row that each part belongs to.
        together: number of parts of 64 rows.
    """

    arrays: tuple[Tensor, Tensor, Tensor, Tensor]
    together: int


def tiled(indptr: Tensor, indices: Tensor, values: Tensor, columns: int, row_bytes: int) -> Tiles | None:
    """Return a matrix in tiles; None if that would not make products faster.

    Args:
        indptr: row pointers of the matrix.
        indices: column of each entry.
        values: the entries.
        columns: number of columns of the matrix.
        row_bytes: bytes of a row of the dense matrix that one pass reads.
    """
    rows, tile_columns = len(indptr) - 1, BYTES // row_bytes
    count = -(-columns // tile_columns)
    if count == 1 or len(values) < FILLED * rows * count:
        return None
    row = np.repeat(np.arange(rows), np.diff(indptr.numpy()))
    # Part k of tile t of the group g of rows is row (g·tiles + t)·64 + k; the last group may have fewer than 64.
    targets = np.arange(rows)
    size = np.minimum(ROWS, rows - targets // ROWS * ROWS)
    start, offset = targets // ROWS * ROWS * count, targets % ROWS
    part = start[row] + indices.numpy() // tile_columns * size[row] + offset[row]
    order = np.empty(rows * count, np.int64)
    for tile in range(count):
        order[start + tile * size + offset] = targets
    # SciPy sorts by rows in linear time, and keeps the order of the columns.
    matrix = sp.coo_array((values.numpy(), (part, indices.numpy())), shape=(rows * count, columns)).tocsr()
    index = indices.numpy().dtype
    arrays = matrix.indptr.astype(index), matrix.indices.astype(index), matrix.data, order.astype(index)
    first, second, third, fourth = (torch.from_numpy(array) for array in arrays)
    return Tiles((first, second, third, fourth), ROWS * count)
