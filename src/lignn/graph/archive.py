"""Graphs as `.npz` files of plain arrays; nothing is unpickled.

Keys: `edge_index` (2×E), and if the graph has them: features as `x` (dense) or as `x_data`, `x_indices`, `x_indptr`,
`x_shape` (CSR), `y` (n or n×c), `train_mask`, `val_mask`, `test_mask` (n or n×runs), `edge_weight`, `num_nodes`,
`node_ids`, `class_names`, `feature_names`, `edge_type` (E), `edge_types`, `time` (n), `group` (n), `value_of` (n), and
`table` and `edge_table`: the columns of the nodes and of the edges, as the bytes of Arrow's file format.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch

from lignn.atomic import whole_file
from lignn.errors import InputError, TableError, did_you_mean
from lignn.graph import files
from lignn.graph.graph import Graph
from lignn.graph.split import PARTS, Split

if TYPE_CHECKING:
    import pyarrow as pa

    from lignn.graph.carried import EdgeTable

_CSR = ("x_data", "x_indices", "x_indptr", "x_shape")
_MASKS = tuple(f"{part}_mask" for part in PARTS)
_INTEGERS, _NUMBERS, _TEXTS, _MASK = "iu", "fiub", "Uiu", "b"
_ARRAYS: dict[str, tuple[str, tuple[int, ...]]] = {
    "edge_index": (_INTEGERS, (2,)),
    "edge_weight": (_NUMBERS, (1,)),
    "x": (_NUMBERS, (2,)),
    "x_data": (_NUMBERS, (1,)),
    "x_indices": (_INTEGERS, (1,)),
    "x_indptr": (_INTEGERS, (1,)),
    "x_shape": (_INTEGERS, (1,)),
    "y": (_NUMBERS, (1, 2)),
    "num_nodes": (_INTEGERS, (0,)),
    "node_ids": (_TEXTS, (1,)),
    "class_names": (_TEXTS, (1,)),
    "feature_names": (_TEXTS, (1,)),
    "edge_type": (_INTEGERS, (1,)),
    "edge_types": (_TEXTS, (1,)),
    "time": (_NUMBERS, (1,)),
    "group": (_INTEGERS, (1,)),
    "value_of": (_INTEGERS, (1,)),
    "table": (_INTEGERS, (1,)),
    "edge_table": (_INTEGERS, (1,)),
    **dict.fromkeys(_MASKS, (_MASK, (1, 2))),
}
"""The allowed types of each array (NumPy's letters for kinds of types) and its allowed numbers of dimensions."""


def read(path: Path) -> Graph:
    """Read the graph in the file `path`; its name is the name of the file."""
    arrays = files.read_npz(path)
    unknown = [key for key in arrays if key not in _ARRAYS]
    if unknown:
        raise TableError(f"{path}: unknown array {unknown[0]!r}; {did_you_mean(unknown[0], _ARRAYS)}")
    if "edge_index" not in arrays:
        raise TableError(f"{path}: the array 'edge_index' is missing")
    for key, array in arrays.items():
        _check(path, key, array)
    for group in (_CSR, _MASKS):
        missing = [key for key in group if key not in arrays]
        if 0 < len(missing) < len(group):
            raise TableError(f"{path}: the array {missing[0]!r} is missing; {', '.join(group)} must be given together")
    if "x" in arrays and "x_data" in arrays:
        raise TableError(f"{path}: features both as 'x' and as 'x_data'; keep one of them")
    try:
        return Graph(
            arrays["edge_index"].astype(np.int64),
            x=_csr(arrays) if "x_data" in arrays else _floats(arrays.get("x")),
            y=_labels(arrays.get("y")),
            edge_weight=_floats(arrays.get("edge_weight")),
            num_nodes=int(arrays["num_nodes"]) if "num_nodes" in arrays else None,
            node_ids=_texts(arrays.get("node_ids")),
            class_names=_texts(arrays.get("class_names")),
            splits=_splits(arrays) if _MASKS[0] in arrays else (),
            name=files.valid_text(path.stem),
            feature_names=_texts(arrays.get("feature_names")),
            table=None if "table" not in arrays else _table("the array 'table'", arrays["table"]),
            edge_type=_labels(arrays.get("edge_type")),
            edge_types=_texts(arrays.get("edge_types")),
            time=_floats(arrays.get("time")),
            group=_labels(arrays.get("group")),
            value_of=_labels(arrays.get("value_of")),
            edge_table=None if "edge_table" not in arrays else _edge_table(arrays["edge_table"]),
        )
    except InputError as error:
        raise type(error)(f"{path}: {error}") from error


def write(graph: Graph, path: Path) -> None:
    """Write `graph` to the file `path`, completely or not at all."""
    with whole_file(path) as temporary:
        np.savez_compressed(temporary, **_arrays(graph))


def fingerprint(graph: Graph) -> str:
    """Return the SHA-256 of the graph's content; its name is not included."""
    digest = hashlib.sha256()
    for key, value in _arrays(graph).items():
        array = np.ascontiguousarray(value)
        digest.update(f"{key} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _arrays(graph: Graph) -> dict[str, Any]:
    """Return the arrays of the file, by key."""
    arrays: dict[str, Any] = {"edge_index": graph.edge_index, "num_nodes": graph.num_nodes}
    arrays |= {"y": graph.y, "edge_weight": graph.edge_weight}
    if isinstance(graph.x, sp.csr_array):
        arrays |= dict(zip(_CSR, (graph.x.data, graph.x.indices, graph.x.indptr, graph.x.shape), strict=True))
    else:
        arrays["x"] = graph.x
    arrays |= {key: _fixed_width(getattr(graph, key)) for key in ("node_ids", "class_names", "feature_names")}
    arrays |= {"edge_type": graph.edge_type, "edge_types": _fixed_width(graph.edge_types)}
    arrays |= {"time": graph.time, "group": graph.group, "value_of": graph.value_of}
    if graph.table is not None:
        arrays["table"] = np.frombuffer(table_bytes(graph.table), np.uint8)
    if graph.edge_table is not None:
        arrays["edge_table"] = np.frombuffer(table_bytes(graph.edge_table.as_table()), np.uint8)
    for key, part in zip(_MASKS, PARTS, strict=True):
        if graph.splits:
            masks = torch.stack([getattr(split, part) for split in graph.splits], 1)
            arrays[key] = masks[:, 0] if len(graph.splits) == 1 else masks
    return {key: value for key, value in arrays.items() if value is not None}


def _check(path: Path, key: str, array: np.ndarray) -> None:
    kinds, dimensions = _ARRAYS[key]
    if array.dtype.kind not in kinds or array.ndim not in dimensions:
        wanted = {_INTEGERS: "integers", _NUMBERS: "numbers", _TEXTS: "texts or integers", _MASK: "a boolean mask"}[
            kinds
        ]
        raise TableError(
            f"{path}: the array {key!r} must hold {wanted} in {' or '.join(map(str, dimensions))} dimensions, "
            f"it holds {array.dtype} in {array.ndim}"
        )


def _floats(array: np.ndarray | None) -> np.ndarray | None:
    return None if array is None else files.as_floats(array)


def _labels(array: np.ndarray | None) -> np.ndarray | None:
    if array is None:
        return None
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64, copy=False)


def _csr(arrays: dict[str, np.ndarray]) -> sp.csr_array:
    parts = {key.removeprefix("x_"): arrays[key] for key in _CSR}
    try:
        return files.sparse_matrix("csr", parts, parts["shape"].tolist())
    except (ValueError, TypeError) as error:
        raise TableError(f"x_data, x_indices, x_indptr and x_shape do not form a CSR matrix: {error}") from error


def read_table(path: Path) -> pa.Table:
    """Return the table in a file of Arrow's format, as `table_bytes` returns its content."""
    with files.open_file(path) as file:
        return _table(f"{path}: the table", np.frombuffer(file.read(), np.uint8))


def _table(what: str, content: np.ndarray) -> pa.Table:
    import pyarrow as pa  # slow to import, and most files have no table

    try:
        table = pa.ipc.open_file(pa.py_buffer(content.astype(np.uint8).tobytes())).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{what} is damaged ({error})") from error
    return table


def _edge_table(content: np.ndarray) -> EdgeTable:
    from lignn.graph.carried import EdgeTable

    return EdgeTable.of_table(_table("the array 'edge_table'", content))


def table_bytes(table: pa.Table) -> pa.Buffer:
    """Return a table in Arrow's file format."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue()


def _splits(arrays: dict[str, np.ndarray]) -> list[Split]:
    masks = [arrays[key] if arrays[key].ndim == 2 else arrays[key][:, None] for key in _MASKS]
    if len({mask.shape for mask in masks}) > 1:
        raise TableError(f"the masks have different shapes: {', '.join(str(mask.shape) for mask in masks)}")
    return [Split(*(torch.from_numpy(mask[:, run].copy()) for mask in masks)) for run in range(masks[0].shape[1])]


def _texts(array: np.ndarray | None) -> list[str] | None:
    return None if array is None else [str(text) for text in array.tolist()]


def _fixed_width(texts: Any) -> np.ndarray | None:
    """Return texts in NumPy's fixed-width type, the only one stored without pickling; it drops a NUL at the end."""
    if texts is None:
        return None
    texts = [str(text) for text in texts]
    for text in texts:
        if text.endswith("\0"):
            raise TableError(f"the name {text!r} ends in a NUL character, which an .npz file cannot store; rename it")
    return np.array(texts, dtype=np.str_)
