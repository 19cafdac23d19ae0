"""Bag-of-words features as the paper's runs had them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from lignn.errors import DatasetError
from lignn.graph import Graph


def bag_of_words(graph: Graph) -> sp.csr_array:
    """The graph's features as a sparse matrix."""
    if graph.x is None:
        raise DatasetError(f"the file of {graph.name} has no features; download it again or name another folder")
    return graph.x if isinstance(graph.x, sp.csr_array) else sp.csr_array(graph.x.numpy())


def row_normalised(x: sp.csr_array) -> sp.csr_array:
    """Every row divided by its sum; empty rows stay empty."""
    total = x.sum(1, dtype=np.float64)
    scale = np.divide(1, total, out=np.zeros_like(total), where=total != 0)
    data = x.data * np.repeat(scale, np.diff(x.indptr))
    return sp.csr_array((data.astype(x.dtype), x.indices, x.indptr), shape=x.shape)


def binary(x: sp.csr_array) -> sp.csr_array:
    """One for every word that occurs, however often."""
    return sp.csr_array(((x.data > 0).astype(x.dtype), x.indices, x.indptr), shape=x.shape)
