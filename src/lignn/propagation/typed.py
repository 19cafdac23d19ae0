"""`TypedAdjacency`: one propagation matrix for each type of edges, behind the interface of `Adjacency`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch

from lignn.errors import InputError, did_you_mean
from lignn.graph import Graph
from lignn.propagation.adjacency import Adjacency


@dataclass(frozen=True, eq=False, repr=False)
class TypedAdjacency(Adjacency):
    """The sum `Σ_r Ã_r` over the types r of edges, and the matrices Ã_r themselves.

    As an `Adjacency` it is the sum: so are its products, its transpose and all matrices that are derived from it. A
    network with a weight per type multiplies with the `parts`.

    Attributes:
        parts: Ã_r = D_r^-1 A_r, the mean over the sources of the edges of type r. A node without such edges has a row
            of zeros.
    """

    parts: tuple[Adjacency, ...] = ()

    @classmethod
    def of(
        cls,
        graph: Graph,
        types: Sequence[str] = (),
        both_directions: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """Return the operators of a graph, one per type.

        Args:
            graph: the graph. Its types are found by their names; it may lack some, whose matrices are then empty.
            types: names of the types, in the order of the operators; empty for a graph whose edges have no types, which
                are then all of one type.
            both_directions: add the operators of the reversed edges, in the same order. They are types of their own.
            dtype: float32 or float64.
        """
        kinds = list(by_type(graph, types))
        if both_directions:
            kinds += [kind.replace(edge_index=kind.edge_index.flip(0)) for kind in kinds]
        parts = tuple(Adjacency.normalized(kind, "row", self_loops=False, dtype=dtype) for kind in kinds)
        total = cls._wrap(sum((part.to_scipy() for part in parts[1:]), start=parts[0].to_scipy().copy()), dtype)
        return replace(total, parts=parts)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Return the operators with another dtype, on another device, or both."""
        moved = super().to(*args, **kwargs)
        return moved if moved is self else replace(moved, parts=tuple(part.to(*args, **kwargs) for part in self.parts))

    def stacked_norm(self) -> float:
        """Return `√(‖B‖₁ ‖B‖_∞)`, a bound of `‖B‖₂`, for `B = [I; Ã_1; …]`, whose rows sum to at most 1."""
        return float(np.sqrt(1 + self.to_scipy().sum(0).max()))

    def _wrap_like_self(self, csr: sp.csr_array) -> Any:
        """Build a matrix that is derived from the sum; it has no types."""
        return Adjacency._wrap(csr, self.dtype).to(self.device)


def by_type(graph: Graph, types: Sequence[str]) -> Iterator[Graph]:
    """Yield the graph with the edges of each type only."""
    if graph.edge_type is None or graph.edge_types is None:
        if types:
            raise InputError(f"{graph.name}: the edges have no types, the network needs {', '.join(types)}")
        yield graph
        return
    for number in graph.edge_type.unique().tolist():
        name = graph.edge_types[number]
        if name not in types:
            advice = did_you_mean(name, types) if types else "it was built for edges without types"
            raise InputError(f"{graph.name}: the network does not know edges of type {name!r}; {advice}")
    for name in types:
        yield graph.of_type(graph.edge_types.index(name) if name in graph.edge_types else -1)
