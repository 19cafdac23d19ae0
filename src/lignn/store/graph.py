"""`StoredGraph`: a graph in a store, read like a `Graph`; edges and features stay on the disk."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.atomic import whole_file
from lignn.errors import GraphError, InputError
from lignn.graph import Graph, Split, files, validate
from lignn.graph.reading import Reading
from lignn.graph.split import PARTS
from lignn.processes import ALONE, Processes, current
from lignn.store import layout
from lignn.store.parts import Part, parts, whole_rows
from lignn.store.share import Share

if TYPE_CHECKING:
    from lignn.features import Preparation

_LIVE = ("y", "class_names", "splits", "name", "reading", "keeps_features", "unit_rows")
"""Fields that may be replaced; the others are on the disk."""
_PER_NODE = ("time", "group")
"""Fields with a number per node, which may be missing."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class StoredGraph(Graph):
    """A graph in a store, or those of its rows that one of several processes holds.

    Nodes are in the order of the store. Labels and splits are in memory; ids are read when they are asked for.

    Attributes:
        path: folder of the store.
        manifest: what `store.json` says.
        first_part: number of the first part that this process holds.
        last_part: number of the part after the last one.
        processes: all processes that hold parts; by default those of `lignn.processes.current`.
        keeps_features: whether products of features and weights are kept in memory, see `StoredRows`.
        unit_rows: whether rows of sparse features are divided by their lengths when they are read.
    """

    path: Path
    manifest: dict[str, Any]
    first_part: int
    last_part: int
    processes: Processes
    keeps_features: bool
    unit_rows: bool

    def __init__(self, path: str | Path, processes: Processes | None = None, keeps_features: bool = True) -> None:
        path, processes = Path(path), processes or current()
        manifest = layout.read_manifest(path)
        parts = len(manifest["sizes"])
        if parts < processes.count:
            raise InputError(f"{path}: has {parts} parts, too few for {processes.count} processes; build it with more")
        self._set(path=path, manifest=manifest, processes=processes, first_part=0, last_part=parts)
        self._set(keeps_features=keeps_features, unit_rows=False)
        y = torch.from_numpy(self.array("y")) if "y" in manifest["arrays"] else None
        classes = manifest["classes"]
        if y is not None:
            y, classes = validate.labels(y, manifest["nodes"], classes)
        masks = [np.array(self.array(part)) for part in PARTS]
        runs = range(masks[0].shape[1])
        splits = tuple(Split(*(torch.from_numpy(mask[:, run].copy()) for mask in masks)) for run in runs)
        self._set(num_nodes=manifest["nodes"], y=y, class_names=None if classes is None else tuple(classes))
        self._set(splits=splits, name=manifest["name"])
        for name in ("feature_names", "edge_types"):
            self._set(**{name: None if manifest[name] is None else tuple(manifest[name])})
        for name in _PER_NODE:
            self._set(**{name: self.array(name) if name in manifest["arrays"] else None})
        self._set(reading=None if manifest["reading"] is None else Reading.restored(manifest["reading"]))

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name in {field.name for field in fields(Graph)}:
            if name in ("edge_index", "x"):
                raise GraphError(f"{self.name}: is a store on the disk, this needs the graph in memory: use to_graph()")
            return None
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"StoredGraph({self.name!r}: {self.num_nodes} of {self.total} nodes, {self.num_edges} edges)"

    def replace(self, **changes: Any) -> StoredGraph:
        """Return the graph with other labels, classes, splits or name; everything else is on the disk."""
        if wrong := [name for name in changes if name not in _LIVE]:
            raise GraphError(f"{self.name}: the {wrong[0]} of a store cannot be replaced; build another store")
        other = object.__new__(StoredGraph)
        other._set(**{name: value for name, value in vars(self).items() if name not in _DERIVED})
        other._set(**changes)
        if changes.get("y") is not None:
            y, classes = validate.labels(changes["y"], self.num_nodes, other.class_names)
            other._set(y=y, class_names=classes)
        return other

    def structure(self) -> StoredGraph:
        """Return nodes and edges alone, without labels or splits."""
        return self.replace(y=None, class_names=None, splits=())

    def mine(self) -> StoredGraph:
        """Return the rows of this process; the graph itself if it works alone."""
        count, rank, parts = self.processes.count, self.processes.rank, len(self.manifest["sizes"])
        if count == 1:
            return self
        other = self.replace(splits=())
        other._set(first_part=parts * rank // count, last_part=parts * (rank + 1) // count)
        first, last = other.rows.start, other.rows.stop
        other._set(num_nodes=last - first, y=None if self.y is None else self.y[first:last])
        per_node = {name: values for name in _PER_NODE if (values := getattr(self, name)) is not None}
        other._set(**{name: values[first:last] for name, values in per_node.items()})
        return other.replace(splits=tuple(other.share_of(split) for split in self.splits))

    def share_of(self, split: Split) -> Split:
        """Return the part of a split over the whole store that is over the rows of this process."""
        return Split(*(getattr(split, part)[self.rows] for part in PARTS))

    @cached_property
    def whole(self) -> StoredGraph:
        """The graph with the nodes of all processes, as this process alone can read it."""
        return StoredGraph(self.path, ALONE, self.keeps_features)

    @cached_property
    def num_classes(self) -> int:
        """Number of classes of the whole store."""
        return len(self.class_names) if self.class_names is not None else self.manifest["num_classes"]

    @cached_property
    def bounds(self) -> np.ndarray:
        """First position of each part, and the number of nodes."""
        return np.concatenate([[0], np.cumsum(self.manifest["sizes"])])

    @property
    def rows(self) -> slice:
        """Positions of the rows of this process in the store."""
        return slice(int(self.bounds[self.first_part]), int(self.bounds[self.last_part]))

    @cached_property
    def number(self) -> Tensor:
        """Number of each row's node in the source."""
        return torch.from_numpy(self.array("number")[self.rows])

    @cached_property
    def share(self) -> Share:
        """The nodes of the rows of this process."""
        return Share(self.number, self.total, self.processes)

    @property
    def total(self) -> int:
        """Number of nodes of the whole store."""
        return self.manifest["nodes"]

    @property
    def num_edges(self) -> int:
        """Number of edges of the whole store, repeated ones counted once."""
        return self.manifest["edges"]

    @property
    def num_features(self) -> int:
        """Number of features."""
        return self.manifest["features"]

    @property
    def is_undirected(self) -> bool:
        """Whether every edge has a reverse edge of the same weight."""
        return self.manifest["undirected"]

    @cached_property  # type: ignore[misc]
    def node_ids(self) -> np.ndarray:
        """Ids of the nodes, or their numbers in the source."""
        return self.ids_of(slice(0, self.num_nodes))

    @property
    def has_ids(self) -> bool:
        """Whether the nodes have ids other than their numbers in the source."""
        return "id_offsets" in self.manifest["arrays"]

    def ids_of(self, rows: slice) -> np.ndarray:
        """Return the ids of some rows of this process."""
        if not self.has_ids:
            return self.number[rows].numpy().astype(np.dtypes.StringDType())
        first = self.rows.start
        offsets = self.array("id_offsets")[first + rows.start : first + rows.stop + 1]
        content = self.array("id_bytes")[offsets[0] : offsets[-1]].tobytes()
        bounds = (offsets - offsets[0]).tolist()
        texts = [content[a:b].decode("utf-8") for a, b in pairwise(bounds)]
        return np.array(texts, np.dtypes.StringDType())

    def fingerprint(self) -> str:
        """Return the SHA-256 of the store's manifest, and of the labels and splits that this graph has."""
        digest = hashlib.sha256(self._checksum.encode())
        for tensor in (self.y, *(getattr(split, part) for split in self.splits for part in PARTS)):
            digest.update(b"" if tensor is None else tensor.numpy().tobytes())
        return digest.hexdigest()

    def array(self, name: str) -> np.ndarray:
        """Return a memory-mapped array of the store."""
        entry = self.manifest["arrays"].get(name)
        if entry is None:
            raise InputError(f"{self.path}: the store has no array {name!r}; build it again")
        return layout.map_array(self.path, name, entry)

    @cached_property
    def preparation(self) -> Preparation | None:
        """What made the features of the columns of tables; None if the features are as they were given."""
        from lignn.features import Preparation  # imports scikit-learn, which is slow

        record = self.manifest["preparation"]
        if record is None:
            return None
        arrays: dict[str, dict[str, np.ndarray]] = {}
        for name in self.manifest["arrays"]:
            if name.startswith("preparation."):
                _, group, key = name.split(".", 2)
                arrays.setdefault(group, {})[key] = np.array(self.array(name))
        return Preparation.restored(record, arrays)

    @property
    def kinds(self) -> list[int | None]:
        """The numbers of the types of edges; None alone if edges have no types."""
        return [None] if self.edge_types is None else list(range(len(self.edge_types)))

    def matrix(self, direction: str, kind: int | None = None) -> Sequence[Part]:
        """Return the parts of this process of a matrix, memory-mapped and checked.

        Args:
            direction: "in" or "out".
            kind: the number of a type of edges; None for edges without types.
        """
        name = self.matrix_name(direction, kind)
        told = self.manifest["parts"][name]
        blocks = ("local_indptr", "local_indices", "halo_indptr", "halo_indices", "halo_nodes")
        weights = ("local_values", "halo_values") if name in self.manifest["weighted"] else ()
        arrays = {block: self.array(f"{name}_{block}") for block in (*blocks, *weights)}
        held = range(self.first_part, self.last_part)
        return parts(str(self.path), arrays, told, self.bounds, held)

    def matrix_name(self, direction: str, kind: int | None) -> str:
        """Return the name of the matrix of a direction, which for an undirected graph is the same for both."""
        return layout.matrix_name("in" if self.is_undirected else direction, kind)

    def write(self, path: str | PathLike[str]) -> None:
        """Write an `.npz` file that refers to the store; `read_reference` reads it."""
        with whole_file(path) as temporary:
            np.savez(temporary, store=str(self.path.resolve()), checksum=self._checksum)

    @property
    def _checksum(self) -> str:
        return hashlib.sha256(repr(sorted(self.manifest["arrays"].items())).encode()).hexdigest()

    def to_graph(self) -> Graph:
        """Return the whole graph in memory, in the order of the source; repeated edges are merged."""
        number = self.number.numpy()
        back = np.argsort(number)
        matrices = [
            sp.vstack([whole_rows(part, self.total) for part in self.matrix("in", k)]).tocoo() for k in self.kinds
        ]
        ends = [np.stack([number[matrix.col], number[matrix.row]]) for matrix in matrices]
        typed = self.edge_types is not None
        x: Any = None
        if "x_data" in self.manifest["arrays"]:
            data, indices, indptr = (np.array(self.array(f"x_{part}")) for part in ("data", "indices", "indptr"))
            x = sp.csr_array((data, indices, indptr), shape=(self.total, self.num_features))[back]
        elif "x" in self.manifest["arrays"]:
            x = np.array(self.array("x"))[back]
        return Graph(
            np.concatenate(ends, 1),
            x=x,
            y=None if self.y is None else self.y[torch.from_numpy(back)],
            edge_weight=np.concatenate([each.data for each in matrices]) if self.manifest["weighted"] else None,
            num_nodes=self.total,
            node_ids=self.node_ids[back] if self.has_ids else None,
            class_names=self.class_names,
            splits=[Split(*(getattr(split, part)[back] for part in PARTS)) for split in self.splits],
            name=self.name,
            feature_names=self.feature_names,
            edge_type=np.repeat(np.arange(len(ends)), [each.shape[1] for each in ends]) if typed else None,
            edge_types=self.edge_types,
            **{name: getattr(self, name)[back] for name in _PER_NODE if getattr(self, name) is not None},
        )


_DERIVED = ("labelled", "num_classes", "number", "share", "node_ids", "whole")
"""Cached values, which depend on the labels or on the rows."""


def whole_of(graph: Graph) -> Graph:
    """Return the graph with the nodes of all processes: itself, unless it is a share of a stored graph."""
    return graph.whole if isinstance(graph, StoredGraph) else graph


def rows_of(graph: Graph) -> slice:
    """Return the numbers of the graph's nodes in the whole graph."""
    return graph.rows if isinstance(graph, StoredGraph) else slice(0, graph.num_nodes)


def share_of(graph: Graph) -> Share | None:
    """Return the nodes of the rows of this process; None for a graph in memory."""
    return graph.share if isinstance(graph, StoredGraph) else None


def in_source_order(graph: Graph, nodes: Tensor) -> Tensor:
    """Return ascending node numbers in the order of the source that the graph was read from."""
    return nodes[graph.number[nodes].argsort()] if isinstance(graph, StoredGraph) else nodes


def read_reference(path: Path) -> StoredGraph | None:
    """Return the stored graph that a file refers to; None if the file holds a graph itself."""
    arrays = files.read_npz(path, ("store", "checksum"))
    if set(arrays) != {"store", "checksum"}:
        return None
    graph = StoredGraph(str(arrays["store"]))
    if graph._checksum != str(arrays["checksum"]):
        raise InputError(f"{graph.path}: is not the store that the model was fitted on; put that one back")
    return graph
