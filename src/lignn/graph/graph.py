"""`Graph`: one node-classification problem as data, frozen and validated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.errors import GraphError
from lignn.graph import validate
from lignn.graph.split import Split
from lignn.graph.validate import Features

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Graph:
    """A graph with features, edge weights and partly known labels.

    Edges stay as they are given: directed, information flows source → target (PyG's convention). `to_undirected`,
    `without_self_loops` and `coalesced` give changed graphs that share all unchanged tensors.

    Args:
        edge_index: 2×E integers, sources above targets.
        x: features, one row a node: dense, SciPy sparse or torch sparse; kept dense or as CSR.
        y: class numbers (n), -1 = unlabelled; or 0/1 rows (n×c) for multi-label tasks, a row of -1 = unlabelled.
        edge_weight: one finite, non-negative weight an edge.
        num_nodes: n; needed only if nothing else tells it.
        node_ids: unique names of the nodes.
        class_names: names of the classes.
        splits: public splits.
        name: what to call the graph in reports.
        feature_names: names of the columns of `x`.
    """

    edge_index: Tensor
    x: Features | None
    y: Tensor | None
    edge_weight: Tensor | None
    num_nodes: int
    node_ids: np.ndarray | None
    class_names: tuple[str, ...] | None
    splits: tuple[Split, ...]
    name: str
    feature_names: tuple[str, ...] | None

    def __init__(
        self,
        edge_index: Any,
        x: Any = None,
        y: Any = None,
        edge_weight: Any = None,
        num_nodes: int | None = None,
        node_ids: Sequence[str] | np.ndarray | None = None,
        class_names: Sequence[str] | None = None,
        splits: Iterable[Split] = (),
        name: str = "graph",
        feature_names: Sequence[str] | None = None,
    ) -> None:
        edge_index = validate.edges(edge_index)
        x = None if x is None else validate.features(x)
        n = _count_nodes(edge_index, x, y, num_nodes, node_ids)
        validate.edges_in_range(edge_index, n)
        values = {
            "edge_index": edge_index,
            "x": x,
            "y": None if y is None else validate.labels(y, n, class_names),
            "edge_weight": None if edge_weight is None else validate.edge_weights(edge_weight, edge_index.shape[1]),
            "num_nodes": n,
            "node_ids": None if node_ids is None else validate.node_ids(node_ids, n),
            "class_names": None if class_names is None else validate.class_names(class_names),
            "splits": tuple(splits),
            "name": name,
            "feature_names": None if feature_names is None else validate.feature_names(feature_names, x),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)
        for number, split in enumerate(self.splits):
            if split.num_nodes != n:
                raise GraphError(f"splits: split {number} is over {split.num_nodes} nodes, the graph has {n}")

    def replace(self, **changes: Any) -> Graph:
        """This graph with some parts changed, validated again; as many other features keep their names."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)} | changes
        if "feature_names" not in changes and getattr(parts["x"], "shape", ())[1:] != (self.num_features,):
            parts["feature_names"] = None
        return Graph(**parts)

    @property
    def num_edges(self) -> int:
        """Number of stored (directed) edges."""
        return self.edge_index.shape[1]

    @property
    def num_features(self) -> int:
        """Width of the features, 0 without features."""
        return 0 if self.x is None else self.x.shape[1]

    @cached_property
    def num_classes(self) -> int:
        """Number of classes: of the class names, else the largest label plus one; 0 without labels."""
        if self.class_names is not None:
            return len(self.class_names)
        if self.y is None:
            return 0
        return self.y.shape[1] if self.is_multilabel else int(self.y.max()) + 1

    @property
    def is_multilabel(self) -> bool:
        """Whether a node may have several classes at once."""
        return self.y is not None and self.y.ndim == 2

    @cached_property
    def labelled(self) -> Tensor:
        """Mask of the nodes whose label is given."""
        if self.y is None:
            return torch.zeros(self.num_nodes, dtype=torch.bool)
        return (self.y[:, 0] if self.is_multilabel else self.y) >= 0

    @cached_property
    def is_undirected(self) -> bool:
        """Whether every edge is there in both directions, as often and as heavy."""
        source, target = self.edge_index.numpy()
        weight = np.ones(self.num_edges) if self.edge_weight is None else self.edge_weight.numpy()
        forth, back = np.lexsort((weight, target, source)), np.lexsort((weight, source, target))
        pairs = ((source, target), (target, source), (weight, weight))
        return all(np.array_equal(ours[forth], reversed_[back]) for ours, reversed_ in pairs)

    def to_undirected(self, coalesce: bool = True) -> Graph:
        """Both directions of every edge.

        With `coalesce` each pair of nodes is joined once, by the larger of the two directions' weights (repeats summed
        first; a pair whose weights are all zero is not joined). Without, the reversed edges are appended and repeats
        kept (a self-loop is not its own reverse).
        """
        if coalesce:
            matrix = self.coalesced().to_scipy()
            return self._with_edges_of(matrix.maximum(matrix.T).tocoo())
        proper = self.edge_index[0] != self.edge_index[1]
        weight = self.edge_weight
        return self.replace(
            edge_index=torch.cat([self.edge_index, self.edge_index[:, proper].flip(0)], 1),
            edge_weight=None if weight is None else torch.cat([weight, weight[proper]]),
        )

    def without_self_loops(self) -> Graph:
        """Edges that join a node to itself removed."""
        return self._with_edges_where(self.edge_index[0] != self.edge_index[1])

    def coalesced(self) -> Graph:
        """Repeated edges merged (weights summed), sorted by source, then target."""
        return self._with_edges_of(self.to_scipy().tocoo())

    def without_edges_at(self, nodes: Tensor) -> Graph:
        """The graph that inductive training sees: edges that touch `nodes` (a mask) removed, the nodes kept."""
        return self._with_edges_where(~validate.mask(nodes, self.num_nodes)[self.edge_index].any(0))

    def _with_edges_where(self, keep: Tensor) -> Graph:
        weight = self.edge_weight
        return self.replace(edge_index=self.edge_index[:, keep], edge_weight=None if weight is None else weight[keep])

    def _with_edges_of(self, matrix: sp.coo_array) -> Graph:
        weight = None if self.edge_weight is None else torch.from_numpy(matrix.data).to(self.edge_weight.dtype)
        return self.replace(edge_index=np.stack(matrix.coords).astype(np.int64), edge_weight=weight)

    @classmethod
    def from_pyg(cls, data: Data, **parts: Any) -> Graph:
        """A graph from a PyG `Data` (its 1-D or n×runs masks become splits); `parts` overrides."""
        from lignn.graph import convert

        return convert.from_pyg(data, **parts)

    def to_pyg(self) -> Data:
        """This graph as a PyG `Data`; the first split gives the masks."""
        from lignn.graph import convert

        return convert.to_pyg(self)

    @classmethod
    def from_networkx(cls, graph: nx.Graph, label: str = "label", weight: str = "weight", x: str = "x") -> Graph:
        """A graph from NetworkX; the arguments name the node and edge attributes. Undirected edges go both ways."""
        from lignn.graph import convert

        return convert.from_networkx(graph, label, weight, x)

    def to_networkx(self) -> nx.MultiDiGraph:
        """This graph as a NetworkX multigraph with node names, `label`, `x` and `weight` attributes."""
        from lignn.graph import convert

        return convert.to_networkx(self)

    @classmethod
    def from_scipy(cls, matrix: sp.sparray, **parts: Any) -> Graph:
        """A graph from a SciPy matrix whose entry (i, j) is the weight of the edge i → j."""
        from lignn.graph import convert

        return convert.from_scipy(matrix, **parts)

    def to_scipy(self) -> sp.csr_array:
        """The matrix whose entry (i, j) is the summed weight of the edges i → j."""
        from lignn.graph import convert

        return convert.to_scipy(self)

    @classmethod
    def knn(cls, x: Any, k: int, **parts: Any) -> Graph:
        """A graph that joins each row of `x` to its `k` nearest others in Euclidean distance (row → neighbour)."""
        from lignn.graph import neighbours

        return neighbours.knn(x, k, **parts)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Graph:
        """A graph from a folder of tables (`nodes.csv`, `edges.csv`, …) or an `.npz` file."""
        from lignn.graph import files

        return files.read(path)

    def write(self, path: str | PathLike[str]) -> None:
        """Write this graph as a folder of tables, or as one file if `path` ends in `.npz`."""
        from lignn.graph import files

        files.write(self, path)

    def __repr__(self) -> str:
        parts = [f"{self.num_nodes} nodes", f"{self.num_edges} edges"]
        parts += [f"{self.num_features} features"] * (self.x is not None)
        parts += [f"{self.num_classes} classes"] * (self.y is not None)
        parts += [f"{len(self.splits)} splits"] * bool(self.splits)
        return f"Graph({self.name!r}: {', '.join(parts)})"


def _count_nodes(edge_index: Tensor, x: Features | None, y: Any, num_nodes: int | None, ids: Any) -> int:
    """The number of nodes as told by the parts, which must agree; the largest edge end if nothing else tells."""
    counts = {"x": x if x is None else x.shape[0], "num_nodes": num_nodes}
    counts |= {"node_ids": ids if ids is None else len(ids), "y": y if y is None else len(y)}
    told = {part: count for part, count in counts.items() if count is not None}
    if len(set(told.values())) > 1:
        raise GraphError("the parts disagree on the number of nodes: " + ", ".join(f"{k} {v}" for k, v in told.items()))
    n = next(iter(told.values())) if told else (int(edge_index.max()) + 1 if edge_index.numel() else 0)
    if n < 1:
        raise GraphError("the graph is empty: it has no nodes; give num_nodes for a graph without edges and features")
    return n
