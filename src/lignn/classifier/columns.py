"""The features of another graph in the order that a model knows them, matched by name where both have names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lignn.errors import InputError
from lignn.graph import Graph


def align(graph: Graph, model: Graph) -> Graph:
    """`graph` with the features of `model`, the graph that a model was fitted on."""
    if graph.feature_names and model.feature_names:
        order = _order(graph.feature_names, model.feature_names, graph.name)
        x: Any = graph.x
        return graph.replace(x=x[:, order], feature_names=model.feature_names)
    if graph.num_features != model.num_features:
        wanted = f"the model was trained with {model.num_features}"
        raise InputError(f"{graph.name} has {graph.num_features} features a node, {wanted}")
    return graph


def align_table(features: Any, model: Graph) -> Any:
    """Features of new nodes; a data frame's columns are matched by name."""
    names = getattr(features, "columns", None)
    if names is None or not model.feature_names:
        return features
    order = _order([str(name) for name in names], model.feature_names, "features")
    return features[[names[column] for column in order]]


def _order(theirs: Sequence[str], ours: Sequence[str], where: str) -> list[int]:
    """Where each of `ours` is in `theirs`."""
    number, wanted = {name: column for column, name in enumerate(theirs)}, set(ours)
    missing = [f"{name!r}, a feature of the model, is missing" for name in ours if name not in number]
    unknown = [f"{name!r} is no feature of the model" for name in theirs if name not in wanted]
    if missing or unknown:
        wrong = ", and ".join(missing[:1] + unknown[:1])
        raise InputError(f"{where}: {wrong}; the columns must be those it was trained with, in any order")
    return [number[name] for name in ours]
