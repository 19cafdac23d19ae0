"""Which nodes to label next: where much uncertainty lies within reach."""

from __future__ import annotations

import torch
from torch import Tensor

from lignn.errors import InputError
from lignn.methods import Prediction
from lignn.propagation import Adjacency

HOPS = 3
"""Number of hops that a label is assumed to reach."""


def entropy(probabilities: Tensor, multilabel: bool) -> Tensor:
    """Return the uncertainty of every node in nats; for multi-label tasks summed over the classes."""
    certain = torch.special.entr(probabilities).sum(1)
    return certain + torch.special.entr(1 - probabilities).sum(1) if multilabel else certain


def suggest(prediction: Prediction, k: int) -> Tensor:
    """Return `k` unlabelled nodes, the most valuable first: those within whose reach much uncertainty lies."""
    if prediction.problem.streamed:
        raise InputError(
            "suggestions need the graph in memory, this one is in a store; fit it as StoredGraph.to_graph()"
        )
    candidates = (prediction.problem.edges.is_row & ~prediction.problem.labels.mask).to(prediction.problem.device)
    uncertainty = entropy(prediction.probabilities, prediction.problem.labels.multilabel) * candidates
    return most_valuable(prediction.problem.adjacency("row"), uncertainty, candidates, k)


def most_valuable(reach: Adjacency, uncertainty: Tensor, candidates: Tensor, k: int) -> Tensor:
    """Return `k` of the candidates (a mask), the most valuable first.

    The value of labelling i is the uncertainty that it can reach, `Σ_j (P³)_ji H_j`, with H the entropy of the
    predictions and `P = D^-1 (A + I)`, so that `(P³)_ji` is the share of j's neighbourhood of three hops that i makes
    up. After the best node is taken, the uncertainty within its reach counts as resolved in that share, and the next
    one is looked for. So suggestions spread over the graph.
    """
    if not 1 <= k <= int(candidates.sum()):
        raise InputError(f"k: between 1 and {int(candidates.sum())} unlabelled nodes can be suggested, got {k}")
    candidates, left = candidates.clone(), uncertainty
    chosen = []
    for _ in range(k):
        value = left
        for _ in range(HOPS):
            value = reach.T @ value
        best = int(torch.where(candidates, value, -1).argmax())
        chosen.append(best)
        candidates[best] = False
        share = torch.zeros_like(left)
        share[best] = 1
        for _ in range(HOPS):
            share = reach @ share
        left = left * (1 - share)
        left[best] = 0
    return torch.tensor(chosen)
