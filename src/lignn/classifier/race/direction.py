"""In which direction edges of own tables are followed: two cheap models are tried both ways before the race."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lignn.classifier.race.fold_fits import Setup
from lignn.classifier.race.judge import Judge
from lignn.classifier.race.search import Search
from lignn.graph import Graph
from lignn.graph.reading import BOTH, GIVEN
from lignn.training.metrics import mean_log_loss

CHEAP = ("logistic", "boosted/label_input")
"""Names of the candidates that decide."""


@dataclass(frozen=True)
class Direction:
    """How edges are followed.

    Attributes:
        graph: the graph with edges that are followed so.
        told: what was chosen and why, in one sentence; empty if there was nothing to choose.
    """

    graph: Graph
    told: str = ""


def chosen(setup: Setup) -> Direction:
    """Follow the edges of a setup's graph as given, or both ways if that is better by more than the error.

    There is nothing to choose for graphs that are undirected, have types of edges, are no tables of the user's, or
    whose direction was said. Only labels that choose a model are looked at.
    """
    graph = setup.graph
    if not _is_open(graph):
        return Direction(graph)
    assert graph.reading is not None
    both = graph.to_undirected()
    candidates = tuple(replace(one, stage=0) for one in setup.candidates if one.name in CHEAP)
    one_way, two_ways = (_best(replace(setup, graph=each, candidates=candidates)) for each in (graph, both))
    if one_way is None or two_ways is None:
        return Direction(graph)
    (given, truth), (ours, _) = one_way, two_ways
    losses = f"as given {mean_log_loss(given, truth):.3f}, both ways {mean_log_loss(ours, truth):.3f}"
    if Judge(setup.metric, (truth,)).is_behind([ours], [given], [0]):
        told = f"Edges are followed both ways (log loss {losses}; --directed keeps them as given)."
        return Direction(both.replace(reading=graph.reading.following(BOTH)), told)
    told = f"Edges are followed as given (log loss {losses}; --undirected follows them both ways)."
    return Direction(graph.replace(reading=graph.reading.following(GIVEN)), told)


def _is_open(graph: Graph) -> bool:
    """Return whether a direction is to be chosen."""
    own = graph.reading is not None and graph.reading.direction is None
    return own and graph.edge_types is None and graph.num_edges > 0 and not graph.is_undirected


def _best(setup: Setup) -> tuple[Tensor, Tensor] | None:
    """Return the predictions of the best cheap model, and the labels; None if none could be fitted."""
    search = Search(setup)
    search.run(1, None, lambda *_: None)
    if search.interrupted:
        raise KeyboardInterrupt
    if not search.alive:
        return None
    judge, folds = Judge.of(setup), range(search.reached)
    best = min(search.alive, key=lambda each: mean_log_loss(*_pooled(search, judge, each, folds)))
    return _pooled(search, judge, best, folds)


def _pooled(search: Search, judge: Judge, candidate: int, folds: range) -> tuple[Tensor, Tensor]:
    """Return calibrated predictions of all folds, and the labels."""
    rows = search.predictions(candidate, folds)
    return torch.cat(rows), torch.cat([judge.truth[fold] for fold in folds])
