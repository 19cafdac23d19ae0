"""The classes that a model predicts: their names, numbers and order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from lignn.errors import InputError, did_you_mean
from lignn.graph import Graph
from lignn.labels.known import KnownLabels
from lignn.store import share_of


@dataclass(frozen=True)
class Classes:
    """The classes that a model predicts.

    Attributes:
        names: names of the classes in order; their numbers as text if the graph had no names.
        multilabel: whether a node may have several classes.
    """

    names: tuple[str, ...]
    multilabel: bool

    @classmethod
    def of(cls, graph: Graph) -> Classes:
        """Return the classes of a graph."""
        return cls(graph.class_names or tuple(map(str, range(graph.num_classes))), graph.is_multilabel)

    def __len__(self) -> int:
        return len(self.names)

    def number(self, label: Any) -> int:
        """Return the number of a class that is given by its number or its name."""
        if isinstance(label, Integral) and not isinstance(label, bool):
            if int(label) in range(len(self)):
                return int(label)
            raise InputError(f"class {label} is outside of 0 … {len(self) - 1}")
        if str(label) in self.names:
            return self.names.index(str(label))
        raise InputError(
            f"class {str(label)!r} was not there in training; {did_you_mean(str(label), self.names)} "
            "(a new class needs a new fit)"
        )

    def row(self, label: Any) -> Tensor:
        """Return a label as zeros and ones; for multi-label tasks a label is a collection of classes."""
        several = not isinstance(label, str) and isinstance(label, Iterable)
        if several and not self.multilabel:
            raise InputError(f"one class per node is needed, got {label!r}")
        row = torch.zeros(len(self))
        row[[self.number(one) for one in (label if several else [label])]] = 1
        return row

    def align(self, graph: Graph) -> Graph:
        """Return `graph` with its labels in the numbers of these classes, matched by name if it has names."""
        if graph.y is None:
            return graph.replace(class_names=self.names)
        if graph.is_multilabel != self.multilabel:
            kinds = ("one class", "several classes")
            raise InputError(
                f"{graph.name}: a node has {kinds[graph.is_multilabel]} there, "
                f"the model was trained with {kinds[self.multilabel]} per node"
            )
        theirs = graph.class_names or tuple(map(str, range(graph.num_classes)))
        if theirs == self.names:
            return graph.replace(class_names=self.names)
        y = self._aligned_rows(graph, theirs) if self.multilabel else self._aligned_numbers(graph, theirs)
        return graph.replace(y=y, class_names=self.names)

    def _aligned_numbers(self, graph: Graph, theirs: tuple[str, ...]) -> Tensor:
        assert graph.y is not None
        used = set(graph.y[graph.labelled].tolist())
        number = [self.number(name) if c in used else -1 for c, name in enumerate(theirs)]
        return torch.tensor([*number, -1])[graph.y]

    def _aligned_rows(self, graph: Graph, theirs: tuple[str, ...]) -> Tensor:
        assert graph.y is not None
        y = torch.zeros(graph.num_nodes, len(self), dtype=torch.int8)
        y[:, [self.number(name) for name in theirs]] = graph.y
        y[~graph.labelled] = -1
        return y

    def known(self, graph: Graph, mask: Tensor, dtype: torch.dtype) -> KnownLabels:
        """Return the labels of the nodes in `mask` of an aligned graph; there may be none."""
        share = share_of(graph)
        if mask.any() if share is None else share.processes.sum(mask.sum()):  # all processes must do the same
            return KnownLabels.of(graph, mask, dtype)
        return KnownLabels(mask, torch.zeros(graph.num_nodes, len(self), dtype=dtype), self.multilabel, share=share)
