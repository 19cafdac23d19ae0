"""What a method sees of a graph."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import breadth_first_order
from torch import Generator, Tensor

from lignn.graph import Graph
from lignn.labels import KnownLabels
from lignn.propagation import Adjacency, SparseMatrix
from lignn.propagation.adjacency import Normalization

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Problem:
    """A graph as a method sees it: features, edges, and only those labels that are known.

    Features, label matrices and operators lie on one device. The edges and all masks stay on the CPU.

    Attributes:
        x: features, dense or sparse; None for a graph without features.
        edges: the graph without features, labels and splits.
        labels: the known labels.
    """

    x: Tensor | SparseMatrix | None
    edges: Graph
    labels: KnownLabels
    _derived: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, graph: Graph, known: Tensor, dtype: torch.dtype = torch.float32) -> Problem:
        """Return the problem of `graph` in which the labels of the nodes in `known` (a mask) are known."""
        return cls.with_labels(graph, KnownLabels.of(graph, known, dtype))

    @classmethod
    def with_labels(cls, graph: Graph, labels: KnownLabels) -> Problem:
        """Return the problem of `graph` with labels that need not be its own, in the precision of the labels."""
        dtype = labels.onehot.dtype
        x: Tensor | SparseMatrix | None = None
        if isinstance(graph.x, sp.csr_array):
            x = SparseMatrix.from_scipy(graph.x, dtype)
        elif graph.x is not None:
            x = graph.x.to(dtype)
        return cls(x, graph.replace(x=None, y=None, class_names=None, splits=()), labels)

    @property
    def dtype(self) -> torch.dtype:
        """Precision of all numbers."""
        return self.labels.onehot.dtype

    @property
    def device(self) -> torch.device:
        """Where features, label matrices and operators lie."""
        return self.labels.onehot.device

    def to(self, device: torch.device | str) -> Problem:
        """Return the same problem on another device."""
        return Problem(None if self.x is None else self.x.to(device), self.edges, self.labels.to(device))

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return `make()`, computed once for this graph and kept with it; it must not depend on the labels."""
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]

    def adjacency(self, normalization: Normalization = "symmetric", self_loops: bool = True) -> Adjacency:
        """Return the normalised operator of the graph."""

        def make() -> Adjacency:
            return Adjacency.normalized(self.edges, normalization, self_loops, self.dtype).to(self.device)

        return self.once((normalization, self_loops), make)

    def lazy(self, lam: float) -> Adjacency:
        """Return `A_λ = (1-λ) I + λ Ã`."""
        return self.once(("lazy", lam), lambda: self.adjacency().lazy(lam))

    def knowing(self, labels: KnownLabels) -> Problem:
        """Return the same graph with other known labels."""
        return replace(self, labels=labels)

    def without_edges_at(self, nodes: Tensor) -> Problem:
        """Return the same nodes without the edges that touch `nodes` (a mask): what inductive training sees."""
        return replace(self, edges=self.edges.without_edges_at(nodes), _derived={})

    def hide_features(self, rate: float, generator: Generator) -> Problem:
        """Set each node's features to zero with probability `rate`, and scale the others by `1/(1-rate)`."""
        shown = torch.rand(len(self.labels.mask), generator=generator) >= rate
        factor = shown.to(self.device, self.dtype) / (1 - rate)
        x = self.x
        if isinstance(x, SparseMatrix):
            x = replace(x, values=x.values * factor.repeat_interleave(x.indptr.diff(), output_size=x.nnz))
        elif x is not None:
            x = x * factor[:, None]
        return replace(self, x=x)

    @cached_property
    def evidence(self) -> Tensor:
        """The nodes that a known label reaches along the edges; other predictions rest on features alone."""
        known = self.labels.mask.numpy()
        # One extra node with edges to all known ones turns this into a single search.
        start = sp.csr_array(known[None].astype(np.float32))
        links = self.edges.to_scipy()
        links.eliminate_zeros()
        whole = sp.block_array([[links, None], [start, sp.csr_array((1, 1))]])
        reached = np.zeros(len(known) + 1, dtype=bool)
        reached[breadth_first_order(whole.tocsr(), len(known), return_predecessors=False)] = True
        return torch.from_numpy(reached[:-1])
