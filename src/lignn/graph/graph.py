"""`Graph`: the data of one node-classification problem, immutable and validated."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.errors import GraphError
from lignn.graph import edges, names, validate
from lignn.graph.split import Split
from lignn.graph.validate import Features

if TYPE_CHECKING:
    import networkx as nx
    import pyarrow as pa
    from matplotlib.axes import Axes
    from torch_geometric.data import Data, HeteroData

    from lignn.graph.carried import EdgeTable
    from lignn.graph.reading import Reading


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Graph:
    """A graph with features, edge weights and partly known labels.

    Edges are kept as given. They are directed: information flows from source to target (PyG's convention).
    `to_undirected`, `without_self_loops` and `coalesced` return changed graphs that share all unchanged tensors.

    Args:
        edge_index: integers of shape 2×E, sources in the first row and targets in the second.
        x: features, one row per node: dense, SciPy sparse or torch sparse; stored dense or as CSR.
        y: class numbers (n), -1 = unlabelled; or 0/1 rows (n×c) for multi-label tasks, a row of -1 = unlabelled.
        edge_weight: one finite, non-negative weight per edge.
        num_nodes: number of nodes, n; needed only if no other argument determines it.
        node_ids: unique names of the nodes.
        class_names: names of the classes.
        splits: public splits.
        name: name of the graph in reports.
        feature_names: names of the columns of `x`.
        table: columns of the nodes as they were read, one row per node: features that `NodeClassifier` prepares.
        edge_type: one number per edge, from 0: its type.
        edge_types: names of the types of edges.
        time: one number per node, e.g. seconds since 1970; NaN = unknown.
        group: one number per node, -1 = unknown; nodes of a group belong on the same side of a split.
        reading: how the columns of the tables were understood, if the graph was read from tables.
        value_of: for a table whose rows are joined by values that they share, one number per node: that of the column
            whose value the node is, among those of `reading.links`; -1 = a row of the table.
        edge_table: the edges that carry columns, see `lignn.graph.carried`.
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
    table: pa.Table | None
    edge_type: Tensor | None
    edge_types: tuple[str, ...] | None
    time: np.ndarray | None
    group: np.ndarray | None
    reading: Reading | None
    value_of: np.ndarray | None
    edge_table: EdgeTable | None

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
        table: pa.Table | None = None,
        edge_type: Any = None,
        edge_types: Sequence[str] | None = None,
        time: Any = None,
        group: Any = None,
        reading: Reading | None = None,
        value_of: Any = None,
        edge_table: EdgeTable | None = None,
    ) -> None:
        edge_index = validate.edges(edge_index)
        x = None if x is None else validate.features(x)
        counts = {"x": x, "num_nodes": num_nodes, "node_ids": node_ids, "y": y, "table": table}
        n = validate.count_nodes(edge_index, counts)
        validate.edges_in_range(edge_index, n)
        if y is not None:
            y, class_names = validate.labels(y, n, class_names)
        if edge_type is not None:
            edge_type, edge_types = validate.edge_types(edge_type, edge_index.shape[1], edge_types)
        width = 0 if x is None else x.shape[1]
        values = {
            "edge_index": edge_index,
            "x": x,
            "y": y,
            "edge_weight": None if edge_weight is None else validate.edge_weights(edge_weight, edge_index.shape[1]),
            "num_nodes": n,
            "node_ids": None if node_ids is None else names.node_ids(node_ids, n),
            "class_names": None if class_names is None else names.class_names(class_names),
            "splits": tuple(splits),
            "name": name,
            "feature_names": None if feature_names is None else names.feature_names(feature_names, width),
            "table": table,
            "edge_type": edge_type,
            "edge_types": None if edge_types is None else tuple(edge_types),
            "time": None if time is None else validate.node_values("time", time, n, np.float64),
            "group": None if group is None else validate.node_values("group", group, n, np.int64),
            "reading": reading,
            "value_of": None if value_of is None else validate.node_values("value_of", value_of, n, np.int64),
            "edge_table": edge_table,
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)
        for number, split in enumerate(self.splits):
            if split.num_nodes != n:
                raise GraphError(f"splits: split {number} is over {split.num_nodes} nodes, the graph has {n}")

    def replace(self, **changes: Any) -> Graph:
        """Return this graph with some parts changed and validated.

        New features take the place of the table. They keep their names if there are as many.
        """
        parts = {field.name: getattr(self, field.name) for field in fields(self)} | changes
        if "feature_names" not in changes and getattr(parts["x"], "shape", ())[1:] != (self.num_features,):
            parts["feature_names"] = None
        if changes.get("x") is not None and "table" not in changes:
            parts["table"] = None
        return Graph(**parts)

    def structure(self) -> Graph:
        """Return nodes and edges alone: no features, labels or splits. Nothing is validated again."""
        bare = object.__new__(Graph)
        empty = dict.fromkeys(("x", "y", "class_names", "feature_names", "table", "time", "group"))
        empty |= {"splits": (), "edge_table": None}
        for field in fields(self):
            object.__setattr__(bare, field.name, empty.get(field.name, getattr(self, field.name)))
        return bare

    def fingerprint(self) -> str:
        """Return the SHA-256 of the graph's content; its name is not included."""
        from lignn.graph import archive

        return archive.fingerprint(self)

    @property
    def num_edges(self) -> int:
        """Number of stored (directed) edges."""
        return self.edge_index.shape[1]

    @property
    def has_features(self) -> bool:
        """Whether nodes have features, or columns that become features."""
        return self.num_features > 0 or self.table is not None or self.edge_table is not None

    @property
    def num_features(self) -> int:
        """Number of features, 0 without features."""
        return 0 if self.x is None else self.x.shape[1]

    @cached_property
    def num_classes(self) -> int:
        """Number of class names if there are any, else the largest label plus one; 0 without labels."""
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
        """Mask of the nodes that have a label."""
        if self.y is None:
            return torch.zeros(self.num_nodes, dtype=torch.bool)
        return (self.y[:, 0] if self.is_multilabel else self.y) >= 0

    @cached_property
    def is_row(self) -> Tensor:
        """Mask of the nodes that are rows of a table; others are values that rows share, see `value_of`."""
        if self.value_of is None:
            return torch.ones(self.num_nodes, dtype=torch.bool)
        return torch.from_numpy(self.value_of < 0)

    @cached_property
    def columns(self) -> pa.Table | None:
        """The table with what the edges add to it, see `lignn.graph.derived`; None if there is neither."""
        if self.edge_table is None and (self.table is None or self.reading is None):
            return self.table
        from lignn.graph import derived

        return derived.columns(self)

    @cached_property
    def is_undirected(self) -> bool:
        """Whether every edge has a reverse edge, equally often and with the same weights."""
        return edges.are_undirected(self)

    def to_undirected(self, coalesce: bool = True) -> Graph:
        """Return the graph with both directions of every edge.

        With `coalesce`, each pair of nodes is joined once in each direction. The weights of repeated edges are summed
        first, then the larger of the two directions is taken; a pair whose weights are all zero is not joined. Without
        `coalesce`, the reversed edges are appended, except those of self-loops, and repeated edges are kept. Edges of
        different types stay apart.
        """
        return edges.symmetrised(self) if coalesce else edges.with_reversed(self)

    def without_self_loops(self) -> Graph:
        """Return the graph without edges that join a node to itself."""
        return edges.where(self, self.edge_index[0] != self.edge_index[1])

    def coalesced(self) -> Graph:
        """Return the graph with repeated edges merged (weights summed), sorted by type, source, then target."""
        return edges.merged(self)

    def without_edges_at(self, nodes: Tensor) -> Graph:
        """Return the graph without the edges at `nodes` (a mask), as inductive training sees it; the nodes are kept."""
        return edges.where(self, ~validate.mask(nodes, self.num_nodes)[self.edge_index].any(0))

    def of_type(self, number: int) -> Graph:
        """Return the graph with the edges of one type only, which then have none."""
        return edges.of_type(self, number)

    @classmethod
    def from_pyg(cls, data: Data | HeteroData, **parts: Any) -> Graph:
        """Return a graph from a PyG `Data` or `HeteroData`; its masks (n or n×runs) become splits.

        Args:
            data: the PyG graph. Types of nodes become the column `type` of the table, see `lignn.graph.hetero`.
            parts: arguments of `Graph` that replace those taken from `data`.
        """
        from lignn.graph import convert

        return convert.from_pyg(data, **parts)

    def to_pyg(self) -> Data | HeteroData:
        """Return this graph as a PyG `Data`, or `HeteroData` if its table has a column `type`; first split as masks."""
        from lignn.graph import convert

        return convert.to_pyg(self)

    @classmethod
    def from_networkx(
        cls,
        graph: nx.Graph,
        label: str = "label",
        weight: str = "weight",
        x: str = "x",
        missing: Collection[str] | None = None,
        edge_type: str = "type",
    ) -> Graph:
        """Return a graph from NetworkX; an undirected edge becomes two directed ones.

        Args:
            graph: the NetworkX graph.
            label: node attribute with the label.
            weight: edge attribute with the weight.
            x: node attribute with the features.
            missing: texts of labels that mean unknown, see `read`.
            edge_type: edge attribute with the type.
        """
        from lignn.graph import convert

        return convert.from_networkx(graph, label, weight, x, missing, edge_type)

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return this graph as a NetworkX multigraph, with the attributes `label`, `x`, `weight` and `type`."""
        from lignn.graph import convert

        return convert.to_networkx(self)

    @classmethod
    def from_scipy(cls, matrix: sp.sparray, **parts: Any) -> Graph:
        """Return a graph from a SciPy matrix whose entry (i, j) is the weight of the edge i → j."""
        from lignn.graph import convert

        return convert.from_scipy(matrix, **parts)

    def to_scipy(self) -> sp.csr_array:
        """Return the matrix whose entry (i, j) is the summed weight of the edges i → j."""
        from lignn.graph import convert

        return convert.to_scipy(self)

    @classmethod
    def knn(cls, x: Any, k: int, **parts: Any) -> Graph:
        """Return a graph with an edge from each row of `x` to its `k` nearest other rows, in Euclidean distance."""
        from lignn.graph import neighbours

        return neighbours.knn(x, k, **parts)

    @classmethod
    def read(
        cls,
        path: str | PathLike[str],
        edges: str | PathLike[str] | None = None,
        *,
        missing: Collection[str] | None = None,
        columns: Mapping[str, str | Collection[str]] | None = None,
        ignore: Collection[str] = (),
        features: str = "auto",
        like: Reading | None = None,
        links: Collection[str] | None = None,
        order: str | None = None,
        skip_bad: bool = False,
        strict: bool = False,
    ) -> Graph:
        """Read a graph from tables or an `.npz` file; its `reading` tells how columns were understood.

        Args:
            path: a folder or an SQLite file with the tables `nodes` and `edges`, an `.npz` file, or a table of nodes.
            edges: the table of the edges, if `path` is that of the nodes; without one, rules join the rows.
            missing: labels that mean unknown, besides an empty one; by default -1 and the usual marks, such as NA, NaN,
                NULL and ?, except classes that are named in graph.json. A note tells if there are any.
            columns: the column of each role, see `lignn.graph.roles`; the usual headers are recognised without it. And
                the column, or columns, of each kind: "number", "category", "date" or "text"; else their cells tell.
            ignore: columns that are left out.
            features: "auto": features of any kind become `table`, and `x` too if all are numbers; "raw": numbers only.
            like: the reading of another graph, whose roles and rules hold where the tables have such columns.
            links: for one table, columns whose values join rows, and "nearest" or "nearest:k" for the k rows that are
                nearest by the other columns. By default "nearest".
            order: for one table, the column in whose order rows of a value follow each other; for edges that carry
                columns, the one in whose order the last edge of a node is the last.
            skip_bad: leave out rows with faults, and note how many; otherwise all faults are told in one error.
            strict: mend nothing. By default, rows that repeat another one in every cell count once, numbers and dates
                are read as people write them, and ids that only edges name are nodes; notes tell of each.
        """
        from lignn.graph import opening

        options = opening.Options(missing, columns, ignore, features, like, links, order, skip_bad, strict)
        return opening.read(path, edges, options)

    @classmethod
    def from_table(cls, rows: Any, name: str = "table", **options: Any) -> Graph:
        """Return a graph of one table of pandas, Polars or Arrow; `options` are those of `read`, such as `links`."""
        from lignn.graph import opening

        return opening.from_tables(rows, None, name, opening.Options(**options))

    @classmethod
    def from_tables(cls, nodes: Any, edges: Any, name: str = "graph", **options: Any) -> Graph:
        """Return a graph from two tables of pandas, Polars or Arrow; `options` are those of `read`."""
        from lignn.graph import opening

        return opening.from_tables(nodes, edges, name, opening.Options(**options))

    def write(self, path: str | PathLike[str]) -> None:
        """Write this graph to one file if `path` ends in `.npz`, else to a folder of tables."""
        path = Path(path)
        if path.suffix == ".npz":
            from lignn.graph import archive

            archive.write(self, path)
        else:
            from lignn.graph import table_writer

            table_writer.write(self, path)

    def plot_transitions(self, ax: Axes | None = None) -> Axes:
        """Draw how known labels follow each other along edges, `P(label j | label i, edge)`, and return the axes."""
        from lignn.graph import pictures

        return pictures.transitions(self, ax)

    def _repr_html_(self) -> str:
        from lignn.graph import pictures

        return pictures.facts(self)

    def __repr__(self) -> str:
        parts = [f"{self.num_nodes} nodes", f"{self.num_edges} edges"]
        parts += [f"{self.num_features} features"] * (self.x is not None)
        parts += [f"{self.num_classes} classes"] * (self.y is not None)
        parts += [f"{len(self.splits)} splits"] * bool(self.splits)
        return f"Graph({self.name!r}: {', '.join(parts)})"
