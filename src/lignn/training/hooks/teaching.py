"""A model that teaches itself: when it is asked for predictions, and which epochs learn from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lignn.labels import KnownLabels, Taught
from lignn.methods import Problem
from lignn.training.hooks.hook import Hook

if TYPE_CHECKING:
    from lignn.training.run import Run
    from lignn.training.settings import Training

FIRST, EVERY = 50, 10
"""The first epoch that may learn from predictions, and the number of epochs until they are made again."""


class Teaching(Hook):
    """Lets the model itself supervise the next epochs with what it is sure of, see `labels.taught`.

    It predicts without dropout, with its present weights: their mean over many epochs lags behind, and is sure of fewer
    nodes. A model that has not learned its known labels does not teach: where labels have to travel far, the first
    predictions are wrong however sure they are.

    Args:
        settings: how to train: the weight λ of all that is taught, when the known labels count as `learned`, how
            `sure` a prediction has to be, and whether weights that were trained before need not wait for `FIRST`.
        nodes: mask of the nodes that may teach; None for all.
    """

    def __init__(self, settings: Training, nodes: Tensor | None = None) -> None:
        self.settings, self.nodes = settings, nodes
        self.taught: Taught | None = None
        self._labels: KnownLabels | None = None

    def before_epoch(self, run: Run, problem: Problem) -> Problem:
        """Return the problem with what is to be learned besides the known labels."""
        epochs, first = run.history.epochs, EVERY if self.settings.goes_on else FIRST
        if len(epochs) >= first and len(epochs) % EVERY == 0:
            self._ask(run, problem, epochs[-EVERY:])
        if self.taught is None:
            return problem
        if self._labels is None or self._labels.taught is not self.taught:
            self._labels = replace(problem.labels, taught=self.taught)
        return problem.knowing(self._labels)

    def _ask(self, run: Run, problem: Problem, last: Sequence[Mapping[str, Any]]) -> None:
        """Renew what is taught, if the known labels are learned; while something is taught, they are."""
        mean = sum(record["loss"] for record in last) / len(last)
        if self.taught is None and mean > self.settings.learned * problem.labels.loss_of_guess():
            return
        bound = run.method.eval().teacher(problem)
        if bound is not None:
            start = run.history.carry.state if bound.accepts_start else None
            given = self.settings.teaching, self.nodes, self.settings.sure
            self.taught = problem.labels.teaching(bound.solve(start).probabilities, *given)
        run.method.train()

    def after_update(self, run: Run, record: dict[str, Any]) -> None:  # noqa: ARG002
        """Record the number of nodes that teach, if any do."""
        if self.taught is not None:
            record["taught"] = int(self.taught.nodes.sum())

    def state(self) -> dict[str, Any]:
        """Return what is taught."""
        return {"taught": {} if self.taught is None else vars(self.taught)}

    def load(self, state: dict[str, Any], inference: Problem) -> None:
        """Restore what `state` returned; raise if it does not fit the problem."""
        if not state.get("taught"):
            self.taught = None
            return
        labels, taught = inference.labels, Taught(**state["taught"])
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
