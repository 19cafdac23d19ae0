"""What a store is built from: a folder of tables of any size, read by DuckDB, or a `Graph` in memory.

`nodes.csv` or `nodes.parquet` has the columns `id`, `label`, `split`, `split2` …, and features; `edges.csv` or
`edges.parquet` has `source`, `target` and `weight`. `features.npy` may hold the features instead. Other names of
columns are given by their roles, e.g. `{"source": "from"}`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from lignn.errors import ConfigError, DataWarning, TableError, quoted, unknown
from lignn.graph import Graph, files, headers, names
from lignn.graph.metadata import Metadata
from lignn.graph.split import PARTS

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

ROLES = ("id", "label", "source", "target", "weight")


@dataclass(frozen=True, eq=False)
class Nodes:
    """Everything about the nodes but their edges, in the order of the source.

    Attributes:
        name: name of the graph.
        count: number of nodes.
        x: features: an array, maybe a memory-mapped one, or a CSR matrix; None without features.
        y: class numbers (n) or 0/1 rows (n×c), -1 = unlabelled; None without labels.
        masks: n × splits, by part of a split.
        ids: the ids as texts; None if they are the numbers of the nodes.
        class_names: names of the classes.
        feature_names: names of the features.
    """

    name: str
    count: int
    x: Any
    y: np.ndarray | None
    masks: Mapping[str, np.ndarray]
    ids: pa.Array | None
    class_names: tuple[str, ...] | None
    feature_names: tuple[str, ...] | None


def connect(folder: Path, memory: int) -> DuckDBPyConnection:
    """Open the database of a build, which may use so many bytes of memory and any space in `folder`."""
    try:
        import duckdb
    except ImportError as error:
        raise ConfigError("a store is built by DuckDB: pip install 'lignn[store]'") from error
    connection = duckdb.connect(str(folder / "build.duckdb"))
    connection.execute(f"SET memory_limit = '{memory // 2**20}MiB'")
    connection.execute(f"SET temp_directory = {_text(str(folder / 'sorting'))}")
    connection.execute("SET enable_progress_bar = false")
    return connection


def first(database: DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    """Return the first row of a result; all rows are fetched, else DuckDB would wait for the others to be."""
    return database.execute(query).fetchall()[0]


def is_weighted(database: DuckDBPyConnection) -> bool:
    """Return whether the edges have weights."""
    return "w" in [row[0] for row in database.execute("DESCRIBE edge").fetchall()]


def make_links(database: DuckDBPyConnection, undirected: bool) -> None:
    """Make `link` a view of the edges, or of both directions of each: the larger weight of a pair's two counts."""
    selected = "SELECT * FROM edge"
    if undirected and is_weighted(database):
        both = "SELECT s, t, sum(w) AS w FROM edge GROUP BY s, t"
        both = f"WITH forth AS ({both}) SELECT s, t, w FROM forth UNION ALL SELECT t, s, w FROM forth"
        selected = f"SELECT s, t, max(w) AS w FROM ({both}) GROUP BY s, t HAVING max(w) > 0"
    elif undirected:
        selected = "SELECT s, t FROM edge UNION ALL SELECT t, s FROM edge WHERE s <> t"
    database.execute(f"CREATE OR REPLACE TEMP VIEW link AS {selected}")


def of_graph(graph: Graph, database: DuckDBPyConnection) -> Nodes:
    """Describe the nodes of a graph, and give the database its edges."""
    import pyarrow as pa

    source, target = graph.edge_index.numpy()
    columns = {"s": source.astype(np.int32), "t": target.astype(np.int32)}
    if graph.edge_weight is not None:
        columns["w"] = graph.edge_weight.numpy()
    database.register("edge", pa.table(columns))
    masks = {part: np.zeros((graph.num_nodes, len(graph.splits)), bool) for part in PARTS}
    for number, split in enumerate(graph.splits):
        for part in PARTS:
            masks[part][:, number] = getattr(split, part).numpy()
    return Nodes(
        graph.name,
        graph.num_nodes,
        graph.x if graph.x is None or sp.issparse(graph.x) else graph.x.numpy(),
        None if graph.y is None else graph.y.numpy(),
        masks,
        None if graph.node_ids is None else pa.array(graph.node_ids.tolist(), pa.string()),
        graph.class_names,
        graph.feature_names,
    )


def of_tables(folder: Path, columns: Mapping[str, str], database: DuckDBPyConnection, scratch: Path) -> Nodes:
    """Describe the nodes in a folder of tables, and give the database its edges; `scratch` may be written to."""
    for role in columns:
        if role not in ROLES:
            raise unknown("the role of a column", role, ROLES)
    nodes, edges = _Table(folder, "nodes", database), _Table(folder, "edges", database)
    ids = nodes.require(columns.get("id", "id"))
    if "labels" in nodes.columns:
        raise TableError(f"{nodes.path}: several labels per node are read from .npz files only; see Graph.write")
    count, distinct, given = first(database, f"SELECT count(*), count(DISTINCT {ids}), count({ids}) FROM {nodes.scan}")
    if not count:
        raise TableError(f"{nodes.path}: has no nodes")
    if not distinct == given == count:
        query = f"SELECT {ids} FROM {nodes.scan} GROUP BY 1 HAVING count(*) > 1 OR {ids} IS NULL LIMIT 1"
        (twice,) = first(database, query)
        raise TableError(f"{nodes.path}: the id {twice!r} is empty or repeated; every node needs its own")
    (numbered,) = first(
        database,
        f"SELECT bool_and(CAST({ids} AS VARCHAR) = CAST(k AS VARCHAR)) "
        f"FROM (SELECT {ids}, row_number() OVER () - 1 AS k FROM {nodes.scan})",
    )
    _join(nodes, ids, edges, columns, numbered, count, database)
    labels = nodes.texts(columns.get("label", "label"))
    metadata = Metadata.read(folder)
    y, classes = (None, metadata.classes) if labels is None else _labels(nodes.path, labels, metadata)
    x, feature_names = _features(folder, nodes, columns, scratch)
    return Nodes(
        files.valid_text(folder.resolve().name),
        count,
        x,
        y,
        _masks(nodes, count),
        None if numbered else nodes.texts(columns.get("id", "id")),
        classes if metadata.class_names else None,
        feature_names if metadata.feature_names else None,
    )


class _Table:
    """A table of a folder, as DuckDB reads it."""

    def __init__(self, folder: Path, name: str, database: DuckDBPyConnection) -> None:
        found = [path for path in (folder / f"{name}.csv", folder / f"{name}.parquet") if path.is_file()]
        if len(found) != 1:
            raise TableError(f"{folder}: {'both' if found else 'neither'} {name}.csv and {name}.parquet; one is needed")
        self.path, self.database = found[0], database
        path = _text(str(self.path))
        parquet = self.path.suffix == ".parquet"
        self.scan = f"read_parquet({path})" if parquet else f"read_csv({path}, all_varchar = true, header = true)"
        import duckdb

        try:
            self.columns = [row[0] for row in database.execute(f"DESCRIBE SELECT * FROM {self.scan}").fetchall()]
        except duckdb.Error as error:
            raise TableError(f"{self.path}: cannot be read ({str(error).splitlines()[0]})") from error

    def require(self, column: str) -> str:
        """Return a column as SQL names it."""
        if column not in self.columns:
            shown = ", ".join(map(quoted, self.columns[:10]))
            raise TableError(f"{self.path}: the column {column!r} is missing, the header has {shown}; see --column")
        return _name(column)

    def texts(self, column: str) -> pa.Array | None:
        """Return a column as texts, in the order of the rows; None if there is none."""
        if column not in self.columns:
            return None
        query = f"SELECT coalesce(CAST({_name(column)} AS VARCHAR), '') FROM {self.scan}"
        return self.database.sql(query).to_arrow_table().column(0).combine_chunks()


def _join(
    nodes: _Table,
    ids: str,
    edges: _Table,
    columns: Mapping[str, str],
    numbered: bool,
    count: int,
    database: DuckDBPyConnection,
) -> None:
    """Make `edge` a view or table of pairs of node numbers, with weights if there are any."""
    source, target = (edges.require(columns.get(role, role)) for role in ("source", "target"))
    weight = columns.get("weight", "weight")
    more = f", CAST({edges.require(weight)} AS DOUBLE) AS w" if weight in edges.columns else ""
    if numbered:
        ends = f"TRY_CAST({source} AS INTEGER) AS s, TRY_CAST({target} AS INTEGER) AS t"
        database.execute(f"CREATE OR REPLACE TEMP VIEW edge AS SELECT {ends}{more} FROM {edges.scan}")
    elif not first(database, "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'edge'")[0]:
        numbers = f"SELECT CAST({ids} AS VARCHAR) AS id, CAST(row_number() OVER () - 1 AS INTEGER) AS k"
        # In one transaction: a build that is killed here leaves no half table.
        database.execute(
            f"CREATE TABLE edge AS WITH node AS MATERIALIZED ({numbers} FROM {nodes.scan}) "
            f"SELECT a.k AS s, b.k AS t{more} FROM {edges.scan} e "
            f"LEFT JOIN node a ON a.id = CAST(e.{source} AS VARCHAR) "
            f"LEFT JOIN node b ON b.id = CAST(e.{target} AS VARCHAR)"
        )
    wrong = f"s IS NULL OR t IS NULL OR s NOT BETWEEN 0 AND {count - 1} OR t NOT BETWEEN 0 AND {count - 1}"
    wrong += " OR w IS NULL OR NOT isfinite(w) OR w < 0" if more else ""
    (bad,) = first(database, f"SELECT count(*) FROM edge WHERE {wrong}")
    if bad:
        raise TableError(
            f"{edges.path}: {bad} edges join an unknown node, or have a weight that is negative or no number; "
            "add these nodes, or remove the edges"
        )


def _labels(path: Path, column: pa.Array, metadata: Metadata) -> tuple[np.ndarray | None, tuple[str, ...] | None]:
    """Return class numbers and classes; an empty label and the usual marks mean unknown."""
    encoded = column.dictionary_encode()
    words = [names.normalised(word) for word in encoded.dictionary.to_pylist()]
    marks = names.unknown_labels(set(words), None, metadata.classes or ())
    classes = metadata.classes or names.sorted_classes(set(words) - marks)
    if others := set(words) - marks - set(classes):
        raise TableError(f"{path}: the label {min(others)!r} is not among the classes in graph.json")
    if told := sorted(marks - {""}):
        shown = ", ".join(map(quoted, told))
        warnings.warn(f"{path}, column 'label': read as unknown labels: {shown}", DataWarning, stacklevel=2)
    if not classes:
        return None, None
    number = {name: value for value, name in enumerate(classes)}
    numbers = np.array([number.get(word, -1) for word in words])
    return numbers[encoded.indices.to_numpy()], tuple(classes)


def _masks(nodes: _Table, count: int) -> dict[str, np.ndarray]:
    columns = [nodes.texts(name) for name in nodes.columns if headers.is_split(name)]
    words = [np.asarray(column.to_numpy(zero_copy_only=False)) for column in columns if column is not None]
    if not words:
        return dict.fromkeys(PARTS, np.zeros((count, 0), bool))
    return {part: np.stack([word == part for word in words], 1) for part in PARTS}


def _features(
    folder: Path, nodes: _Table, columns: Mapping[str, str], scratch: Path
) -> tuple[Any, tuple[str, ...] | None]:
    """Return the features: a file beside the tables, or the other columns of the nodes."""
    special = {columns.get(role, role) for role in ("id", "label")}
    own = [name for name in nodes.columns if headers.is_feature(name) and name not in special]
    if (folder / "features.npy").is_file():
        return np.load(folder / "features.npy", mmap_mode="r", allow_pickle=False), None
    if (folder / "features.npz").is_file():
        (count,) = first(nodes.database, f"SELECT count(*) FROM {nodes.scan}")
        return files.read_features(folder / "features.npz", count), None
    if not own:
        return None, None
    import duckdb

    selected = ", ".join(f"CAST({_name(name)} AS FLOAT)" for name in own)
    path = scratch / "features"
    try:
        with path.open("wb") as file:
            for batch in nodes.database.sql(f"SELECT {selected} FROM {nodes.scan}").to_arrow_reader(2**16):
                np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns]).tofile(file)
    except duckdb.Error as error:
        raise TableError(f"{nodes.path}: a feature is no number ({str(error).splitlines()[0]})") from error
    return np.memmap(path, np.float32, "r").reshape(-1, len(own)), tuple(own)


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
