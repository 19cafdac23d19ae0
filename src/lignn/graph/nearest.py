"""Nearest rows of a table, by its prepared columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lignn.errors import InputError
from lignn.graph.links import NEAREST

LARGEST = 100_000
"""Rows among which the search is exact and quick enough; above, nothing is searched."""


def pairs(table: pa.Table, k: int, where: str, searched: np.ndarray | None = None) -> np.ndarray:
    """Return rows and their nearest ones as pairs of numbers, 2×E, each pair once.

    Columns are prepared as for a model, see `Preparation`, and distances are Euclidean.

    Args:
        table: one row per node.
        k: nearest rows of a row, at most all others.
        where: name of the table, for errors.
        searched: mask of the rows whose nearest ones are searched; the preparation is learned from the others. None:
            all rows, from all of which it is learned.
    """
    from sklearn.neighbors import NearestNeighbors

    from lignn.features import Preparation  # both are slow to import

    n = table.num_rows
    if n > LARGEST:
        raise InputError(
            f"--link {NEAREST}: {where} has {n:,} rows, and nearest rows are searched among at most {LARGEST:,}; name "
            "columns to link instead, lignn inspect proposes some"
        )
    learned_from = None if searched is None else ~searched
    x = Preparation.fit(table, learned_from, where).transform(table, where)
    rows = np.arange(n) if searched is None else np.flatnonzero(searched)
    k = min(k, n - 1)
    if k < 1 or not x.shape[1]:
        return np.empty((2, 0), np.int64)
    near = NearestNeighbors(n_neighbors=k + 1).fit(x).kneighbors(x[rows], return_distance=False)
    itself = near == rows[:, None]
    itself[~itself.any(1), -1] = True  # of many equal rows, the row itself need not be among the nearest
    found = np.stack([rows.repeat(k), near[~itself]])
    return np.unique(np.sort(found, axis=0), axis=1)
