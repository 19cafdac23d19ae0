"""Types of edges: their numbers by name, and weights by type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch

from lignn.errors import ConfigError, InputError, did_you_mean
from lignn.graph.graph import Graph


def numbers(edge_type: Any, names: Sequence[str]) -> np.ndarray:
    """Return types that are given as names or as numbers as numbers; `names` are those of the types."""
    given = np.asarray(edge_type)
    if given.dtype.kind not in "UTO":
        return given
    place = {name: number for number, name in enumerate(names)}
    for name in map(str, given.flat):
        if name not in place:
            raise InputError(f"edge_type: {name!r} is no type of the graph's edges; {did_you_mean(name, names)}")
    return np.array([place[str(name)] for name in given.flat], np.int64).reshape(given.shape)


def weighted(graph: Graph, weights: Mapping[str, float]) -> Graph:
    """Return the graph with the weight of each edge multiplied by that of its type.

    Args:
        graph: the graph; its edges have types.
        weights: positive factors by the name of the type; 1 for types that are not named. A factor of 0 is refused: it
            would leave nodes without evidence that the graph says they have.
    """
    if graph.edge_type is None or graph.edge_types is None:
        raise InputError(f"type_weights: the edges of {graph.name} have no types")
    if not isinstance(weights, Mapping):
        raise ConfigError(f"type_weights: weights by the name of the type are needed, got {weights!r}")
    factors = torch.ones(len(graph.edge_types), dtype=torch.float64)
    for name, weight in weights.items():
        if name not in graph.edge_types:
            advice = did_you_mean(str(name), graph.edge_types)
            raise ConfigError(f"type_weights: {name!r} is no type of the edges of {graph.name}; {advice}")
        if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 < weight < math.inf:
            raise ConfigError(f"type_weights: {name}: a number above 0 is needed, got {weight!r}")
        factors[graph.edge_types.index(name)] = float(weight)
    by_edge = factors[graph.edge_type]
    return graph.replace(edge_weight=by_edge if graph.edge_weight is None else by_edge * graph.edge_weight)
