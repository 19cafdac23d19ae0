"""Building of a store: from tables of any size or a graph in memory, whole or not at all, and resumable.

The work is done in a hidden folder beside the store, stage by stage. A build that was killed goes on after its last
complete stage if it is started again with the same source and options. In the end the folder is renamed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from lignn.atomic import alone, check_folder, check_place, install, locked, remove
from lignn.errors import ConfigError, InputError, unknown
from lignn.graph import Graph
from lignn.store import layout, partition, source
from lignn.store.layout import MANIFEST, Writer, write_array
from lignn.store.matrix import MatrixWriter
from lignn.store.source import Nodes

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

GIB = 2**30
_SHARE_OF_SORTING = 0.4
"""Share of the memory that DuckDB may use; the rest is for the arrays of the partition and of one part."""
_ROWS = 2**16
_STAGES = "stages.json"

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """How to build a store.

    Attributes:
        parts: number of parts.
        partition: "metis", "blocks", or the path of a file with the ids of all nodes in order.
        memory: bytes of memory to use, approximately.
        columns: names of columns of the tables by their roles.
        undirected: use every edge in both directions, as `Graph.to_undirected` does.
    """

    parts: int
    partition: str = "metis"
    memory: int = 4 * GIB
    columns: Mapping[str, str] = field(default_factory=dict)
    undirected: bool = False

    def __post_init__(self) -> None:
        if self.parts < 1:
            raise ConfigError(f"parts: at least 1 is needed, got {self.parts}")
        if self.partition not in partition.METHODS and not Path(self.partition).is_file():
            raise unknown("partition", self.partition, partition.METHODS)
        if self.memory < GIB // 4:
            raise ConfigError("memory: at least 256 MB are needed to build a store")


def build(origin: Graph | str | Path, folder: str | Path, options: Options, tell: Tell = lambda _: None) -> None:
    """Build the store `folder` from a graph or a folder of tables; an older store there is replaced.

    Args:
        origin: the graph, or the folder of tables.
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
            manifest = _Build(origin, options, stages, tell).run()
        except InputError:
            remove(work)  # there is nothing to go on from
            raise
        layout.write_manifest(work, manifest)
        for scratch in ("build.duckdb", "build.duckdb.wal", "sorting", "features", _STAGES):
            remove(work / scratch)
        install(work, target)


def _ours(folder: Path) -> list[str]:
    """Return the names of the files of an older store."""
    if not layout.is_store(folder):
        return []
    return [f"{name}.bin" for name in layout.read_manifest(folder)["arrays"]]


def _identity(origin: Graph | str | Path, options: Options) -> str:
    """Return what tells this build from others: its source and options."""
    if isinstance(origin, Graph):
        content = origin.fingerprint()
    else:
        found = sorted((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in Path(origin).iterdir())
        content = repr(found)
    columns = sorted(options.columns.items())
    text = f"{layout.FORMAT} {content} {options.parts} {options.partition} {columns} {options.undirected}"
    return hashlib.sha256(text.encode()).hexdigest()


class _Stages:
    """The folder of an unfinished build, and its complete stages."""

    def __init__(self, work: Path, identity: str) -> None:
        self.work, self.identity = work, identity
        file = work / _STAGES
        self.done: dict[str, Any] = {}
        if file.is_file():
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
    def __init__(self, origin: Graph | str | Path, options: Options, stages: _Stages, tell: Tell) -> None:
        self.origin, self.options, self.stages, self.work = origin, options, stages, stages.work
        self.tell, self.start = tell, time.monotonic()

    def run(self) -> dict[str, Any]:
        """Run all stages that are not complete, and return the manifest."""
        database = source.connect(self.work, int(self.options.memory * _SHARE_OF_SORTING))
        try:
            if isinstance(self.origin, Graph):
                nodes = source.of_graph(self.origin, database)
            else:
                nodes = source.of_tables(Path(self.origin), self.options.columns, database, self.work)
            if self.options.parts > nodes.count:
                raise InputError(f"parts: {nodes.count} nodes cannot be divided into {self.options.parts} parts")
            source.make_links(database, self.options.undirected)
            self._say(f"{nodes.count} nodes read")
            sizes = self.stages.once("order", lambda: self._order(nodes, database))
            self._say("nodes ordered")
            order = np.fromfile(self.work / "number.bin", np.int64)
            into = self.stages.once("in", lambda: self._sorted(database, order, sizes, "in"))
            self._say(f"{into['entries']} edges sorted")
            out = None
            if not into["symmetric"]:
                out = self.stages.once("out", lambda: self._sorted(database, order, sizes, "out"))
                self._say("reversed edges sorted")
        finally:
            database.close()
        arrays = self.stages.once("nodes", lambda: self._nodes(nodes, order))
        return self._manifest(nodes, sizes, into, out, arrays)

    def _say(self, words: str) -> None:
        self.tell(f"{words} ({time.monotonic() - self.start:.0f} s)")

    def _order(self, nodes: Nodes, database: DuckDBPyConnection) -> list[int]:
        """Write the node at each position, and return the number of nodes of each part."""
        degree = np.zeros(nodes.count, np.int64)
        for (target,) in _batches(database, "SELECT t FROM link"):
            degree += np.bincount(target, minlength=nodes.count)
        method, parts = self.options.partition, self.options.parts
        if method in partition.METHODS:
            order, sizes = partition.by_name(method, lambda: _links(database, nodes.count), degree, parts)
        else:
            given = partition.read_order(Path(method), lambda ids: _numbers(ids, nodes), nodes.count)
            order, sizes = partition.in_blocks(given, degree, parts)
        entry = write_array(self.work, "number", order.astype(np.int64))
        self.stages.done["number"] = entry
        return sizes

    def _sorted(self, database: DuckDBPyConnection, order: np.ndarray, sizes: list[int], direction: str) -> dict:
        """Sort the edges by their position, and write the matrices of one direction."""
        import pyarrow as pa

        position = np.empty(len(order), np.int32)
        position[order] = np.arange(len(order), dtype=np.int32)
        place = pa.table({"k": np.arange(len(order), dtype=np.int32), "p": position})
        database.register("place", place)
        weighted = source.is_weighted(database)
        row, column = ("t", "s") if direction == "in" else ("s", "t")
        rows = (
            f"SELECT a.p AS i, b.p AS j{', e.w' if weighted else ''} FROM link e "
            f"JOIN place a ON a.k = e.{row} JOIN place b ON b.k = e.{column} ORDER BY 1, 2"
        )
        writer = MatrixWriter(self.work, direction, sizes, weighted, counts=not self.options.undirected)
        for block in _batches(database, rows):
            writer.append(*block)
        return writer.close()

    def _nodes(self, nodes: Nodes, order: np.ndarray) -> dict[str, Any]:
        """Write features, labels, masks and ids in the order of the store."""
        arrays: dict[str, Any] = {}
        if nodes.y is not None:
            arrays["y"] = write_array(self.work, "y", nodes.y[order])
        for part, mask in nodes.masks.items():
            arrays[part] = write_array(self.work, part, mask[order])
        if nodes.ids is not None:
            arrays |= _write_ids(self.work, nodes, order)
        if sp.issparse(nodes.x):
            x = nodes.x[order]
            parts = {"x_data": x.data, "x_indices": x.indices.astype(np.int32), "x_indptr": x.indptr.astype(np.int64)}
            arrays |= {name: write_array(self.work, name, array) for name, array in parts.items()}
        elif nodes.x is not None:
            arrays["x"] = self._write_features(nodes.x, order)
        return arrays

    def _write_features(self, x: np.ndarray, order: np.ndarray) -> dict[str, Any]:
        double = x.dtype.kind == "f" and x.dtype.itemsize == 8
        writer = Writer(self.work, "x", np.float64 if double else np.float32, x.shape[1:])
        for first in range(0, len(order), _ROWS):
            rows = order[first : first + _ROWS]
            sorter = np.argsort(rows)  # reading a file in ascending order is quicker
            block = np.empty((len(rows), *x.shape[1:]), writer.dtype)
            block[sorter] = x[rows[sorter]]
            if not np.isfinite(block).all():
                row, feature = np.argwhere(~np.isfinite(block))[0]
                raise InputError(f"features: feature {feature} of node {rows[row]} is not a finite number")
            writer.append(block)
        return writer.entry()

    def _manifest(
        self, nodes: Nodes, sizes: list[int], into: dict[str, Any], out: dict[str, Any] | None, arrays: dict[str, Any]
    ) -> dict[str, Any]:
        directions = {"in": into} | ({} if out is None else {"out": out})
        matrices = {name: entry for each in directions.values() for name, entry in each["arrays"].items()}
        width = 0 if nodes.x is None else int(nodes.x.shape[1])
        return {
            "format": layout.FORMAT,
            "name": nodes.name,
            "nodes": nodes.count,
            "edges": into["entries"],
            "features": width,
            "feature_names": nodes.feature_names,
            "classes": nodes.class_names,
            "num_classes": 0 if nodes.y is None else int(nodes.y.shape[1] if nodes.y.ndim == 2 else nodes.y.max() + 1),
            "undirected": out is None,
            "weighted": into["weighted"],
            "partition": self.options.partition if self.options.partition in partition.METHODS else "order-file",
            "cut": into["cut"],
            "sizes": sizes,
            "parts": {name: each["parts"] for name, each in directions.items()},
            "arrays": {"number": self.stages.done["number"], **matrices, **arrays},
        }


def _batches(database: DuckDBPyConnection, query: str) -> Iterator[list[np.ndarray]]:
    """Yield the columns of a result, block by block."""
    for batch in database.sql(query).to_arrow_reader(2**20):
        yield [column.to_numpy(zero_copy_only=False) for column in batch.columns]


def _links(database: DuckDBPyConnection, nodes: int) -> sp.csr_array:
    """Return the symmetric pattern of the edges without self-loops, in memory."""
    (count,) = source.first(database, "SELECT count(*) FROM link WHERE s <> t")
    ends, filled = np.empty((2, count), np.int32), 0
    for s, t in _batches(database, "SELECT s, t FROM link WHERE s <> t"):
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


def _write_ids(work: Path, nodes: Nodes, order: np.ndarray) -> dict[str, Any]:
    import pyarrow as pa

    assert nodes.ids is not None
    ids = nodes.ids.cast(pa.large_binary()).take(pa.array(order))
    offsets = np.frombuffer(ids.buffers()[1], np.int64)[ids.offset : ids.offset + len(ids) + 1]
    content = np.frombuffer(ids.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    parts = {"id_offsets": offsets - offsets[0], "id_bytes": content}
    return {name: write_array(work, name, array) for name, array in parts.items()}
