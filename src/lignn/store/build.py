"""Building of a store: from tables of any size or a graph in memory, whole or not at all, and resumable.

The work is done in a hidden folder beside the store, stage by stage. A build that was killed goes on after its last
complete stage if it is started again with the same source and options. In the end the folder is renamed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from lignn.atomic import alone, check_folder, check_place, install, locked, remove
from lignn.errors import ConfigError, InputError, unknown
from lignn.graph import Graph
from lignn.graph.opening import Options as Reading
from lignn.graph.table_reader import Tables
from lignn.store import edges, layout, partition, source
from lignn.store.layout import MANIFEST, write_array
from lignn.store.parts import MatrixWriter
from lignn.store.rows import write_nodes
from lignn.store.source import Nodes

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

GIB = 2**30
_SHARE_OF_SORTING = 0.4
"""Share of the memory that DuckDB may use; the rest is for the arrays of the partition and of one part."""
_STAGES = "stages.json"

Tell = Callable[[str], None]
Origin: TypeAlias = Graph | str | Path | tuple[Path, Path]


@dataclass(frozen=True)
class Options:
    """How to build a store.

    Attributes:
        parts: number of parts.
        partition: "metis", "blocks", or the path of a file with the ids of all nodes in order.
        memory: bytes of memory to use, approximately.
        undirected: use every edge in both directions, as `Graph.to_undirected` does.
        reading: how tables are read, as by `Graph.read`.
    """

    parts: int
    partition: str = "metis"
    memory: int = 4 * GIB
    undirected: bool = False
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        if self.parts < 1:
            raise ConfigError(f"parts: at least 1 is needed, got {self.parts}")
        if self.partition not in partition.METHODS and not Path(self.partition).is_file():
            raise unknown("partition", self.partition, partition.METHODS)
        if self.memory < GIB // 4:
            raise ConfigError("memory: at least 256 MB are needed to build a store")


def build(origin: Origin, folder: str | Path, options: Options, tell: Tell = lambda _: None) -> None:
    """Build the store `folder` from a graph or from tables; an older store there is replaced.

    Args:
        origin: the graph; the folder or SQLite file of its tables; or the tables of its nodes and of its edges.
        folder: where to put the store.
        options: how to build it.
        tell: called with a few words after every stage.
    """
    target = Path(folder)
    check_place(target)
    work = target.resolve().with_name(f".{target.name}.building")
    busy = f"{folder}: another lignn store build is making this store; wait until it is done"
    with locked(work.with_name(f"{work.name}.lock"), busy), alone(target):
        check_folder(target, MANIFEST, _ours(target))
        stages = _Stages(work, _identity(origin, options))
        try:
            layout.write_manifest(work, _Build(origin, options, stages, tell).run())
        except InputError:
            remove(work)  # there is nothing to go on from
            raise
        for scratch in ("build.duckdb", "build.duckdb.wal", "sorting", "features", _STAGES):
            remove(work / scratch)
        install(work, target)


def _ours(folder: Path) -> list[str]:
    """Return the names of the files of an older store."""
    if not layout.is_store(folder):
        return []
    return [f"{name}.bin" for name in layout.read_manifest(folder)["arrays"]]


def _identity(origin: Origin, options: Options) -> str:
    """Return what tells this build from others: its source and options."""
    if isinstance(origin, Graph):
        content = origin.fingerprint()
    else:
        paths = [Path(path) for path in (origin if isinstance(origin, tuple) else (origin,))]
        found = [file for path in paths for file in (path.iterdir() if path.is_dir() else [path])]
        content = repr(sorted((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in found))
    reading = options.reading
    how = (options.parts, options.partition, options.undirected, reading.missing, reading.ignore, reading.features)
    text = f"{layout.FORMAT} {content} {how} {sorted((reading.columns or {}).items())}"
    return hashlib.sha256(text.encode()).hexdigest()


class _Stages:
    """The folder of an unfinished build, and its complete stages."""

    def __init__(self, work: Path, identity: str) -> None:
        self.work, self.identity = work, identity
        file = work / _STAGES
        self.done: dict[str, Any] = {}
        with suppress(OSError, ValueError, LookupError, TypeError):  # there are none, or none that can be read
            found = json.loads(file.read_text(encoding="utf-8"))
            self.done = found["done"] if found["identity"] == identity else {}
        if not self.done:
            remove(work)
            work.mkdir()

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the facts that a stage leaves, of this run or an earlier one."""
        if name not in self.done:
            self.done[name] = make()
            temporary = self.work / f"{_STAGES}.new"
            temporary.write_text(json.dumps({"identity": self.identity, "done": self.done}), encoding="utf-8")
            temporary.replace(self.work / _STAGES)
        return self.done[name]


class _Build:
    def __init__(self, origin: Origin, options: Options, stages: _Stages, tell: Tell) -> None:
        self.origin, self.options, self.stages, self.work = origin, options, stages, stages.work
        self.tell, self.start = tell, time.monotonic()

    def run(self) -> dict[str, Any]:
        """Run all stages that are not complete, and return the manifest."""
        with edges.connected(self.work, int(self.options.memory * _SHARE_OF_SORTING)) as database:
            nodes = self._read(database)
            self.stages.once("read", lambda: nodes.count)
            if self.options.parts > nodes.count:
                raise InputError(f"parts: {nodes.count} nodes cannot be divided into {self.options.parts} parts")
            edges.make_links(database, self.options.undirected)
            self._say(f"{nodes.count} nodes read")
            sizes = self.stages.once("order", lambda: self._order(nodes, database))
            self._say("nodes ordered")
            order = np.fromfile(self.work / "number.bin", np.int64)
            position = np.empty(len(order), np.int32)
            position[order] = np.arange(len(order), dtype=np.int32)
            matrices = self._matrices(nodes, database, position, sizes)
        arrays = self.stages.once("nodes", lambda: write_nodes(self.work, nodes, order))
        return self._manifest(nodes, sizes, matrices, arrays)

    def _read(self, database: DuckDBPyConnection) -> Nodes:
        reading = self.options.reading
        if isinstance(self.origin, Graph):
            return source.of_graph(self.origin, reading.features == "raw", database, self.work)
        paths = self.origin if isinstance(self.origin, tuple) else (self.origin, None)
        tables = Tables.at(Path(paths[0]), None if paths[1] is None else Path(paths[1]))
        return source.of_tables(tables, reading, self.options.memory // 2, database, self.work)

    def _say(self, words: str) -> None:
        self.tell(f"{words} ({time.monotonic() - self.start:.0f} s)")

    def _order(self, nodes: Nodes, database: DuckDBPyConnection) -> list[int]:
        """Write the node at each position, and return the number of nodes of each part."""
        degree = np.zeros(nodes.count, np.int64)
        for (target,) in edges.batches(database, "SELECT t FROM link"):
            degree += np.bincount(target, minlength=nodes.count)
        method, parts = self.options.partition, self.options.parts
        if method in partition.METHODS:
            order, sizes = partition.by_name(method, lambda: _links(database, nodes.count), degree, parts)
        else:
            given = partition.read_order(Path(method), lambda ids: _numbers(ids, nodes), nodes.count)
            order, sizes = partition.in_blocks(given, degree, parts)
        self.stages.done["number"] = write_array(self.work, "number", order.astype(np.int64))
        return sizes

    def _matrices(
        self, nodes: Nodes, database: DuckDBPyConnection, position: np.ndarray, sizes: list[int]
    ) -> dict[str, dict[str, Any]]:
        """Return the facts about all matrices, by name; those of reversed edges are written only if they differ."""
        kinds: list[int | None] = [None] if nodes.edge_types is None else [*range(len(nodes.edge_types))]

        def write(direction: str) -> dict[str, dict[str, Any]]:
            ends, written = ("t", "s") if direction == "in" else ("s", "t"), {}
            for kind in kinds:
                name = layout.matrix_name(direction, kind)
                entries = edges.sorted_entries(database, position, ends, kind)
                written[name] = self.stages.once(name, partial(self._matrix, name, entries, database, sizes))
                self._say(f"{written[name]['entries']} edges sorted ({name})")
            return written

        into = write("in")
        return into if all(each["symmetric"] for each in into.values()) else into | write("out")

    def _matrix(
        self, name: str, entries: Iterator[list[np.ndarray]], database: DuckDBPyConnection, sizes: list[int]
    ) -> dict[str, Any]:
        """Write one matrix from its entries in order."""
        weighted = edges.has(database, "w")
        writer = MatrixWriter(self.work, name, sizes, weighted, counts=not self.options.undirected)
        for block in entries:
            writer.append(*block)
        return writer.close()

    def _manifest(
        self, nodes: Nodes, sizes: list[int], matrices: dict[str, dict[str, Any]], arrays: dict[str, Any]
    ) -> dict[str, Any]:
        into = [each for name, each in matrices.items() if name.startswith("in")]
        edges_, outside = sum(each["entries"] for each in into), sum(each["outside"] for each in into)
        y = nodes.y
        return {
            "format": layout.FORMAT,
            "name": nodes.name,
            "nodes": nodes.count,
            "edges": edges_,
            "features": 0 if nodes.x is None else int(nodes.x.shape[1]),
            "feature_names": nodes.feature_names,
            "preparation": None if nodes.preparation is None else nodes.preparation.state()[0],
            "classes": nodes.class_names,
            "num_classes": 0 if y is None else int(y.shape[1] if y.ndim == 2 else y.max() + 1),
            "edge_types": nodes.edge_types,
            "undirected": len(into) == len(matrices),
            "weighted": [name for name, each in matrices.items() if each["weighted"]],
            "reading": nodes.reading,
            "partition": self.options.partition if self.options.partition in partition.METHODS else "order-file",
            "cut": outside / max(edges_, 1),
            "sizes": sizes,
            "parts": {name: each["parts"] for name, each in matrices.items()},
            "arrays": {
                "number": self.stages.done["number"],
                **{name: entry for each in matrices.values() for name, entry in each["arrays"].items()},
                **arrays,
            },
        }


def _links(database: DuckDBPyConnection, nodes: int) -> sp.csr_array:
    """Return the symmetric pattern of the edges without self-loops, in memory."""
    (count,) = edges.first(database, "SELECT count(*) FROM link WHERE s <> t")
    ends, filled = np.empty((2, count), np.int32), 0
    for s, t in edges.batches(database, "SELECT s, t FROM link WHERE s <> t"):
        ends[:, filled : filled + len(s)] = s, t
        filled += len(s)
    matrix = sp.coo_array((np.ones(count, np.int8), ends), shape=(nodes, nodes)).tocsr()
    del ends
    back = matrix.T.tocsr()
    if not (np.array_equal(matrix.indptr, back.indptr) and np.array_equal(matrix.indices, back.indices)):
        matrix = (matrix + back).tocsr()
    matrix.sum_duplicates()
    return matrix


def _numbers(ids: list[str], nodes: Nodes) -> np.ndarray:
    """Return the numbers of the nodes with these ids; -1 for an id that there is not."""
    known = [str(number) for number in range(nodes.count)] if nodes.ids is None else nodes.ids.to_pylist()
    number = {name: value for value, name in enumerate(known)}
    return np.array([number.get(name, -1) for name in ids], np.int64)
