"""How much a fit computes, counted in multiplications, so that what starts is the same on every machine."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from lignn.classifier.race.candidates import MOST_COLUMNS, Candidate, Quality
from lignn.graph import Graph

BUDGET: dict[Quality, float] = {"fast": 1e11, "good": 4e11, "best": 4e12}
"""Work of the trials of the first rung; 1e10 is about a second of a core. Stages 0 and 1 start whatever they take."""

_HIDDEN, _EPOCHS, _BACKWARD = 64, 200, 3
_PASSES = {"label_reuse": 3.0, "lignn": 2.0}
"""Passes of an epoch through the network, in units of one that is differentiated."""
_SPARSE = 3.0
"""A multiplication of a sparse product, in units of one of a dense product."""
_OVERHEAD = 2e7
"""What an epoch takes on the smallest graph, in multiplications."""
_ROUNDS, _STEPS = 400, 1500


def work(candidate: Candidate, graph: Graph, known: int) -> float:
    """Return about how many multiplications a fit takes, from the sizes of a graph and the number of known labels."""
    n, edges, classes = graph.num_nodes, graph.num_edges, graph.num_classes
    entries = _entries(graph)
    if candidate.backbone is None:
        columns = max(entries / n, 1.0) * (1 + ("edges" in candidate.uses))
        if candidate.family == "boosted":
            columns = min(columns, MOST_COLUMNS)
            return _ROUNDS * classes * known * columns
        return (_STEPS * classes * known * columns if candidate.family else 100 * edges * classes) + entries
    options = candidate.parameters.get("backbone_options", {})
    layers = options.get("num_layers", 2)
    inner = layers - 2
    one = _SPARSE * (entries * _HIDDEN + edges * (_HIDDEN * (inner + 1) + classes))
    one += n * _HIDDEN * (_HIDDEN * inner + classes)
    if candidate.backbone == "gat":
        one += 8 * _SPARSE * layers * edges * _HIDDEN
    epochs = candidate.trial.get("max_epochs", _EPOCHS)
    return epochs * _PASSES.get(candidate.method, 1.0) * (_OVERHEAD + _BACKWARD * one)


def _entries(graph: Graph) -> int:
    """Return the number of entries of the features."""
    if graph.table is not None:
        return graph.num_nodes * max(graph.table.num_columns, 1)
    x: Any = graph.x
    return x.nnz if sp.issparse(x) else graph.num_nodes * graph.num_features
