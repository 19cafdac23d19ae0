"""A stored graph as a method sees it: the engine that streams its rows, alone or as one of several processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import torch
from torch import Generator, Tensor

from lignn.backbones import RGCN, Backbone
from lignn.equilibrium import Space
from lignn.equilibrium.norms import WHOLE, Spread
from lignn.errors import ConfigError
from lignn.labels import KnownLabels
from lignn.methods.problem import Problem
from lignn.processes import Processes
from lignn.propagation import Adjacency, StoredRows
from lignn.propagation.adjacency import Normalization
from lignn.propagation.rows import Held
from lignn.propagation.streamed import StreamedAdjacency, StreamedTyped
from lignn.store import StoredGraph


@dataclass(frozen=True, eq=False)
class StoredProblem(Problem):
    """A problem whose edges and features are on the disk; states and labels have the rows of this process."""

    x: Any
    edges: StoredGraph
    streamed: ClassVar[bool] = True

    @classmethod
    def with_labels(cls, graph: Any, labels: KnownLabels) -> StoredProblem:
        """Return the problem of the rows that this process holds, see `StoredGraph.mine`."""
        x = StoredRows.of(graph, graph.share, labels.onehot.dtype, graph.keeps_features)
        return cls(x, graph.structure(), labels)

    @cached_property
    def space(self) -> Space:
        """The reductions over the rows of all processes."""
        return WHOLE if self.processes.count == 1 else Spread(self.processes, self.edges.total)

    def to(self, device: torch.device | str) -> StoredProblem:
        """Return the problem itself, on the CPU."""
        if torch.device(device).type != "cpu":
            raise ConfigError(f"device: a store is streamed on the CPU, not on {device}; read the graph into memory")
        return self

    def adjacency(self, normalization: Normalization = "symmetric", self_loops: bool = True) -> Adjacency:
        """Return the operator that streams the rows of the graph; it has what networks use of an `Adjacency`."""

        def make() -> StreamedAdjacency:
            return StreamedAdjacency(self.edges, self.x.share, normalization, self_loops, self.dtype)

        return cast(Adjacency, self.once((normalization, self_loops), make))

    @property
    def processes(self) -> Processes:
        """The processes that share the graph."""
        return self.edges.processes

    def own_rows(self, whole: Tensor) -> Tensor:
        """Return those rows of a whole state, in the order of the store, that this process holds."""
        return whole[self.edges.rows].clone()

    def rows(self, state: Tensor) -> Tensor:
        """Return the state as `Rows`, which networks take like a tensor."""
        return cast(Tensor, Held(self.x.share, state))

    def operator(self, backbone: Backbone) -> Adjacency:
        """Return the operator that a backbone propagates with."""
        if not isinstance(backbone, RGCN):
            return self.adjacency(backbone.normalization, backbone.self_loops)

        def make() -> StreamedTyped:
            return StreamedTyped.of(self.edges, self.x.share, backbone.edge_types, backbone.both_directions, self.dtype)

        return cast(Adjacency, self.once(backbone.operator, make))

    def lazy(self, lam: float, type_weights: Mapping[str, float] | None = None) -> Adjacency:  # noqa: ARG002
        """Refuse: no A_λ is formed of a stored graph."""
        raise ConfigError(
            f"label propagation (λ = {lam}) needs the graph in memory; use lignn, or read it with to_graph"
        )

    def knowing(self, labels: KnownLabels) -> StoredProblem:
        """Return the same graph with other known labels."""
        return replace(self, labels=labels)

    def without_edges_at(self, nodes: Tensor) -> Problem:
        """Refuse: the edges of a store are fixed."""
        raise ConfigError(
            f"inductive: training without the edges of {int(nodes.sum())} nodes needs the graph in memory"
        )

    def hide_features(self, rate: float, generator: Generator) -> StoredProblem:
        """Set each node's features to zero with probability `rate`, and scale the others by `1/(1-rate)`."""
        shown = (self.labels.draw(generator) >= rate).to(self.dtype) / (1 - rate)
        return replace(self, x=self.x.scaled(shown))

    def drop_features(self, rate: float, generator: Generator) -> StoredProblem:
        """Set each entry of the features to zero with probability `rate`, and scale the others by `1/(1-rate)`."""
        return replace(self, x=self.x.dropped(rate, generator)) if self.x.shape[1] else self

    @cached_property
    def evidence(self) -> Tensor:
        """Mask of the nodes that a known label reaches along the edges."""
        return cast(Any, self.adjacency("none", False)).reached(self.labels.mask)
