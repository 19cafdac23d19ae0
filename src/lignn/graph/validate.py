"""Checks of the parts of a graph: each is converted to one type; errors name the row, edge or node that is wrong."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.errors import DataWarning, GraphError

Features: TypeAlias = Tensor | sp.csr_array

LARGEST_WEIGHT = 1e18
"""Largest weight of an edge; a sum over as many edges as fit into memory is still finite in single precision."""


_UNLIMITED = 2**43
"""Bytes of memory to assume if the system does not tell: more than any machine has."""

_LARGE_CLASS = 1000
"""Class numbers from here on that exceed the number of nodes are names or marks rather than positions in a list."""


def memory() -> int:
    """Return the bytes of memory that this process may have at most."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _UNLIMITED
    return physical if physical > 0 else _UNLIMITED


def check_memory(size: int, what: str, hint: str) -> None:
    """Raise if `size` bytes, the least that `what` needs in any computation, are more than the memory."""
    if size > memory():
        raise GraphError(
            f"{what} are too many: they need {size / 2**30:,.0f} GiB, the memory has {memory() / 2**30:,.0f}; {hint}"
        )


def check_classes(num_nodes: int, num_classes: int) -> None:
    """Raise if an integer for each node and class does not fit into memory."""
    hint = "does the column of labels hold names or numbers instead of classes?"
    check_memory(8 * num_nodes * num_classes, f"{num_classes} classes for {num_nodes} nodes", hint)


def _tensor(value: Any, what: str) -> Tensor:
    """Return `value` as a tensor; NumPy arrays that torch cannot share (read-only, negative strides) are copied."""
    if isinstance(value, np.ndarray) and (not value.flags.writeable or any(stride < 0 for stride in value.strides)):
        value = value.copy()
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise GraphError(f"{what}: numbers in rows of equal length are needed ({error})") from error


def edges(edge_index: Any) -> Tensor:
    """Return `edge_index` as a 2×E integer tensor."""
    edge_index = _tensor(edge_index, "edge_index")
    if edge_index.numel() == 0:
        return torch.empty(2, 0, dtype=torch.int64)
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise GraphError(f"edge_index: shape 2×E is needed (sources, targets), got {tuple(edge_index.shape)}")
    if edge_index.is_floating_point() or edge_index.is_complex() or edge_index.dtype == torch.bool:
        raise GraphError(f"edge_index: integers are needed, got {edge_index.dtype}")
    return edge_index.long()


def count_nodes(edge_index: Tensor, parts: Mapping[str, Any]) -> int:
    """Return the number of nodes in the parts, which must agree; without any, the largest node in an edge + 1."""
    known = {part: _length(value) for part, value in parts.items() if value is not None}
    if len(set(known.values())) > 1:
        raise GraphError(
            "the parts disagree on the number of nodes: " + ", ".join(f"{k} {v}" for k, v in known.items())
        )
    n = next(iter(known.values())) if known else (int(edge_index.max()) + 1 if edge_index.numel() else 0)
    if n < 1:
        raise GraphError("the graph is empty: it has no nodes; give num_nodes for a graph without edges and features")
    check_memory(8 * n, f"{n} nodes", "is the number of nodes, or the end of an edge, wrong?")
    return n


def _length(part: Any) -> int:
    """Return the number of nodes in a part; a sparse matrix has no `len`."""
    if isinstance(part, Integral):
        return int(part)
    return part.shape[0] if sp.issparse(part) else len(part)


def edges_in_range(edge_index: Tensor, num_nodes: int) -> None:
    """Raise if an edge joins a node that does not exist."""
    outside = ((edge_index < 0) | (edge_index >= num_nodes)).any(0).nonzero().flatten()
    if len(outside):
        edge = int(outside[0])
        source, target = edge_index[:, edge].tolist()
        raise GraphError(
            f"edge_index: edge {edge} ({source} → {target}) is outside of the nodes 0 … {num_nodes - 1}"
            + (f" ({len(outside)} such edges)" if len(outside) > 1 else "")
        )


def edge_weights(edge_weight: Any, num_edges: int) -> Tensor:
    """Return the edge weights as finite, non-negative floats."""
    weight = _tensor(edge_weight, "edge_weight")
    weight = weight if weight.dtype in (torch.float32, torch.float64) else weight.float()
    if weight.shape != (num_edges,):
        raise GraphError(f"edge_weight: one weight per edge is needed ({num_edges}), got shape {tuple(weight.shape)}")
    too_large = f"is too large, the largest is {LARGEST_WEIGHT:.0e}"
    for wrong, what in (
        (~weight.isfinite(), "is not finite"),
        (weight < 0, "is negative"),
        (weight > LARGEST_WEIGHT, too_large),
    ):
        if wrong.any():
            edge = int(wrong.nonzero()[0])
            raise GraphError(f"edge_weight: the weight of edge {edge} {what} ({weight[edge].item()})")
    return weight


def edge_types(edge_type: Any, num_edges: int, names: Sequence[str] | None) -> tuple[Tensor, Sequence[str]]:
    """Return the types of the edges as numbers, and their names; without names, their numbers as texts."""
    numbers = _tensor(edge_type, "edge_type")
    if numbers.numel() == 0:
        numbers = numbers.long()
    if numbers.shape != (num_edges,) or numbers.is_floating_point() or numbers.dtype == torch.bool:
        raise GraphError(f"edge_type: a whole number per edge is needed ({num_edges}), got {tuple(numbers.shape)}")
    numbers = numbers.long()
    smallest, largest = (int(numbers.min()), int(numbers.max())) if num_edges else (0, -1)
    count = largest + 1 if names is None else len(names)
    if smallest < 0 or largest >= count:
        raise GraphError(
            f"edge_type: numbers from 0 to {count - 1} are needed, got {smallest if smallest < 0 else largest}"
        )
    names = list(map(str, range(count))) if names is None else list(names)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise GraphError("edge_types: different texts are needed")
    return numbers, names


def node_values(what: str, values: Any, num_nodes: int, dtype: type[np.generic]) -> np.ndarray:
    """Return one number per node as an array of `dtype`."""
    array = np.asarray(values)
    if array.shape != (num_nodes,) or not np.can_cast(array.dtype, dtype, "same_kind"):
        raise GraphError(
            f"{what}: one number per node is needed ({num_nodes}), got {array.dtype} of shape {array.shape}"
        )
    return array.astype(dtype)


def features(x: Any) -> Features:
    """Return the features as a dense float tensor, or as a SciPy CSR array with sorted, unique entries."""
    if isinstance(x, Tensor) and x.layout != torch.strided:
        coo = x.to_sparse_coo().coalesce()
        x = sp.coo_array((coo.values().numpy(), tuple(coo.indices().numpy())), shape=tuple(coo.shape))
    if sp.issparse(x):
        check_memory(4 * x.shape[1], f"{x.shape[1]} columns of x", "is the shape of the matrix wrong?")
        return _sparse_features(sp.csr_array(x))
    dense = _tensor(x, "x")
    if dense.ndim != 2:
        raise GraphError(f"x: one row per node is needed (n×d), got shape {tuple(dense.shape)}")
    dense = dense if dense.dtype in (torch.float32, torch.float64) else dense.float()
    if not dense.isfinite().all():
        row, column = (~dense.isfinite()).nonzero()[0].tolist()
        raise GraphError(f"x: row {row}, column {column} is not finite ({dense[row, column].item()})")
    return dense


def _sparse_features(x: sp.csr_array) -> sp.csr_array:
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float32)
    if not x.has_canonical_format:
        x = x.copy()
        x.sum_duplicates()
    wrong = np.flatnonzero(~np.isfinite(x.data))
    if len(wrong):
        entry = wrong[0]
        row = int(np.searchsorted(x.indptr, entry, side="right")) - 1
        raise GraphError(f"x: row {row}, column {x.indices[entry]} is not finite ({x.data[entry]})")
    return x


def labels(y: Any, num_nodes: int, class_names: Sequence[str] | None) -> tuple[Tensor, Sequence[str] | None]:
    """Return the labels and the class names.

    The labels are class numbers (n, -1 = unlabelled) or 0/1 rows (n×c, a row of -1 = unlabelled). Class numbers without
    names that are far larger than the number of nodes are renumbered, and become the names of the classes that occur.
    """
    y = _tensor(y, "y")
    if len(y) != num_nodes:
        raise GraphError(f"y: one label per node is needed ({num_nodes} nodes), got {len(y)}")
    if y.is_floating_point():
        wrong = ((y != y.round()) | (y.abs() >= 2**53)).reshape(num_nodes, -1).any(1).nonzero()
        if len(wrong):
            node = int(wrong[0])
            raise GraphError(
                "y: class numbers (n) or 0/1 rows (n×c) are needed, -1 means unlabelled; "
                f"node {node} has {y[node].tolist()}"
            )
    if y.ndim == 1:
        y = _class_numbers(y.long(), class_names)
        return (
            _renumbered(y) if class_names is None and int(y.max()) >= max(num_nodes, _LARGE_CLASS) else (y, class_names)
        )
    if y.ndim == 2:
        return _multi_hot(y, class_names), class_names
    raise GraphError(f"y: class numbers (n) or 0/1 rows (n×c) are needed, got shape {tuple(y.shape)}")


def _renumbered(y: Tensor) -> tuple[Tensor, list[str]]:
    """Return the labels with the classes numbered in the order of their old numbers, which become their names."""
    labelled = y >= 0
    classes, numbers = y[labelled].unique(return_inverse=True)
    if len(classes) < 2:
        raise GraphError(_single_class(classes[0].item()))
    message = f"y: the class numbers reach {classes[-1]}, but only {len(classes)} classes occur; they are renumbered"
    advice = "and the numbers become their names; if one means unlabelled, write -1 for it"
    warnings.warn(f"{message}, {advice}", DataWarning, stacklevel=2)
    result = torch.full_like(y, -1)
    result[labelled] = numbers
    return result, [str(number) for number in classes.tolist()]


def _class_numbers(y: Tensor, class_names: Sequence[str] | None) -> Tensor:
    if (y < -1).any():
        node = int((y < -1).nonzero()[0])
        raise GraphError(f"y: node {node} has label {y[node].item()}; classes are numbered from 0, -1 means unlabelled")
    if not (y >= 0).any():
        raise GraphError(f"y: no labels at all, all {len(y)} entries are -1; give y=None for a graph without labels")
    top = int(y.max())
    if class_names is not None and top >= len(class_names):
        node = int(y.argmax())
        raise GraphError(f"y: node {node} has label {top}, but there are only {len(class_names)} class names")
    if (top + 1 if class_names is None else len(class_names)) < 2:
        name = 0 if class_names is None else repr(class_names[0])
        raise GraphError(_single_class(name))
    return y


def _single_class(name: object) -> str:
    return f"labels (y): a single class, every labelled node has label {name}; at least two classes are needed"


def _multi_hot(y: Tensor, class_names: Sequence[str] | None) -> Tensor:
    if not y.shape[1]:
        raise GraphError("y: 0/1 rows need a column for each class, got none")
    unlabelled = (y == -1).all(1)
    wrong = ~(((y == 0) | (y == 1)).all(1) | unlabelled)
    if wrong.any():
        node = int(wrong.nonzero()[0])
        raise GraphError(f"y: the row of node {node} must be all 0/1, or all -1 for unlabelled, got {y[node].tolist()}")
    if unlabelled.all():
        raise GraphError(f"y: no labels at all, all {len(y)} rows are -1; give y=None for a graph without labels")
    if class_names is not None and y.shape[1] != len(class_names):
        raise GraphError(f"y: {y.shape[1]} columns, but {len(class_names)} class names")
    return y.to(torch.int8)


def mask(nodes: Any, num_nodes: int) -> Tensor:
    """Return `nodes` as a boolean mask over the nodes."""
    nodes = _tensor(nodes, "nodes")
    if nodes.dtype != torch.bool or nodes.shape != (num_nodes,):
        raise GraphError(
            f"nodes: a boolean mask of length {num_nodes} is needed, got {nodes.dtype} of shape {tuple(nodes.shape)}"
        )
    return nodes
