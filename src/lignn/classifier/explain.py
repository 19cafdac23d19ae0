"""Why a node is predicted as it is, by the known labels that count most, and which nodes to label next."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lignn.classifier.calibration import Calibration, calibrated
from lignn.equilibrium import Implicit, differentiable
from lignn.equilibrium.solvers import Anderson
from lignn.errors import InputError
from lignn.graph import Graph
from lignn.labels import Classes
from lignn.methods import Prediction
from lignn.methods.problem import Effects
from lignn.propagation import Adjacency

_ROUNDINGS = 10
"""Tolerance of the adjoint, in units of rounding."""


@dataclass(frozen=True)
class Contribution:
    """What one known label does for a prediction.

    Attributes:
        node: whose label it is.
        id: the node's name.
        label: the known class, for multi-label tasks the classes joined by `|`.
        gain: how much knowing the label adds to the predicted class's state, compared with having to predict it.
        share: how much of that state comes from the label, compared with a node about which nothing is said.
    """

    node: int
    id: str
    label: str
    gain: float
    share: float


@dataclass(frozen=True)
class Explanation:
    """A prediction in terms of the known labels.

    Attributes:
        node: explained.
        id: the node's name.
        label: the predicted class.
        confidence: its calibrated probability, as in `Decision`.
        state: its value `Ŷ_ik` at the equilibrium: a probability before calibration, or a propagated score.
        from_labels: the shares of all known labels together; the rest comes from features, and from what is not linear.
        contributions: of the labels with the largest gains, by absolute value.
    """

    node: int
    id: str
    label: str
    confidence: float
    state: float
    from_labels: float
    contributions: tuple[Contribution, ...]

    def __str__(self) -> str:
        calibrated = f"node {self.id}: {self.label!r} at confidence {self.confidence:.3f} (calibrated)"
        lines = [
            f"{calibrated}, state {self.state:.3f} (not calibrated), {self.from_labels:+.3f} of it from known labels"
        ]
        felt = [c for c in self.contributions if c.gain or c.share]
        found = [f"  {c.gain:+.4f} by {c.label!r} at {c.id}, its share {c.share:+.4f}" for c in felt]
        return "\n".join([*lines, *(found or ["  no known label changes it by itself"])])


def label_gradient(prediction: Prediction, node: int, number: int) -> Tensor:
    """Return `∂Ŷ_ik / ∂Y`, n×c: how the state of class k at node i depends on every entry of the clamped labels.

    It costs one adjoint solve. Methods with a fixed number of passes are differentiated through all of them.
    """
    bound, solution = prediction.bound, prediction.solution
    if bound.map is None or solution is None:
        raise InputError(f"{type(bound.method).__name__} does not take labels as input: they explain no prediction")
    onehot = bound.problem.labels.onehot.clone().requires_grad_()
    fn = bound.with_labels(replace(bound.problem.labels, onehot=onehot)).map
    assert fn is not None
    with torch.enable_grad():
        if bound.iterates:
            tol = _ROUNDINGS * torch.finfo(onehot.dtype).eps
            gradient = Implicit(solver=Anderson(tol=tol, max_steps=300, norm="relative"))
            state = differentiable(fn, solution, gradient=gradient).value
        else:
            state = torch.zeros_like(onehot)
            for _ in range(solution.steps):
                state = fn(state)
        return torch.autograd.grad(state[node, number], onehot)[0]


def effects_of_labels(prediction: Prediction, node: int, number: int) -> Effects:
    """Return `⟨G_j, Y_j - Ŷ_j⟩` (gains) and `⟨G_j, Y_j⟩` (shares), `G_j = ∂Ŷ_ik / ∂Y_j`; zero for unknown nodes.

    For a linear step (label propagation) they are exactly what the state loses when row j of `M_t Y`, with node j still
    clamped, becomes the node's own prediction (gain) or zero (share); without a residual the shares sum to the state.
    For other steps they are the first-order approximation. The gain is also the first-order approximation of what is
    lost when the label is withdrawn and node j is predicted like any other. Classifiers of rows have no gradient; they
    predict again from rows without the labels.
    """
    found = prediction.bound.effects(prediction, node, number)
    if found is not None:
        return found
    gradient, labels = label_gradient(prediction, node, number), prediction.problem.labels
    assert prediction.solution is not None
    rows = labels.mask.to(gradient.device)[:, None] * gradient
    shares = (rows * labels.onehot).sum(1)
    return Effects((rows * (labels.onehot - prediction.solution.value)).sum(1), shares, float(shares.sum()))


def explain(
    prediction: Prediction, graph: Graph, classes: Classes, node: int, k: int, calibration: Calibration | None
) -> Explanation:
    """Return the `k` known labels that contribute most to the prediction at `node`."""
    if k < 1:
        raise InputError(f"k: at least one contribution is needed, got {k}")
    number = int(prediction.probabilities[node].argmax())
    gains, shares, together = effects_of_labels(prediction, node, number)
    onehot = prediction.problem.labels.onehot

    def name(j: int) -> str:
        return str(j) if graph.node_ids is None else str(graph.node_ids[j])

    def contribution(j: int) -> Contribution:
        label = "|".join(classes.names[c] for c in onehot[j].nonzero().flatten().tolist())
        return Contribution(j, name(j), label, float(gains[j]), float(shares[j]))

    known = prediction.problem.labels.mask.nonzero().flatten()
    strength = gains.abs().cpu()[known]
    largest = known[strength.argsort(descending=True, stable=True)[:k]]
    state = prediction.probabilities if prediction.solution is None else prediction.solution.value
    found = tuple(contribution(j) for j in largest.tolist())
    row = calibrated(prediction.probabilities[[node]], calibration, prediction.problem.labels.multilabel)
    confidence = float(row[0, number])
    value = float(state[node, number])
    return Explanation(node, name(node), classes.names[number], confidence, value, together, found)


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
