"""The arrays of a store with one row per node: features, labels, masks and ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from lignn.errors import InputError
from lignn.store.layout import Writer, write_array
from lignn.store.source import Nodes

_ROWS = 2**16
"""Rows of features that are copied at a time."""


def write_nodes(folder: Path, nodes: Nodes, order: np.ndarray) -> dict[str, Any]:
    """Write everything about the nodes in the order of the store; return the entries of the manifest."""
    rows = {**({} if nodes.y is None else {"y": nodes.y}), **nodes.masks, **nodes.more}
    arrays = {name: write_array(folder, name, array[order]) for name, array in rows.items()}
    if nodes.ids is not None:
        arrays |= _write_ids(folder, nodes.ids, order)
    if sp.issparse(nodes.x):
        x = nodes.x[order]
        parts = {"x_data": x.data, "x_indices": x.indices.astype(np.int32), "x_indptr": x.indptr.astype(np.int64)}
        arrays |= {name: write_array(folder, name, array) for name, array in parts.items()}
    elif nodes.x is not None:
        arrays["x"] = _write_features(folder, nodes.x, order)
    if nodes.preparation is not None:
        for group, learned in nodes.preparation.state()[1].items():
            named = {f"preparation.{group}.{name}": array for name, array in learned.items()}
            arrays |= {name: write_array(folder, name, array) for name, array in named.items()}
    return arrays


def _write_features(folder: Path, x: np.ndarray, order: np.ndarray) -> dict[str, Any]:
    double = x.dtype.kind == "f" and x.dtype.itemsize == 8
    writer = Writer(folder, "x", np.float64 if double else np.float32, x.shape[1:])
    for first in range(0, len(order), _ROWS):
        rows = order[first : first + _ROWS]
        sorter = np.argsort(rows)  # reading a file in ascending order is quicker
        block = np.empty((len(rows), *x.shape[1:]), writer.dtype)
        block[sorter] = x[rows[sorter]]
        if not np.isfinite(block).all():
            row, feature = np.argwhere(~np.isfinite(block))[0]
            raise InputError(f"features: feature {feature} of node {rows[row]} is not a finite number")
        writer.append(block)
    return writer.entry()


def _write_ids(folder: Path, ids: pa.Array, order: np.ndarray) -> dict[str, Any]:
    ids = ids.cast(pa.large_binary()).take(pa.array(order))
    offsets = np.frombuffer(ids.buffers()[1], np.int64)[ids.offset : ids.offset + len(ids) + 1]
    content = np.frombuffer(ids.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    parts = {"id_offsets": offsets - offsets[0], "id_bytes": content}
    return {name: write_array(folder, name, array) for name, array in parts.items()}
