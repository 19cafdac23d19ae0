"""A method at work on a problem, and what it predicts there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from lignn.equilibrium import Map, Solution
from lignn.equilibrium.solvers import Solver
from lignn.labels import KnownLabels
from lignn.methods.problem import Problem
from lignn.propagation import Adjacency

if TYPE_CHECKING:
    from lignn.methods.method import Method


class LabelWeight(NamedTuple):
    """`W_z` and `Ã` of a map `Z ↦ σ(Ã Z W_z + …)`, to which Theorem 1 applies."""

    weight: Tensor
    adjacency: Adjacency


@dataclass(frozen=True, eq=False)
class BoundMethod(ABC):
    """A method bound to a problem: the value that `method.on(problem)` returns.

    It holds everything that callers need to know about the method: its map, how to solve it, how to change the labels,
    and the facts below. The method's weights must not change while the value is in use.

    Attributes:
        method: in evaluation mode.
        problem: the graph and its known labels.
    """

    method: Method
    problem: Problem

    takes_labels: ClassVar[bool] = False
    """Whether known labels are an input, so that other labels give another prediction without training."""
    linear: ClassVar[bool] = False
    """Whether the map is affine in the state."""
    proof: ClassVar[str | None] = None
    """Why the equilibrium is unique for any weights, graph and labels; None if that is not proved."""
    label_free: ClassVar[tuple[str, ...]] = ()
    """Cached values that depend on features and weights only; `with_labels` passes them on."""

    @property
    def map(self) -> Map | None:
        """The map `Ŷ ↦ step((I - M_t) Ŷ + M_t Y)` on label states; None for methods without one."""
        return None

    @property
    def iterates(self) -> bool:
        """Whether a prediction is an equilibrium and not a fixed number of passes."""
        return False

    @property
    def accepts_start(self) -> bool:
        """Whether a solve may start at any label state."""
        return self.iterates and self.map is not None

    @property
    def keeps_start(self) -> bool:
        """Whether part of the start is known to stay in the solution, so that there are many equilibria."""
        return False

    @property
    def label_weight(self) -> LabelWeight | None:
        """The weight that Theorem 1 bounds; None for maps that the theorem does not cover."""
        return None

    @abstractmethod
    def solve(self, start: Tensor | None = None, solver: Solver | None = None) -> Prediction:
        """Predict with all known labels, without randomness or gradients.

        Args:
            start: the label state at which the solve starts, default zero; used only by methods that have a `map`.
            solver: used instead of the method's own; likewise.
        """

    def with_labels(self, labels: KnownLabels) -> Self:
        """Bind the method to the same graph with other known labels; features are not looked at again."""
        other = replace(self, problem=self.problem.knowing(labels))
        vars(other).update({name: vars(self)[name] for name in self.label_free if name in vars(self)})
        return other

    def __getstate__(self) -> dict[str, Any]:
        # Cached values may be closures, which cannot be pickled. They are computed again when needed.
        return {"method": self.method, "problem": self.problem}


@dataclass(frozen=True, eq=False)
class Prediction:
    """Class probabilities of every node.

    Attributes:
        bound: the method and problem that the prediction was made with.
        probabilities: n×c; rows sum to one, except for multi-label tasks.
        solution: the solve behind the prediction; None for methods that do not solve.
    """

    bound: BoundMethod
    probabilities: Tensor
    solution: Solution | None = None

    @property
    def problem(self) -> Problem:
        """The graph and the labels that were known."""
        return self.bound.problem

    @property
    def evidence(self) -> Tensor:
        """The nodes that a known label reaches; False: "no evidence"."""
        return self.problem.evidence

    @cached_property
    def labels(self) -> Tensor:
        """Class numbers (n), or 0/1 rows (n×c) for multi-label tasks."""
        several = self.problem.labels.multilabel
        return (self.probabilities > 0.5).to(torch.int8) if several else self.probabilities.argmax(1)
