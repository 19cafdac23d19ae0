"""New labels taking effect without training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lignn.classifier.certificate import Certificate
from lignn.classifier.classes import Classes, node_numbers
from lignn.classifier.live import Live
from lignn.equilibrium import Solution
from lignn.errors import InputError
from lignn.graph import Graph
from lignn.labels import KnownLabels
from lignn.methods import CorrectAndSmooth, LabelInputted


@dataclass(frozen=True, eq=False)
class Update:
    """What a change of labels has done.

    Attributes:
        before: the prediction there was.
        after: the one there is.
        reason: why the solve started from zero, or what else was done; empty if it started from the last equilibrium.
    """

    before: Live = field(repr=False)
    after: Live = field(repr=False)
    reason: str = ""

    @property
    def warm(self) -> bool:
        """Whether the solve started from the last equilibrium."""
        return not self.reason

    @property
    def solution(self) -> Solution | None:
        """The account of the solve; None for methods without one."""
        return self.after.solution

    @cached_property
    def changed(self) -> int:
        """How many nodes have another predicted label now."""
        old, new = self.before.labels, self.after.labels
        return int((old != new).reshape(len(old), -1).any(1).sum())

    def __str__(self) -> str:
        solved = "" if self.solution is None else f" in {self.solution.steps} steps ({self.solution.status})"
        how = "re-solved from the last equilibrium" if self.warm else f"solved from zero ({self.reason})"
        return f"{self.changed} predictions changed; {how}{solved}"


def relabelled(known: KnownLabels, graph: Graph, classes: Classes, labels: Mapping[Any, Any]) -> KnownLabels:
    """Known labels with some changed: by node number or id, to a class number or name; None makes one unknown."""
    if not isinstance(labels, Mapping):
        raise InputError(f"labels: a mapping from nodes to labels is needed, got {type(labels).__name__}")
    mask, onehot = known.mask.clone(), known.onehot.clone()
    for number, label in zip(node_numbers(graph, labels), labels.values(), strict=True):
        mask[number] = label is not None
        onehot[number] = 0 if label is None else classes.row(label).to(onehot.dtype)
    return KnownLabels(mask, onehot, known.multilabel)


def solve_again(live: Live, labels: KnownLabels, certificate: Certificate) -> Update:
    """The prediction with other labels, from the last equilibrium where that is safe, else from zero.

    Where the map contracts both give the same within `tol / (1 - K̂)`. Where it need not, a solve from elsewhere may
    end elsewhere, and the answer must not depend on the order in which labels came.
    """
    reason = _why_cold(live, certificate)
    new = live.with_labels(labels, None if reason or live.solution is None else live.solution.value)
    if not reason and new.solution is not None and not (new.solution.ok and new.solution.contraction < 1):
        reason = f"the re-solve did not contract, K̂ {new.solution.contraction:.3g}"
        new = live.with_labels(labels)
    return Update(live, new, reason)


def _why_cold(live: Live, certificate: Certificate) -> str:
    """Why a warm start will not do; empty if it will."""
    if not isinstance(live.method, LabelInputted | CorrectAndSmooth):
        return "the method does not take labels as input: only training (epochs > 0) can use them"
    if not live.iterates:
        return "the method takes a fixed number of passes"
    if not certificate.contracts:
        radius = certificate.spectral_radius
        measured = f"K̂ {certificate.contraction:.3g}" + ("" if radius is None else f", spectral radius {radius:.3g}")
        return f"the equilibrium may not be unique, {measured}"
    return ""
