"""Which known labels drove a prediction, and by how much."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lignn.classifier.classes import Classes
from lignn.classifier.live import Live
from lignn.equilibrium import Implicit, fixed_point
from lignn.equilibrium.solvers import Anderson
from lignn.errors import InputError
from lignn.graph import Graph
from lignn.methods import LabelInputted

_ROUNDINGS = 10
"""Units of rounding to which the adjoint is solved."""


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
        state: its value `Ŷ_ik` at the equilibrium: a probability, not calibrated, or a propagated score.
        from_labels: the shares of all known labels together; the rest comes from features, and from what is not linear.
        contributions: of the labels with the largest gains, by absolute value.
    """

    node: int
    id: str
    label: str
    state: float
    from_labels: float
    contributions: tuple[Contribution, ...]

    def __str__(self) -> str:
        lines = [f"node {self.id}: {self.label!r} at {self.state:.3f}, {self.from_labels:+.3f} of it from known labels"]
        found = (f"  {c.gain:+.4f} by {c.label!r} at {c.id}, its share {c.share:+.4f}" for c in self.contributions)
        return "\n".join([*lines, *found])


def label_gradient(live: Live, node: int, number: int) -> Tensor:
    """`∂Ŷ_ik / ∂Y`, n×c: how the state of class k at node i answers to every entry of the clamped label rows.

    From one adjoint solve; through all passes for methods that take a fixed number of them.
    """
    if not isinstance(live.method, LabelInputted):
        raise InputError(f"{type(live.method).__name__} does not take labels as input: they explain no prediction")
    assert live.solution is not None
    labels = live.problem.labels
    known, onehot = labels.mask[:, None], labels.onehot.clone().requires_grad_()

    def step(state: Tensor) -> Tensor:
        return live.step(torch.where(known, onehot, state))

    solver = live.method.inference
    with torch.enable_grad():
        if live.iterates:
            tol = _ROUNDINGS * torch.finfo(onehot.dtype).eps
            gradient = Implicit(solver=Anderson(tol=tol, max_steps=300, norm="relative"))
            state = fixed_point(step, live.solution.value, solver, gradient=gradient, throw=False).value
        else:
            state = torch.zeros_like(onehot)
            for _ in range(solver.max_steps):
                state = step(state)
        return torch.autograd.grad(state[node, number], onehot)[0]


def gains_and_shares(live: Live, node: int, number: int) -> tuple[Tensor, Tensor]:
    """`⟨G_j, Y_j - Ŷ_j⟩` and `⟨G_j, Y_j⟩` of every node j, `G_j = ∂Ŷ_ik / ∂Y_j`; zero for unknown ones.

    Where the step is linear (label propagation) they are exactly what the state loses when row j of `M_t Y`, with node
    j still clamped, becomes the node's own prediction (gain) or zero (share), and without a residual the shares sum to
    the state. Elsewhere they are the first order of that. The gain is also the first order of what is lost when the
    label is withdrawn and node j is predicted like any other.
    """
    gradient, labels = label_gradient(live, node, number), live.problem.labels
    assert live.solution is not None
    rows = labels.mask[:, None] * gradient
    return (rows * (labels.onehot - live.solution.value)).sum(1), (rows * labels.onehot).sum(1)


def explain(live: Live, graph: Graph, classes: Classes, node: int, k: int) -> Explanation:
    """The `k` known labels that gain most for the prediction at `node`."""
    if k < 1:
        raise InputError(f"k: at least one contribution is needed, got {k}")
    number = int(live.probabilities[node].argmax())
    gains, shares = gains_and_shares(live, node, number)
    onehot = live.problem.labels.onehot

    def name(j: int) -> str:
        return str(j) if graph.node_ids is None else str(graph.node_ids[j])

    def contribution(j: int) -> Contribution:
        label = "|".join(classes.names[c] for c in onehot[j].nonzero().flatten().tolist())
        return Contribution(j, name(j), label, float(gains[j]), float(shares[j]))

    known = live.problem.labels.mask.nonzero().flatten()
    largest = known[gains[known].abs().argsort(descending=True, stable=True)[:k]]
    assert live.solution is not None
    state = float(live.solution.value[node, number])
    found = tuple(contribution(j) for j in largest.tolist())
    return Explanation(node, name(node), classes.names[number], state, float(shares.sum()), found)
