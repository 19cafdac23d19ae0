"""Names of nodes, classes and features: their checks, and the order of the classes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lignn.errors import GraphError


def sorted_classes(names: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct class names in order: integers by value (2 before 10), then texts alphabetically."""
    return tuple(sorted(set(names), key=_sort_key))


def _sort_key(name: str) -> tuple[bool, int, str]:
    integer = re.fullmatch(r"-?\d{1,18}", name, re.ASCII)
    return not integer, int(name) if integer else 0, name


def class_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the classes as a tuple; raise if two are equal."""
    names = tuple(str(name) for name in names)
    repeated = [name for number, name in enumerate(names) if name in names[:number]]
    if repeated:
        raise GraphError(f"class_names: two classes are named {repeated[0]!r}")
    return names


def feature_names(names: Sequence[str], num_features: int) -> tuple[str, ...]:
    """Return the names of the features as a tuple; raise if two are equal or if there are too few or too many."""
    names = tuple(str(name) for name in names)
    if len(names) != num_features:
        raise GraphError(f"feature_names: one name per feature is needed ({num_features}), got {len(names)}")
    if len(set(names)) < num_features:
        repeated = next(name for name in names if names.count(name) > 1)
        raise GraphError(f"feature_names: two features are named {repeated!r}")
    return names


def node_ids(ids: Any, num_nodes: int) -> np.ndarray:
    """Return the ids of the nodes as a NumPy string array; raise if two are equal."""
    try:
        ids = np.asarray(ids, dtype=np.dtypes.StringDType())
    except (ValueError, TypeError) as error:
        raise GraphError(f"node_ids: texts are needed ({error})") from error
    if ids.shape != (num_nodes,):
        raise GraphError(f"node_ids: one id per node is needed ({num_nodes} nodes), got shape {ids.shape}")
    order = np.argsort(ids, kind="stable")
    repeated = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if len(repeated):
        first, second = order[repeated[0]], order[repeated[0] + 1]
        raise GraphError(f"node_ids: {str(ids[first])!r} is the id of node {first} and of node {second}")
    return ids
