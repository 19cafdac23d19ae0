"""A model that teaches itself: when it is asked for predictions, and which epochs learn from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from lignn.labels import KnownLabels, Taught
from lignn.methods import Method, Problem

FIRST, EVERY = 50, 10
"""The first epoch that may learn from predictions, and the number of epochs until they are made again."""

LEARNED = 0.2
"""Loss in units of a guess's below which the known labels count as learned, and the model as fit to teach."""


class Teacher:
    """The model itself: what it is sure of supervises the next epochs, see `labels.taught`.

    It predicts without dropout, with its present weights: their mean over many epochs lags behind, and is sure of fewer
    nodes. A model that has not learned its known labels does not teach: where labels have to travel far, the first
    predictions are wrong however sure they are.

    Args:
        method: the method that is trained.
        weight: weight of all that is taught in the loss; 0 for nothing.
        at_once: whether the weights were trained before, so that they need not wait for epoch `FIRST`.
        nodes: mask of the nodes that may teach; None for all.
    """

    def __init__(self, method: Method, weight: float, at_once: bool = False, nodes: Tensor | None = None) -> None:
        self.method, self.weight, self.at_once, self.nodes = method, weight, at_once, nodes
        self.taught: Taught | None = None
        self._labels: KnownLabels | None = None

    def teach(self, problem: Problem, epochs: Sequence[Mapping[str, Any]], start: Tensor | None) -> Problem:
        """Return the problem of the next epoch, with what it is to learn besides the known labels.

        Args:
            problem: the problem of training.
            epochs: records of all epochs so far.
            start: the state from which predictions are solved, if they are.
        """
        first = EVERY if self.at_once else FIRST
        if self.weight and len(epochs) >= first and len(epochs) % EVERY == 0:
            self._ask(problem, epochs[-EVERY:], start)
        if self.taught is None:
            return problem
        if self._labels is None or self._labels.taught is not self.taught:
            self._labels = replace(problem.labels, taught=self.taught)
        return problem.knowing(self._labels)

    def _ask(self, problem: Problem, last: Sequence[Mapping[str, Any]], start: Tensor | None) -> None:
        """Renew what is taught, if the known labels are learned; while something is taught, they are."""
        mean = sum(record["loss"] for record in last) / len(last)
        if self.taught is None and mean > LEARNED * problem.labels.loss_of_guess():
            return
        bound = self.method.eval().teacher(problem)
        if bound is not None:
            probabilities = bound.solve(start if bound.accepts_start else None).probabilities
            self.taught = problem.labels.teaching(probabilities, self.weight, self.nodes)
        self.method.train()

    def account(self) -> dict[str, int]:
        """Return the number of nodes that teach, for the record of an epoch; nothing while there are none."""
        return {} if self.taught is None else {"taught": int(self.taught.nodes.sum())}

    def state(self) -> dict[str, Any]:
        """Return all that is kept, for checkpoints."""
        return {} if self.taught is None else vars(self.taught)

    def load_state(self, state: dict[str, Any], problem: Problem) -> None:
        """Restore what `state` returned; raise if it does not fit the problem."""
        if not state:
            self.taught = None
            return
        labels, taught = problem.labels, Taught(**state)
        shapes = [tuple(part.shape) for part in (taught.nodes, taught.onehot, taught.weight)]
        expected = [labels.mask.shape, labels.onehot.shape, (labels.num_classes,)]
        if shapes != expected or taught.nodes.dtype != torch.bool:
            raise ValueError("what it was taught is of another graph")
        self.taught = replace(taught, onehot=taught.onehot.to(labels.onehot), weight=taught.weight.to(labels.onehot))


def may_teach(training: Problem, inference: Problem) -> bool:
    """Return whether a model can teach itself.

    In the inductive setting training must not see the nodes that would teach. With several classes a node, being sure
    of one says nothing of the others. Of a store, the loss of all nodes would need memory that nobody has planned.
    """
    labels = training.labels
    return training is inference and not labels.multilabel and labels.share is None
