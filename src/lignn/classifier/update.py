"""New labels taking effect without training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from torch import Tensor

from lignn.classifier.certificate import unique_for_all_labels
from lignn.equilibrium import Solution
from lignn.errors import InputError
from lignn.graph import Graph
from lignn.graph.names import node_numbers
from lignn.labels import Classes, KnownLabels
from lignn.methods import BoundMethod, Prediction
from lignn.store import rows_of, whole_of


@dataclass(frozen=True, eq=False)
class Update:
    """The effect of a change of labels, or of the graph.

    Attributes:
        before: the prediction before the change.
        after: the prediction after it.
        reason: why the solve started from zero, or what else was done; empty if it started from the last equilibrium.
        kept: mask of the nodes of before that are still there; None: all of them.
    """

    before: Prediction = field(repr=False)
    after: Prediction = field(repr=False)
    reason: str = ""
    kept: Tensor | None = field(default=None, repr=False)

    @property
    def warm(self) -> bool:
        """Whether the solve started from the last equilibrium."""
        return not self.reason

    @property
    def solution(self) -> Solution | None:
        """The solve; None for methods without one."""
        return self.after.solution

    @cached_property
    def changed(self) -> int:
        """Number of nodes whose predicted label has changed."""
        old, new = self.before.labels, self.after.labels
        old = old if self.kept is None else old[self.kept.to(old.device)]
        return int((old != new).reshape(len(old), -1).any(1).sum())

    def __str__(self) -> str:
        solved = "" if self.solution is None else f" in {self.solution.steps} steps ({self.solution.status})"
        how = "re-solved from the last equilibrium" if self.warm else f"solved from zero ({self.reason})"
        return f"{self.changed} predictions changed; {how}{solved}"


def relabelled(known: KnownLabels, graph: Graph, classes: Classes, labels: Mapping[Any, Any]) -> KnownLabels:
    """Return known labels with some changed: by node number or id, to a class number or name, or None for unknown."""
    if not isinstance(labels, Mapping):
        raise InputError(f"labels: a mapping from nodes to labels is needed, got {type(labels).__name__}")
    mask, onehot = known.mask.clone(), known.onehot.clone()
    rows = rows_of(graph)
    for whole, label in zip(node_numbers(whole_of(graph), labels), labels.values(), strict=True):
        number = whole - rows.start
        if whole not in range(rows.start, rows.stop):
            continue  # the row of another process
        mask[number] = label is not None
        onehot[number] = 0 if label is None else classes.row(label).to(onehot)
    return replace(known, mask=mask, onehot=onehot)


SMALL_TOL = 1e-6
"""Largest tolerance of a solve that starts from the last equilibrium."""


def solve_again(prediction: Prediction, labels: KnownLabels) -> Update:
    """Predict with other labels, from the last equilibrium if that is proved to be safe, otherwise from zero.

    If the map contracts, both give the same within `tol / (1 - K)`. If it does not, a solve from another start may end
    elsewhere: the answer would depend on the order in which labels came, and a withdrawn label could stay in it.
    """
    bound = prediction.bound.with_labels(labels)
    reason = why_cold(bound)
    if reason or prediction.solution is None:
        return Update(prediction, bound.solve(), reason)
    if labels.same_as(prediction.problem.labels):
        return Update(prediction, prediction, reason)
    return Update(prediction, bound.solve(prediction.solution.value), reason)


def why_cold(bound: BoundMethod) -> str:
    """Return why a solve cannot start from the last equilibrium; empty if it can."""
    if not bound.takes_labels:
        return "the method does not take labels as input: only training (epochs > 0) can use them"
    if not bound.iterates:
        return "the method takes a fixed number of passes"
    if not unique_for_all_labels(bound):
        return "it is not proved that the equilibrium is unique with these labels"
    if bound.solver is not None and bound.solver.tol > SMALL_TOL:
        return f"its tolerance {bound.solver.tol:g} is so large that the start would show in the answer"
    return ""
