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

_ADJOINT = Anderson(tol=1e-6, max_steps=300, norm="relative")


@dataclass(frozen=True)
class Contribution:
    """The share of one known label in a prediction.

    Attributes:
        node: whose label it is.
        id: the node's name.
        label: the known class, for multi-label tasks the classes joined by `|`.
        value: how much it adds to the predicted class's state.
    """

    node: int
    id: str
    label: str
    value: float


@dataclass(frozen=True)
class Explanation:
    """A prediction in terms of the known labels.

    Attributes:
        node: explained.
        label: the predicted class.
        state: its value `Ŷ_ik` at the equilibrium: a probability, not calibrated, or a propagated score.
        total: what all known labels together add; the rest comes from features, and from what is not linear.
        contributions: the largest, by absolute value.
    """

    node: int
    label: str
    state: float
    total: float
    contributions: tuple[Contribution, ...]

    def __str__(self) -> str:
        lines = [f"node {self.node}: {self.label!r} at {self.state:.3f}, {self.total:+.3f} of it from known labels"]
        return "\n".join([*lines, *(f"  {c.value:+.4f}  {c.label!r} at {c.id}" for c in self.contributions)])


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
            state = fixed_point(step, live.solution.value, solver, gradient=Implicit(solver=_ADJOINT), throw=False).value
        else:
            state = torch.zeros_like(onehot)
            for _ in range(solver.max_steps):
                state = step(state)
        return torch.autograd.grad(state[node, number], onehot)[0]


def contributions(live: Live, node: int, number: int) -> Tensor:
    """`⟨∂Ŷ_ik / ∂Y_j, Y_j⟩` of every node j, zero for unknown ones.

    Where the step is linear (label propagation) this is exactly what the state loses when row j of `M_t Y` is set to
    zero with node j still clamped, and without a residual they sum to the state. Elsewhere it is the first order of
    that change.
    """
    return (label_gradient(live, node, number) * live.problem.labels.onehot).sum(1)


def explain(live: Live, graph: Graph, classes: Classes, node: int, k: int) -> Explanation:
    """The `k` known labels that count most for the prediction at `node`."""
    if k < 1:
        raise InputError(f"k: at least one contribution is needed, got {k}")
    assert live.solution is not None or not isinstance(live.method, LabelInputted)
    number = int(live.probabilities[node].argmax())
    values = contributions(live, node, number)
    onehot = live.problem.labels.onehot

    def contribution(j: int) -> Contribution:
        name = str(j) if graph.node_ids is None else str(graph.node_ids[j])
        label = "|".join(classes.names[c] for c in onehot[j].nonzero().flatten().tolist())
        return Contribution(j, name, label, float(values[j]))

    known = live.problem.labels.mask.nonzero().flatten()
    largest = known[values[known].abs().argsort(descending=True, stable=True)[:k]]
    assert live.solution is not None
    state = float(live.solution.value[node, number])
    found = tuple(contribution(j) for j in largest.tolist())
    return Explanation(node, classes.names[number], state, float(values.sum()), found)
