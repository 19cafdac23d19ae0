"""Epochs of many updates, each on a batch of a store's parts: for graphs on which a full pass is too slow.

An epoch begins with what an exact epoch does, without gradients: labels are hidden, the state is solved for, one step
is taped. Each product remembers what it has multiplied. Then batches of parts are visited in random order. A visit
solves for the state of its own rows, tapes a step and solves the adjoint; all other nodes stand still as they were at
their last visit (a virtual equilibrium). So an update costs the share of its batch of a full pass.

**No label leaks through what is remembered**: the labels that an epoch hides are hidden in its first, exact pass too,
and nothing is remembered for longer than an epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Generator, Tensor

from lignn.backbones import Backbone, solving
from lignn.labels import KnownLabels
from lignn.methods.method import Carry, Epoch, Evaluation, Method, known_state
from lignn.methods.problem import Problem
from lignn.methods.stored import StoredProblem
from lignn.propagation import Adjacency
from lignn.propagation.adjacency import Normalization
from lignn.propagation.batch import BatchAdjacency, BatchRows, History
from lignn.propagation.streamed import StreamedTyped
from lignn.store import Batch


@dataclass(eq=False)
class Round:
    """What the visits of an epoch share.

    Attributes:
        whole: the problem of all rows.
        history: what products have multiplied.
        masked: features of all rows, some of them hidden; None if none are, or before the first visit.
    """

    whole: StoredProblem
    history: History
    masked: Any = None

    def visit(self, parts: Sequence[int], hidden: Tensor | None = None) -> Visit:
        """Return the problem of some parts.

        Args:
            parts: numbers of the parts, ascending.
            hidden: mask of the nodes that the epoch hides; None before it is drawn.
        """
        whole, bounds = self.whole, self.whole.edges.bounds.tolist()
        batch = Batch.of(whole.x.share, [slice(bounds[part], bounds[part + 1]) for part in parts])
        self.history.visit()
        return Visit(BatchRows(whole.x, batch), whole.edges, whole.labels.in_batch(batch, hidden), {}, shared=self)


@dataclass(frozen=True, eq=False)
class Visit(StoredProblem):
    """The problem of a batch of parts, whose products take all other rows from the history of the epoch.

    Attributes:
        shared: what the visits of the epoch share.
    """

    shared: Round = field(kw_only=True)

    @property
    def batch(self) -> Batch:
        """The rows."""
        return cast(Batch, self.x.share)

    def adjacency(self, normalization: Normalization = "symmetric", self_loops: bool = True) -> Adjacency:
        """Return the rows of the operator."""
        whole: Any = self.shared.whole.adjacency(normalization, self_loops)
        return cast(Adjacency, self.once((normalization, self_loops), lambda: self._rows_of(whole)))

    def operator(self, backbone: Backbone) -> Adjacency:
        """Return the rows of the operator that a backbone propagates with."""
        whole: Any = self.shared.whole.operator(backbone)
        if not isinstance(whole, StreamedTyped):
            return super().operator(backbone)
        return self.once(backbone.operator, lambda: cast(Any, StreamedTyped(tuple(map(self._rows_of, whole.parts)))))

    def _rows_of(self, whole: Any) -> BatchAdjacency:
        return BatchAdjacency(whole, self.batch, self.shared.history)

    def within(self, name: str) -> AbstractContextManager[None]:
        """Return a context in which all products belong to the map of this name."""
        return self.shared.history.within(name)

    def hide_features(self, rate: float, generator: Generator) -> Visit:
        """Hide the features of nodes that the first visit of the epoch draws."""
        if self.shared.masked is None:
            self.shared.masked = self.shared.whole.hide_features(rate, generator).x
        return replace(self, x=BatchRows(self.shared.masked, self.batch))


def epoch_of_batches(
    method: Method,
    problem: Problem,
    generator: Generator,
    carry: Carry,
    batch_parts: int,
    order: Generator,
    update: Callable[[Epoch], None],
) -> Epoch:
    """Visit all parts in random order, and return the exact epoch that these visits began with.

    Its loss is that before the first update. Its state is the last one of each row.

    Args:
        method: the method, in training mode.
        problem: the problem of all rows, of a store.
        generator: draws what an exact epoch draws.
        carry: what the epoch takes over from the last one.
        batch_parts: number of parts in a batch.
        order: draws the batches and their dropout.
        update: changes the weights by the loss of a batch.
    """
    assert isinstance(problem, StoredProblem)
    count = len(problem.edges.manifest["sizes"])
    visits = Round(problem, History(problem.edges.num_nodes))
    with torch.no_grad(), solving(method):
        first = method.epoch(visits.visit(range(count)), generator, carry)
    solution = first.solution
    if solution is not None:
        solution = replace(solution, value=solution.value.clone())  # visits write their rows into it
    batches = torch.randperm(count, generator=order).split(batch_parts)
    weight = _supervising(problem.labels, first.hidden)
    for parts in batches:
        visit = visits.visit(sorted(parts.tolist()), first.hidden)
        share = _supervising(visit.labels, visit.labels.drawn) / weight
        if share == 0:
            continue  # nothing to learn there in this epoch
        rows, start = visit.batch.positions, Carry(first.mask_rate)
        if solution is not None:
            state = solution.value[rows]
            start = replace(start, state=state, evaluation=Evaluation(visit, known_state(state)))
        epoch = method.epoch(visit, order, start)
        # The mean over all batches is the loss of the epoch, whatever the number of labels in each.
        update(replace(epoch, loss=epoch.loss * (share * len(batches))))
        if solution is not None and epoch.solution is not None:
            solution.value[rows] = epoch.solution.value
            solution.adjoints[:] = epoch.solution.adjoints
    return replace(first, problem=problem, solution=solution)  # what is remembered ends with the epoch


def _supervising(labels: KnownLabels, hidden: Tensor | None) -> float:
    """Return the weight of the nodes that supervise in the loss."""
    return labels.weight_of(labels.mask if hidden is None else labels.mask & hidden)
