"""What a state tells beyond its predictions: held-out quality, the certificate, suggestions, neighbourhoods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from lignn.classifier import explain, scoring
from lignn.classifier.certificate import Certificate, certify, try_starts
from lignn.classifier.report import report
from lignn.errors import InputError
from lignn.graph import Graph
from lignn.propagation import Adjacency
from lignn.serve.changes import features_of
from lignn.serve.state import State

BINS = 10
MOST_SUGGESTIONS = 100


@dataclass(frozen=True, eq=False)
class Quality:
    """How good predictions are on labels that were no input for them.

    Attributes:
        nodes: number of labels that were held out.
        score: share of them that is predicted correctly; for multi-label tasks the micro-averaged F1.
        roc_auc: ROC AUC of the rarer of two classes; None if there are more, or if it is not defined.
        seen_since: whether the model was trained on these labels after the predictions that are scored here.
        confusion: counts, c×c, rows are the given labels and columns the predicted ones; None for multi-label tasks.
        reliability: mean confidence, share of correct predictions and count of each bin of confidence that is not
            empty; for multi-label tasks each class of a node counts.
    """

    nodes: int
    score: float
    roc_auc: float | None
    seen_since: bool
    confusion: np.ndarray | None
    reliability: tuple[tuple[float, float, int], ...]

    def __str__(self) -> str:
        several = self.confusion is None
        told = "micro-averaged F1 on {} held-out labels" if several else "of {} held-out labels are predicted correctly"
        ranks = "" if self.roc_auc is None else f", ROC AUC {self.roc_auc:.3f}"
        since = "; the model has since been trained on them too" if self.seen_since else ""
        return f"{self.score:.1%} {told.format(self.nodes)}{ranks}{since}"


def quality(state: State) -> Quality | None:
    """Predict the validation nodes without their labels; None if there are none.

    If the model has been trained on all labels that were held back, it is what was predicted before that.
    """
    fitted = state.fitted
    if fitted is None:
        return None
    left = fitted.split.val & scoring.labels_by_now(fitted).labelled
    if not left.any() and fitted.held_out is None:
        return None
    nodes = left if left.any() else scoring.HELD_OUT
    found, told = scoring.scored(fitted, nodes, None), report(fitted, nodes, None, metric="f1_micro")
    p, right = found.probabilities, (found.predicted == found.truth).numpy()
    sure = torch.maximum(p, 1 - p) if state.classes.multilabel else p.max(1).values
    reliability = _reliability(sure.numpy().ravel(), right.ravel())
    return Quality(told.nodes, told.score, told.roc_auc, not left.any(), told.confusion, reliability)


def _reliability(confidence: np.ndarray, right: np.ndarray) -> tuple[tuple[float, float, int], ...]:
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    bins = [place == b for b in range(BINS)]
    return tuple((float(confidence[b].mean()), float(right[b].mean()), int(b.sum())) for b in bins if b.any())


def certificate(state: State) -> Certificate:
    """Return the certificate of the state's prediction."""
    if state.fitted is None:
        raise InputError("there is no model yet; label nodes of two classes, three of each, and one is made")
    return certify(state.fitted.prediction, try_starts(state.fitted.prediction))


def explanation(state: State, number: int, k: int) -> explain.Explanation:
    """Return the labels that count most for the prediction of a node."""
    fitted = state.fitted
    if fitted is None:
        raise InputError("there is no model yet, so no prediction to explain")
    return explain.explain(fitted.prediction, state.graph, fitted.classes, number, k, fitted.calibration)


def suggestions(state: State, k: int) -> list[int]:
    """Return nodes whose labels would help most; without a model, nodes spread over the graph."""
    labelled = state.draft.labels.mask | ~state.graph.is_row  # values that rows share have no label
    labelled[[state.numbers[node] for node in state.waiting]] = True
    k = min(k, int((~labelled).sum()))
    if k < 1:
        return []
    if state.fitted is None:
        candidates = ~labelled
        reach = Adjacency.normalized(state.graph, "row", True, torch.float32)
        return explain.most_valuable(reach, candidates.float(), candidates, k).tolist()
    prediction = state.fitted.prediction
    candidates = (~labelled).to(prediction.probabilities.device)
    uncertain = explain.entropy(prediction.probabilities, state.classes.multilabel) * candidates
    return explain.most_valuable(prediction.problem.adjacency("row"), uncertain, candidates, k).tolist()


def least_confident(state: State, k: int) -> list[int]:
    """Return unlabelled nodes with the lowest calibrated confidence."""
    if state.fitted is None:
        return []
    decision = state.decision(slice(None))
    confidence = np.where(decision.known | ~state.graph.is_row.numpy(), np.inf, decision.confidence)
    order = np.argsort(confidence, kind="stable")[:k]
    return [int(number) for number in order if np.isfinite(confidence[number])]


def contradicting(state: State, k: int) -> list[int]:
    """Return nodes whose given label is not the predicted one, the surest predictions first."""
    if state.fitted is None:
        return []
    decision = state.decision(slice(None))
    other = decision.known & (decision.names != decision.given)
    order = np.argsort(np.where(other, -decision.confidence, np.inf), kind="stable")[:k]
    return [int(number) for number in order if other[number]]


class Neighbours:
    """Edges of a graph by their ends; made once per graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        ends = graph.edge_index.numpy()
        self._orders = [np.argsort(side, kind="stable") for side in ends]
        self._starts = [np.concatenate([[0], np.bincount(side, minlength=graph.num_nodes).cumsum()]) for side in ends]

    def edges(self, node: int) -> np.ndarray:
        """Return the numbers of the edges that leave or reach a node."""
        parts = [
            order[starts[node] : starts[node + 1]] for order, starts in zip(self._orders, self._starts, strict=True)
        ]
        return np.unique(np.concatenate(parts))

    def around(self, node: int, hops: int, limit: int) -> tuple[list[int], bool]:
        """Return the nodes within some hops, the nearest first, and whether more were left out."""
        found, shell, cut = {node: 0}, [node], False
        ends = self._graph.edge_index.numpy()
        for hop in range(1, hops + 1):
            following = []
            for near in shell:
                for other in np.unique(ends[:, self.edges(near)]).tolist():
                    if other in found:
                        continue
                    if len(found) >= limit:
                        cut = True
                        continue
                    found[other] = hop
                    following.append(other)
            shell = following
        return list(found), cut

    def between(self, nodes: list[int]) -> list[int]:
        """Return the numbers of the edges that join some nodes."""
        ends = self._graph.edge_index.numpy()
        edges = np.unique(np.concatenate([self.edges(node) for node in nodes]))
        inside = np.isin(ends[:, edges], nodes).all(0)
        return edges[inside].tolist()


def neighbourhood(state: State, neighbours: Neighbours, node: str, hops: int, limit: int) -> dict[str, Any]:
    """Return the nodes around one with their predictions, and the edges between them."""
    graph = state.graph
    nodes, cut = neighbours.around(state.number(node), hops, limit)
    ends = graph.edge_index.numpy()
    edges = []
    for edge in neighbours.between(nodes):
        source, target = (state.ids[end] for end in ends[:, edge])
        told: dict[str, Any] = {"source": source, "target": target}
        if graph.edge_weight is not None:
            told["weight"] = float(graph.edge_weight[edge])
        if graph.edge_type is not None and graph.edge_types is not None:
            told["type"] = graph.edge_types[int(graph.edge_type[edge])]
        edges.append(told)
    return {
        "version": state.version,
        "id": node,
        "undirected": graph.is_undirected,
        "truncated": cut,
        "features": features_of(graph, state.number(node)),
        "nodes": [state.record(number) for number in nodes],
        "edges": edges,
    }
