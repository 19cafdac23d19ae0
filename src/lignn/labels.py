"""Known labels: the only place where a label becomes an input, or a target.

A method is given `KnownLabels` of its training nodes, never a graph's `y`. Each epoch divides them: the labels that may
be looked at and those that supervise are disjoint by construction, since both are cut from one mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Generator, Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from lignn.errors import ConfigError, InputError
from lignn.graph import Graph

_FEW_CLASSES = 16

_DRAWS = 1000
"""Of hidden nodes, before one is hidden whatever the draw."""

SoftmaxJacobian = Literal["exact", "diagonal"]


def softmax(logits: Tensor) -> Tensor:
    """Rows of probabilities."""
    if logits.shape[1] < _FEW_CLASSES:
        # Rows this short do not fill a vector register: along columns the softmax is several times faster.
        return logits.T.contiguous().softmax(0).T
    return logits.softmax(1)


class DiagonalSoftmax(torch.autograd.Function):
    """Softmax whose backward pass has only the diagonal of its Jacobian: `g ↦ p ∘ (1-p) ∘ g`."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        """`p`."""
        p = softmax(logits)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Tensor:
        """`p ∘ (1-p) ∘ g`."""
        (p,) = ctx.saved_tensors
        return p * (1 - p) * g


@dataclass(frozen=True, eq=False)
class KnownLabels:
    """The labels `M_t Y` of some nodes; nothing is known of the others.

    Attributes:
        mask: `M_t`, the nodes whose labels are known.
        onehot: `M_t Y`, n×c, rows of zeros elsewhere; multi-hot for multi-label tasks.
        multilabel: whether a node may have several classes: sigmoid and binary cross-entropy instead of softmax.
    """

    mask: Tensor
    onehot: Tensor
    multilabel: bool = False

    @classmethod
    def of(cls, graph: Graph, mask: Tensor, dtype: torch.dtype = torch.float32) -> KnownLabels:
        """The labels of the nodes in `mask`, which must all have one."""
        if graph.y is None:
            raise InputError(f"{graph.name} has no labels")
        if mask.shape != (graph.num_nodes,):
            raise InputError(f"a mask over {graph.num_nodes} nodes is needed, got shape {tuple(mask.shape)}")
        missing = (mask & ~graph.labelled).nonzero().flatten()
        if len(missing):
            raise InputError(f"node {missing[0].item()} is to be known, but has no label ({len(missing)} such nodes)")
        if not mask.any():
            raise InputError("no label is known: the training set is empty")
        if graph.is_multilabel:
            onehot = graph.y.to(dtype)
        else:
            onehot = functional.one_hot(graph.y.clamp(min=0), graph.num_classes).to(dtype)
        return cls(mask, onehot * mask[:, None], graph.is_multilabel)

    @property
    def num_classes(self) -> int:
        """Number of classes, c."""
        return self.onehot.shape[1]

    @cached_property
    def _rows(self) -> tuple[Tensor, Tensor]:
        nodes = self.mask.nonzero().flatten()
        return nodes, self.onehot[nodes]

    def clamp(self, state: Tensor) -> Tensor:
        """`(I - M_t) Ŷ + M_t Y`: predictions overwritten by what is known."""
        return state.index_copy(0, *self._rows)

    def activation(self, logits: Tensor, jacobian: SoftmaxJacobian = "exact") -> Tensor:
        """Probabilities: `σ` is softmax, or sigmoid for multi-label tasks, whose Jacobian is diagonal anyway."""
        if self.multilabel:
            return logits.sigmoid()
        return softmax(logits) if jacobian == "exact" else DiagonalSoftmax.apply(logits)

    def loss(self, probabilities: Tensor, nodes: Tensor) -> Tensor:
        """Mean cross-entropy over `nodes`, which must be known ones."""
        if (nodes & ~self.mask).any():
            raise InputError("only known labels can supervise")
        p, target = probabilities[nodes], self.onehot[nodes]
        tiny = torch.finfo(p.dtype).tiny
        if self.multilabel:
            return -(target * p.clamp(min=tiny).log() + (1 - target) * (1 - p).clamp(min=tiny).log()).mean()
        return -p.mul(target).sum(1).clamp(min=tiny).log().mean()

    def hide(self, rate: float, generator: Generator) -> HiddenLabels:
        """Draw `I_o`: every node, known or not, is hidden with probability `rate`; again, until a known one is.

        A node that was given its label is never supervised, so an epoch without a hidden known node would have no loss.
        With a rate so small that many draws hide none, one of them is hidden.
        """
        if not 0 < rate < 1:
            raise ConfigError(f"a mask rate lies between 0 and 1, got {rate}")
        nodes, _ = self._rows
        if not len(nodes):
            raise InputError("no label is known: there is nothing to learn from")
        for _ in range(_DRAWS):
            hidden = torch.rand(len(self.mask), generator=generator) < rate
            if (hidden & self.mask).any():
                break
        else:
            hidden[nodes[torch.randint(len(nodes), (), generator=generator)]] = True
        return HiddenLabels(self, hidden, rate)


@dataclass(frozen=True, eq=False)
class HiddenLabels:
    """One epoch's division of the labels by the masked label strategy.

    Attributes:
        known: all known labels.
        hidden: `I_o`, the nodes whose input is hidden.
        rate: the probability it was drawn with, β.
    """

    known: KnownLabels
    hidden: Tensor
    rate: float

    @cached_property
    def given(self) -> KnownLabels:
        """`M_i Y`, `M_i = M_t - I_o M_t`: the labels that may be looked at."""
        mask = self.known.mask & ~self.hidden
        return KnownLabels(mask, self.known.onehot * mask[:, None], self.known.multilabel)

    @cached_property
    def supervised(self) -> Tensor:
        """`I_o M_t`: the known nodes whose own label is hidden; only they supervise."""
        return self.known.mask & self.hidden

    @cached_property
    def shown(self) -> Tensor:
        """`I_i` as a column of zeros and ones."""
        return (~self.hidden).to(self.known.onehot.dtype)[:, None]

    def mask(self, state: Tensor, constant_scale: bool) -> Tensor:
        """`I_i ((I - M_t) Ŷ + M_t Y) / (1 - β)`, the masked label strategy on the looping state.

        With `constant_scale` the factor `1/(1-β)` is a constant of the backward pass, as in the paper; else
        differentiated.
        """
        clamped = self.known.clamp(state)
        scaled = clamped * (self.shown / (1 - self.rate))
        if not (constant_scale and scaled.requires_grad):
            return scaled
        shown = clamped * self.shown
        return shown + (scaled - shown).detach()
