"""New labels taking effect: without training, or by further epochs."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lignn.classifier import imbalance
from lignn.classifier.calibration import Outcome, calibrate
from lignn.classifier.certificate import unique_for_all_labels
from lignn.classifier.fit import own_torch_modes, predicted, with_training
from lignn.classifier.model import Fitted
from lignn.equilibrium import Solution
from lignn.errors import InputError
from lignn.graph import Graph
from lignn.graph.hetero import of_labelled_types
from lignn.graph.names import node_numbers
from lignn.labels import Classes, KnownLabels
from lignn.methods import BoundMethod, Carry, Prediction
from lignn.methods.method import Evaluation
from lignn.store import rows_of, whole_of
from lignn.training import Assembly, End, score_on


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


@own_torch_modes()
def go_on(fitted: Fitted, known: KnownLabels, truth: Graph, epochs: int) -> Fitted:
    """Continue training from the present weights and equilibrium with other known labels, on a copy of the method.

    If validation labels are left that are not known, the best of the epochs is kept and calibrated again.
    Otherwise the last epoch is kept and the calibration stays.
    """
    spec = fitted.spec
    known = imbalance.weighted(spec, fitted.classes, known)
    problem = fitted.prediction.problem.knowing(known)
    method = copy.deepcopy(fitted.prediction.bound.method)
    held_out = fitted.split.val & truth.labelled & ~known.mask
    unseen = fitted.split.held_out & ~known.mask
    seen = problem.without_edges_at(unseen) if spec.values["inductive"] else problem
    scored = problem.space.count(held_out) > 0  # of all processes, which must do the same
    decides = spec.log_loss_decides
    score = score_on(truth, {"val": held_out}, fitted.metric, problem.space, decides) if scored else None
    generator = torch.Generator().manual_seed(_further_seed(spec.values["seed"], fitted.further))
    options = replace(spec.training, max_epochs=epochs, patience=epochs, goes_on=True)
    assembly = Assembly(method, seen, problem, generator, of_labelled_types(truth, known.mask))
    history = assembly.train(score, options, _carry(fitted))
    split = fitted.split if history.end is End.NOTHING_TO_TRAIN else with_training(fitted.split, known.mask)
    prediction = predicted(history)
    outcome = Outcome.of(prediction, truth, held_out)
    calibration = calibrate(outcome.probabilities, outcome.truth) if spec.values["calibrate"] else None
    return replace(
        fitted,
        split=split,
        prediction=prediction,
        calibration=calibration or fitted.calibration,
        held_out=outcome if len(outcome.truth) else fitted.held_out,
        mask_rate=history.carry.mask_rate,
        further=fitted.further + epochs,
    )


def _carry(fitted: Fitted) -> Carry:
    """Return what the first epoch of an update takes over: the mask rate, and the equilibrium as a start.

    The equilibrium belongs to other labels, so it is an evaluation of the problem of before.
    """
    prediction = fitted.prediction
    if prediction.solution is None or not prediction.bound.accepts_start:
        return Carry(fitted.mask_rate)
    evaluation = Evaluation(prediction.problem, prediction.solution)
    return Carry(fitted.mask_rate, prediction.solution.value, evaluation)


def _further_seed(seed: int, epochs: int) -> int:
    """Return another seed after every update, so that not all of them hide the same labels."""
    return int(np.random.SeedSequence((seed, epochs)).generate_state(1, np.uint64)[0])
