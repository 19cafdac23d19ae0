"""Does the start of a solve matter? What plain iteration and solves from elsewhere say of an equilibrium."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from lignn.equilibrium import Status, solve
from lignn.equilibrium.solvers import Picard
from lignn.methods.problem import Prediction

_PLAIN_STEPS = 100
"""Steps of the plain map that K̂ is measured over; ten steps say little of the later ones."""

_MOVED = 0.01
"""Change of a probability below which two solves agree."""


@dataclass(frozen=True)
class Starts:
    """What plain iteration and solves from elsewhere say of an equilibrium.

    Attributes:
        contraction: `K̂` over at least 100 steps of the plain map from zero, or fewer if it comes to rest before.
        random: share of the predictions that differ if the solve starts from a random class at every node.
        opposite: the same for a start from a class other than the predicted one at every node.
    """

    contraction: float
    random: float
    opposite: float

    @property
    def differing(self) -> float:
        """The larger share of predictions that differ."""
        return max(self.random, self.opposite)

    @property
    def agree(self) -> bool:
        """Whether nothing speaks against one equilibrium: K̂ < 1, and all starts give the same predictions."""
        return self.contraction < 1 and self.differing == 0


def measure(prediction: Prediction) -> Starts | None:
    """Iterate the plain map, and solve from two other starts; compare with the prediction.

    Nothing is tried, and None returned, if the map is linear (its spectral radius decides), not finite, or the method
    does not iterate.
    """
    bound, solution = prediction.bound, prediction.solution
    if solution is None or bound.map is None or bound.solver is None or not bound.accepts_start or bound.linear:
        return None
    if solution.status is Status.NON_FINITE:
        return None
    labels, generator = bound.problem.labels, torch.Generator().manual_seed(0)
    c = labels.num_classes
    if labels.multilabel:
        states = [labels.draw_integers(0, 2, generator, c), 1 - prediction.labels.cpu()]
    else:
        shifted = prediction.labels.cpu() + labels.draw_integers(1, c, generator)
        states = [one_hot(classes, c) for classes in (labels.draw_integers(0, c, generator), shifted % c)]
    solver = replace(bound.solver, max_steps=max(bound.solver.max_steps, _PLAIN_STEPS))
    plain = Picard(tol=torch.finfo(labels.onehot.dtype).tiny, max_steps=_PLAIN_STEPS)
    space = bound.problem.space
    contraction = solve(bound.map, torch.zeros_like(labels.onehot), plain, throw=False, space=space).contraction
    found = prediction if solution.ok else bound.solve(solver=solver)  # what more steps change is told elsewhere
    random, opposite = (_differing(found, bound.solve(state.to(labels.onehot), solver)) for state in states)
    return Starts(contraction, random, opposite)


def share_by_start(prediction: Prediction, starts: int) -> float:
    """Return the share of the nodes whose prediction is not the same from all of so many random starts.

    All solves, that from zero included, are plain iteration to a small tolerance.
    """
    bound, labels = prediction.bound, prediction.problem.labels
    generator, (n, c) = torch.Generator().manual_seed(1), labels.onehot.shape
    solver = Picard(tol=1e-6, max_steps=500)
    found = bound.solve(torch.zeros_like(labels.onehot), solver)
    apart = torch.zeros(n, dtype=torch.bool)
    for _ in range(starts):
        state = torch.rand(n, c, generator=generator).pow(4)  # most rows are nearly one class
        state = state if labels.multilabel else state / state.sum(1, keepdim=True)
        apart |= _moved(found, bound.solve(state.to(labels.onehot), solver)).cpu()
    return apart.sum().item() / n


def _moved(one: Prediction, other: Prediction) -> Tensor:
    """Return the nodes whose label differs; a tie that falls otherwise by rounding does not count."""
    moved = (one.probabilities - other.probabilities).abs().amax(1) > _MOVED
    return moved & (one.labels != other.labels).reshape(len(moved), -1).any(1)


def _differing(one: Prediction, other: Prediction) -> float:
    """Return the share of nodes whose label differs."""
    differing, space = _moved(one, other), one.problem.space
    return space.count(differing) / space.entries(differing)
