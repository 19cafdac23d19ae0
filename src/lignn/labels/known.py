"""Known labels. A label becomes an input or a target only in this file.

A method gets the `KnownLabels` of its training nodes, never a graph's `y`. Each epoch divides them into labels that are
inputs and labels that supervise. The two parts are disjoint by construction, because both come from one mask.

Masks stay on the CPU, where they are drawn and counted. Label matrices are on the device of the problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Generator, Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import binary_cross_entropy_with_logits

from lignn.declarations import POLICY
from lignn.errors import ConfigError, InputError
from lignn.graph import Graph
from lignn.graph.validate import check_classes
from lignn.labels.taught import Taught
from lignn.propagation.rows import Rows, dense
from lignn.store import Batch, Share, share_of

_FEW_CLASSES = 16

_MAX_REDRAWS = 1000
"""Maximum number of redraws of hidden nodes before one node is hidden by force."""

SoftmaxJacobian = Literal["exact", "diagonal"]

LossOf = Literal["probabilities", "logits"]
"""What the cross-entropy is computed from. The values are the same; only logits have a gradient everywhere."""


def softmax(logits: Tensor) -> Tensor:
    """Return the softmax of each row."""
    if logits.shape[1] < _FEW_CLASSES:
        # Short rows do not fill a vector register: the softmax along columns is several times faster.
        return logits.T.contiguous().softmax(0).T
    return logits.softmax(1)


def at_temperature(probabilities: Tensor, temperature: float, multilabel: bool) -> Tensor:
    """Return `σ(log-odds / T)` of given probabilities; the order of classes stays."""
    if temperature == 1:
        return probabilities
    odds = log_odds(probabilities, multilabel) / temperature
    return odds.sigmoid() if multilabel else odds.softmax(1)


def log_odds(probabilities: Tensor, multilabel: bool) -> Tensor:
    """Return logits whose softmax, or sigmoid if `multilabel`, gives these probabilities."""
    logs = probabilities.clamp(min=1e-12).log()
    return logs - (1 - probabilities).clamp(min=1e-12).log() if multilabel else logs


class DiagonalSoftmax(torch.autograd.Function):
    """Softmax whose backward pass uses only the diagonal of its Jacobian: `g ↦ p ∘ (1-p) ∘ g`."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        """Return `p`."""
        p = softmax(logits)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Tensor:
        """Return `p ∘ (1-p) ∘ g`."""
        (p,) = ctx.saved_tensors
        return p * (1 - p) * g


@dataclass(frozen=True, eq=False)
class LabelInput:
    """The input `scale ∘ Ŷ + offset` of a step as a function of the state.

    Attributes:
        scale: factor of each row of the state, n×1.
        offset: what the known labels add, n×c.
        backward: factor of each row in the backward pass, n×1.
    """

    scale: Tensor
    offset: Tensor
    backward: Tensor


@dataclass(frozen=True, eq=False)
class KnownLabels:
    """The labels `M_t Y` of some nodes; the labels of all other nodes are unknown.

    Attributes:
        mask: `M_t`, the nodes whose labels are known; on the CPU.
        onehot: `M_t Y`, n×c, with rows of zeros for unknown nodes; multi-hot for multi-label tasks.
        multilabel: whether a node may have several classes. If so, σ is the sigmoid and the loss binary cross-entropy.
        class_weight: weight of each class in the loss (c); None if all nodes count alike.
        share: the nodes of the rows, if the graph is in a store; None: all nodes of a graph in memory.
        drawn: the nodes that `hide` hides, if they were drawn before; None: it draws them.
        taught: predictions of other nodes that supervise too; they are never an input.
    """

    mask: Tensor
    onehot: Tensor
    multilabel: bool = False
    class_weight: Tensor | None = None
    share: Share | None = None
    drawn: Tensor | None = None
    taught: Taught | None = None

    @classmethod
    def of(cls, graph: Graph, mask: Tensor, dtype: torch.dtype = torch.float32) -> KnownLabels:
        """Return the labels of the nodes in `mask`, all of which must be labelled."""
        if graph.y is None:
            raise InputError(f"{graph.name} has no labels")
        if mask.shape != (graph.num_nodes,):
            raise InputError(f"a mask over {graph.num_nodes} nodes is needed, got shape {tuple(mask.shape)}")
        missing = (mask & ~graph.labelled).nonzero().flatten()
        if len(missing):
            raise InputError(f"node {missing[0].item()} of the mask has no label ({len(missing)} such nodes)")
        share = share_of(graph)
        if not (mask.any() if share is None else share.processes.sum(mask.sum())):
            raise InputError("no label is known: the training set is empty")
        nodes = mask.nonzero().flatten()
        try:
            onehot = torch.zeros(graph.num_nodes, graph.num_classes, dtype=dtype)
            if graph.is_multilabel:
                onehot[nodes] = graph.y[nodes].to(dtype)
            else:
                onehot[nodes, graph.y[nodes]] = 1
            return cls(mask, onehot, graph.is_multilabel, share=share)
        except RuntimeError:
            check_classes(graph.num_nodes, graph.num_classes)  # there may be too many to allocate them
            raise

    def in_batch(self, batch: Batch, hidden: Tensor | None) -> KnownLabels:
        """Return the labels of the rows of a batch, in which the same nodes are hidden as in the whole store.

        Args:
            batch: the rows.
            hidden: mask of the nodes that the epoch hides; None for a method that hides none.
        """
        rows = batch.positions
        drawn = None if hidden is None else hidden[rows]
        return replace(self, mask=self.mask[rows], onehot=self.onehot[rows], share=batch, drawn=drawn)

    def weight_of(self, nodes: Tensor) -> float:
        """Return the weight of some known nodes (a mask) in the mean that the loss is."""
        if self.class_weight is None or self.multilabel:
            return float(nodes.sum())
        return float((self.onehot[nodes] @ self.class_weight.to(self.onehot)).sum())

    @property
    def num_classes(self) -> int:
        """Number of classes, c."""
        return self.onehot.shape[1]

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all processes, n."""
        return len(self.mask) if self.share is None else self.share.total

    @property
    def counts(self) -> Tensor:
        """Number of known labels of each class, of all processes."""
        counts = self.onehot.sum(0, dtype=torch.float64)
        return counts if self.share is None else self.share.processes.sum(counts)

    @cached_property
    def _known_to_all(self) -> Tensor:
        """Mask of the known nodes of all processes in the order of the source, so that all hide the same nodes."""
        return self.mask if self.share is None else self.share.of_all(self.mask)

    def same_as(self, other: KnownLabels) -> bool:
        """Return whether the same labels are known of the same nodes; all processes that share them agree."""
        same = torch.equal(self.mask, other.mask) and torch.equal(self.onehot, other.onehot)
        return same if self.share is None else self.share.processes.largest(float(not same)) == 0

    def to(self, device: torch.device | str) -> KnownLabels:
        """Return the same labels on another device; the mask stays on the CPU."""
        weight = None if self.class_weight is None else self.class_weight.to(device)
        return replace(self, onehot=self.onehot.to(device), class_weight=weight)

    @cached_property
    def _rows(self) -> tuple[Tensor, Tensor]:
        """The known nodes, on the CPU, and their rows of `M_t Y`."""
        nodes = self.mask.nonzero().flatten()
        return nodes, self.onehot[nodes.to(self.onehot.device)]

    @cached_property
    def _rows_to_clamp(self) -> tuple[Tensor, Tensor]:
        nodes, rows = self._rows
        return nodes.to(rows.device), rows

    def clamp(self, state: Tensor) -> Tensor:
        """Return `(I - M_t) Ŷ + M_t Y`: the state with known rows overwritten by their labels."""
        return state.index_copy(0, *self._rows_to_clamp)

    @cached_property
    def clamped(self) -> LabelInput:
        """`clamp` as factors and offsets of the rows."""
        unknown = (~self.mask).to(self.onehot)[:, None]
        return LabelInput(unknown, self.onehot, unknown)

    def activation(self, logits: Tensor | Rows, jacobian: SoftmaxJacobian = "exact") -> Tensor:
        """Return probabilities: σ is the softmax, or for multi-label tasks the sigmoid, whose Jacobian is diagonal."""
        logits = logits if isinstance(logits, Tensor) else dense(logits)
        if self.multilabel:
            return logits.sigmoid()
        return softmax(logits) if jacobian == "exact" else DiagonalSoftmax.apply(logits)

    @cached_property
    def supervising(self) -> Tensor:
        """Mask of the nodes that may supervise: known and taught ones."""
        return self.mask if self.taught is None else self.mask | self.taught.nodes

    def teaching(
        self, probabilities: Tensor, weight: float, teachers: Tensor | None = None, sure: float = POLICY["sure"].default
    ) -> Taught | None:
        """Return what the predictions of unlabelled nodes teach, see `Taught.of`.

        Args:
            probabilities: predicted ones of all nodes.
            weight: of all that is taught.
            teachers: mask of the nodes that may teach; None for all.
            sure: probability from which on a prediction teaches.
        """
        unknown = ~self.mask if teachers is None else teachers & ~self.mask
        return Taught.of(probabilities, unknown, self.counts, self._shares(), weight, sure)

    @cached_property
    def _targets(self) -> Tensor:
        """Known and taught labels (n×c)."""
        return self.onehot if self.taught is None else self.onehot + self.taught.onehot

    def _supervised(self, output: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows of `output` and of the labels at `nodes` (a mask), which must be known or taught."""
        if (nodes & ~self.supervising).any():
            raise InputError("only known and taught labels can supervise")
        index = nodes.nonzero().flatten().to(output.device)
        return dense(output).index_select(0, index), self._targets.index_select(0, index)

    def loss_of_logits(self, logits: Tensor, nodes: Tensor) -> Tensor:
        """Return the same as `loss` of the probabilities; its gradient does not vanish where softmax underflows."""
        z, target = self._supervised(logits, nodes)
        if self.multilabel:
            return self._mean(binary_cross_entropy_with_logits(z, target, reduction="none"))
        return self._with_taught(-(z.log_softmax(1) * target).sum(1), target, nodes)

    def loss(self, probabilities: Tensor, nodes: Tensor) -> Tensor:
        """Return the mean cross-entropy over known ones of `nodes` (a mask), plus the weighted mean of taught ones."""
        p, target = self._supervised(probabilities, nodes)
        tiny = torch.finfo(p.dtype).tiny
        if self.multilabel:
            return self._mean(-(target * p.clamp(min=tiny).log() + (1 - target) * (1 - p).clamp(min=tiny).log()))
        return self._with_taught(-p.mul(target).sum(1).clamp(min=tiny).log(), target, nodes)

    def loss_of_guess(self) -> float:
        """Return the loss of the shares of the classes as prediction of every node: nothing but counts is known."""
        return self.loss(self._shares().to(self.onehot).expand_as(self.onehot), self.mask).item()

    def _shares(self) -> Tensor:
        """Return the share of each class in the loss of all known labels (c)."""
        shares = self.counts / self._known_to_all.sum()
        if self.class_weight is None:
            return shares
        return shares * self.class_weight / (shares @ self.class_weight.to(shares))

    def _with_taught(self, losses: Tensor, target: Tensor, nodes: Tensor) -> Tensor:
        """Return the mean loss of the known ones of `nodes` plus that of the taught ones."""
        if self.taught is None:
            return self.mean(losses, target)
        known = self.mask[nodes].to(losses.device)
        loss = self.mean(losses[known], target[known])
        return loss if known.all() else loss + self.taught.mean(losses[~known], target[~known])

    def mean(self, losses: Tensor, target: Tensor) -> Tensor:
        """Return the mean of one loss per node, each weighted by the class of its `target` row.

        A node of weight 2 counts as two nodes, as in PyTorch's `cross_entropy`.
        """
        if self.class_weight is None:
            return self._mean(losses)
        weight = target @ self.class_weight.to(target.dtype)
        return self._sum(losses * weight) / self._sum(weight)

    def _mean(self, losses: Tensor) -> Tensor:
        """Return the mean over the supervised nodes of all processes."""
        if self.share is None:
            return losses.mean()
        return self._sum(losses) / self.share.processes.sum(torch.tensor(losses.numel()))

    def _sum(self, x: Tensor) -> Tensor:
        """Return the sum over the nodes of all processes."""
        return x.sum() if self.share is None else self.share.total_of(x.sum())

    def draw(self, generator: Generator) -> Tensor:
        """Draw a uniform number for each node."""
        return torch.rand(len(self.mask), generator=generator) if self.share is None else self.share.rand(generator)

    def draw_integers(self, low: int, high: int, generator: Generator, *width: int) -> Tensor:
        """Draw integers from `low` to below `high` for each node: one, or a row of them."""
        count = len(self.mask) if self.share is None else self.share.total
        drawn = torch.randint(low, high, (count, *width), generator=generator)
        return drawn if self.share is None else drawn[self.share.number]

    def hide(self, rate: float, generator: Generator) -> HiddenLabels:
        """Draw `I_o`: hide every node, known or not, with probability `rate`; redraw until a known node is hidden.

        A node that was given its label is never supervised, so an epoch without a hidden known node has no loss. If the
        rate is so small that `_MAX_REDRAWS` draws hide no known node, one is hidden by force.
        """
        if not 0 < rate < 1:
            raise ConfigError(f"a mask rate must be between 0 and 1, got {rate}")
        if self.drawn is not None:
            return HiddenLabels(self, self.drawn, rate)
        known = self._known_to_all
        if not known.any():
            raise InputError("no label is known: there is nothing to learn from")
        for _ in range(_MAX_REDRAWS):
            hidden = torch.rand(len(known), generator=generator) < rate
            if (hidden & known).any():
                break
        else:
            nodes = known.nonzero().flatten()
            hidden[nodes[torch.randint(len(nodes), (), generator=generator)]] = True
        return HiddenLabels(self, hidden if self.share is None else hidden[self.share.number], rate)

    def folds(self, count: int, generator: Generator) -> list[HiddenLabels]:
        """Divide the known nodes into `count` folds, and hide each fold once; no more folds than known nodes."""
        nodes = self.mask.nonzero().flatten()
        if not len(nodes):
            raise InputError("no label is known: there is nothing to learn from")
        order = nodes[torch.randperm(len(nodes), generator=generator)]
        count = min(count, len(nodes))
        found = []
        for fold in range(count):
            hidden = torch.zeros_like(self.mask)
            hidden[order[fold::count]] = True
            found.append(HiddenLabels(self, hidden, 1 / count))
        return found


@dataclass(frozen=True, eq=False)
class HiddenLabels:
    """The labels of one epoch, divided by the masked label strategy.

    Attributes:
        known: all known labels.
        hidden: `I_o`, the nodes whose input is hidden; on the CPU.
        rate: β, the probability with which each node was hidden.
    """

    known: KnownLabels
    hidden: Tensor
    rate: float

    @cached_property
    def given(self) -> KnownLabels:
        """`M_i Y`, `M_i = M_t - I_o M_t`: the labels that are inputs."""
        mask = self.known.mask & ~self.hidden
        return replace(self.known, mask=mask, onehot=self.known.onehot * self._column(mask))

    @cached_property
    def supervised(self) -> Tensor:
        """`I_o M_t`, and taught nodes in `I_o`: the nodes whose own label is hidden. Only these supervise."""
        return self.known.supervising & self.hidden

    @cached_property
    def shown(self) -> Tensor:
        """`I_i` as a column of zeros and ones."""
        return self._column(~self.hidden)

    def mask(self, state: Tensor, constant_scale: bool) -> Tensor:
        """Return `I_i ((I - M_t) Ŷ + M_t Y) / (1 - β)`, the masked label strategy on the looping state.

        With `constant_scale`, the backward pass ignores the factor `1/(1-β)`, as in the paper; otherwise the factor is
        part of the gradient.
        """
        clamped = self.known.clamp(state)
        scaled = clamped * (self.shown / (1 - self.rate))
        if not (constant_scale and scaled.requires_grad):
            return scaled
        shown = clamped * self.shown
        return shown + (scaled - shown).detach()

    def masked(self, constant_scale: bool) -> LabelInput:
        """Return `mask` as factors and offsets of the rows."""
        clamped, factor = self.known.clamped, self.shown / (1 - self.rate)
        scale = clamped.scale * factor
        backward = clamped.scale * self.shown if constant_scale else scale
        return LabelInput(scale, clamped.offset * factor, backward)

    def _column(self, mask: Tensor) -> Tensor:
        return mask.to(self.known.onehot)[:, None]
