"""Bag-of-words features in the forms that the paper's experiments use."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from lignn.errors import DatasetError
from lignn.graph import Graph


def bag_of_words(graph: Graph) -> sp.csr_array:
    """Return the features of `graph` as a sparse matrix."""
    if graph.x is None:
        raise DatasetError(f"the file of {graph.name} has no features; download it again or name another folder")
    return graph.x if isinstance(graph.x, sp.csr_array) else sp.csr_array(graph.x.numpy())


def row_normalised(x: sp.csr_array) -> sp.csr_array:
    """Return `x` with every row divided by its sum; rows that sum to zero become zero."""
    total = x.sum(1, dtype=np.float64)
    scale = np.divide(1, total, out=np.zeros_like(total), where=total != 0)
    data = x.data * np.repeat(scale, np.diff(x.indptr))
    return sp.csr_array((data.astype(x.dtype), x.indices, x.indptr), shape=x.shape)


def binary(x: sp.csr_array) -> sp.csr_array:
    """Return `x` with every positive count replaced by one."""
    return sp.csr_array(((x.data > 0).astype(x.dtype), x.indices, x.indptr), shape=x.shape)
