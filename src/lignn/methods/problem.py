"""What a method sees, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import breadth_first_order
from torch import Generator, Tensor

from lignn.equilibrium import Solution
from lignn.graph import Graph
from lignn.labels import KnownLabels
from lignn.propagation import Adjacency, SparseMatrix
from lignn.propagation.adjacency import Normalization


@dataclass(frozen=True, eq=False)
class Problem:
    """A graph as a method sees it: features, edges, and the labels that are known; no others.

    Attributes:
        x: features, dense or sparse; None for a graph without.
        edges: the graph without features, labels and splits.
        labels: what is known.
    """

    x: Tensor | SparseMatrix | None
    edges: Graph
    labels: KnownLabels
    _operators: dict[tuple[str, float], Adjacency] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, graph: Graph, known: Tensor, dtype: torch.dtype = torch.float32) -> Problem:
        """The problem of `graph` with its labels of the nodes in `known` (a mask)."""
        return cls.with_labels(graph, KnownLabels.of(graph, known, dtype))

    @classmethod
    def with_labels(cls, graph: Graph, labels: KnownLabels) -> Problem:
        """The problem of `graph` with labels that need not be its own, in their precision."""
        dtype = labels.onehot.dtype
        x: Tensor | SparseMatrix | None = None
        if isinstance(graph.x, sp.csr_array):
            x = SparseMatrix.from_scipy(graph.x, dtype)
        elif graph.x is not None:
            x = graph.x.to(dtype)
        return cls(x, graph.replace(x=None, y=None, class_names=None, splits=()), labels)

    @property
    def dtype(self) -> torch.dtype:
        """Precision of everything."""
        return self.labels.onehot.dtype

    def adjacency(self, normalization: Normalization = "symmetric", self_loops: bool = True) -> Adjacency:
        """The operator of the graph so normalised; each is built once."""
        key = (normalization, self_loops)
        if key not in self._operators:
            self._operators[key] = Adjacency.normalized(self.edges, normalization, self_loops, self.dtype)
        return self._operators[key]

    def lazy(self, lam: float) -> Adjacency:
        """`A_λ = (1-λ) I + λ Ã`; each is built once."""
        key = ("lazy", lam)
        if key not in self._operators:
            self._operators[key] = self.adjacency().lazy(lam)
        return self._operators[key]

    def knowing(self, labels: KnownLabels) -> Problem:
        """The same graph with other known labels."""
        return replace(self, labels=labels)

    def hide_features(self, rate: float, generator: Generator) -> Problem:
        """Each node's features set to zero with probability `rate`, those of the others scaled by `1/(1-rate)`."""
        factor = (torch.rand(len(self.labels.mask), generator=generator) >= rate).to(self.dtype) / (1 - rate)
        x = self.x
        if isinstance(x, SparseMatrix):
            values = x.values * factor.repeat_interleave(x.indptr.diff())
            x = replace(x, values=values)
        elif x is not None:
            x = x * factor[:, None]
        return replace(self, x=x)

    @cached_property
    def evidence(self) -> Tensor:
        """The nodes that a known label reaches along the edges; any other's prediction rests on its features alone."""
        known = self.labels.mask.numpy()
        # One more node, with edges to all known ones, makes it a single search.
        start = sp.csr_array(known[None].astype(np.float32))
        links = self.edges.to_scipy()
        links.eliminate_zeros()
        whole = sp.block_array([[links, None], [start, sp.csr_array((1, 1))]])
        reached = np.zeros(len(known) + 1, dtype=bool)
        reached[breadth_first_order(whole.tocsr(), len(known), return_predecessors=False)] = True
        return torch.from_numpy(reached[:-1])


@dataclass(frozen=True, eq=False)
class Prediction:
    """Class probabilities of every node.

    Attributes:
        probabilities: n×c; rows sum to one, except for multi-label tasks.
        evidence: the nodes that a known label reaches; False: "no evidence".
        multilabel: whether a node may have several classes.
        solution: the account of the solve, for methods that have one.
    """

    probabilities: Tensor
    evidence: Tensor
    multilabel: bool = False
    solution: Solution | None = None

    @property
    def labels(self) -> Tensor:
        """Class numbers (n), or 0/1 rows (n×c) for multi-label tasks."""
        return (self.probabilities > 0.5).to(torch.int8) if self.multilabel else self.probabilities.argmax(1)
