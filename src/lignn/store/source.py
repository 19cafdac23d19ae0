"""What a store is built from: tables, read as `Graph.read` reads them but for their edges, or a `Graph` in memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from lignn.errors import DataWarning, InputError, TableError
from lignn.features import Preparation
from lignn.graph import Graph, Split, archive, files, node_table, table_reader
from lignn.graph.metadata import Metadata
from lignn.graph.opening import Options as Reading
from lignn.graph.roles import NodeColumns, Wanted
from lignn.graph.split import PARTS
from lignn.graph.table_file import TEXT, BadRowsError
from lignn.graph.table_reader import Tables
from lignn.graph.tables import findings
from lignn.store import edges

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ROWS = 2**16
"""Rows of features that are computed or copied at a time."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Everything about a graph but its edges, in the order of the source.

    Attributes:
        name: name of the graph.
        count: number of nodes.
        x: features: an array, maybe a memory-mapped one, or a CSR matrix; None without features.
        y: class numbers (n) or 0/1 rows (n×c), -1 = unlabelled; None without labels.
        masks: n × splits, by part of a split.
        ids: the ids as texts; None if they are the numbers of the nodes.
        class_names: names of the classes.
        feature_names: names of the features.
        preparation: what made the features of columns of the tables; None if they are as they were given.
        edge_types: names of the types of edges.
        more: `time` and `group` of the nodes, if they have them.
        reading: how the tables were read, as plain values.
    """

    name: str
    count: int
    x: Any
    y: np.ndarray | None
    masks: Mapping[str, np.ndarray]
    ids: pa.Array | None
    class_names: tuple[str, ...] | None
    feature_names: tuple[str, ...] | None
    preparation: Preparation | None = None
    edge_types: tuple[str, ...] | None = None
    more: Mapping[str, np.ndarray] = field(default_factory=dict)
    reading: dict[str, Any] | None = None


def of_graph(graph: Graph, raw: bool, database: DuckDBPyConnection, scratch: Path) -> Nodes:
    """Describe the nodes of a graph, and give the database its edges.

    Args:
        graph: the graph.
        raw: whether features are taken as they are; else those of its table are prepared, if it has one.
        database: receives the edges.
        scratch: a folder that may be written to.
    """
    if graph.value_of is not None:
        raise InputError(
            f"{graph.name}: rows that share values are joined in memory only; leave --link out for a store"
        )
    edges.of_graph(graph, database)
    x, preparation = graph.x if graph.x is None or sp.issparse(graph.x) else graph.x.numpy(), None
    if graph.table is not None and not (raw and x is not None):
        x, preparation = _prepared(graph.table, raw, graph.name, scratch)
    return Nodes(
        graph.name,
        graph.num_nodes,
        x,
        None if graph.y is None else graph.y.numpy(),
        _masks(graph.splits, graph.num_nodes),
        None if graph.node_ids is None else pa.array(graph.node_ids.tolist(), pa.large_string()),
        graph.class_names,
        graph.feature_names if preparation is None else None,
        preparation,
        graph.edge_types,
        {name: value for name in ("time", "group") if (value := getattr(graph, name)) is not None},
        None if graph.reading is None else asdict(graph.reading),
    )


def of_tables(tables: Tables, reading: Reading, memory: int, database: DuckDBPyConnection, scratch: Path) -> Nodes:
    """Describe the nodes of tables, and have the database read their edges.

    Args:
        tables: the tables.
        reading: what the user says of them.
        memory: bytes that the columns of features may take.
        database: receives the edges.
        scratch: a folder that may be written to.
    """
    if tables.edges is None:
        raise TableError(f"{tables.where}: is one table; a store needs the table of the edges too")
    metadata = Metadata() if tables.folder is None else Metadata.read(tables.folder)
    wanted = Wanted(reading.columns or {}, reading.ignore, reading.like)
    columns, ends, notes = table_reader.columns_of(tables, wanted, metadata)
    raw = reading.features == "raw" or metadata.is_exact
    own, table = _beside(tables, reading.features != "raw")
    if own is not None and columns.features:
        raise TableError(f"{tables.where}: features both as columns of the nodes and in {own.name}; keep one of them")
    if not raw:
        _check_size(tables, columns, memory)
    plain = replace(columns, features=(), type=None)
    chosen = plain if raw else columns
    try:
        nodes = node_table.read(tables.nodes, chosen, metadata, reading.missing, raw)
    except BadRowsError as problem:
        checks = node_table.checks(tables.nodes, chosen, metadata, reading.missing, raw)
        findings.report(tables.nodes, checks, str(problem))
    types = edges.of_table(tables.edges, ends, nodes.ids, metadata, database)
    x, preparation = None, None
    if (table := table or nodes.table) is not None:
        x, preparation = _prepared(table, False, tables.name, scratch)
    elif own is not None:
        x = _mapped(own, len(nodes.ids))
    elif columns.features:
        x = _written(node_table.numbers(tables.nodes, columns, metadata), len(columns.features), scratch)
    names = columns.features if preparation is None and columns.features and metadata.feature_names else None
    return Nodes(
        tables.name,
        len(nodes.ids),
        x,
        nodes.y,
        _masks(nodes.splits, len(nodes.ids)),
        None if _are_numbers(nodes.ids) and not metadata.node_ids else nodes.ids,
        nodes.classes if metadata.class_names else None,
        names,
        preparation,
        types,
        {name: value for name in ("time", "group") if (value := getattr(nodes, name)) is not None},
        asdict(table_reader.reading_of(tables, columns, ends, nodes, notes)),
    )


def _are_numbers(ids: pa.Array) -> bool:
    return bool(pc.all(pc.equal(ids, pa.array(range(len(ids))).cast(TEXT))).as_py())


def _masks(splits: tuple[Split, ...], nodes: int) -> dict[str, np.ndarray]:
    if not splits:
        return dict.fromkeys(PARTS, np.zeros((nodes, 0), bool))
    return {part: np.stack([getattr(split, part).numpy() for split in splits], 1) for part in PARTS}


def _beside(tables: Tables, prepare: bool) -> tuple[Path | None, pa.Table | None]:
    """Return the file of features beside the tables, and the columns of features that lignn has written there."""
    if tables.folder is None:
        return None, None
    table = tables.folder / table_reader.TABLE_FILE
    own = next((path for name in table_reader.FEATURE_FILES if (path := tables.folder / name).is_file()), None)
    return own, archive.read_table(table) if prepare and table.is_file() else None


def _mapped(path: Path, nodes: int) -> Any:
    """Return the features in a file, memory-mapped if they are dense."""
    if path.suffix != ".npy":
        return files.read_features(path, nodes)
    try:
        x = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise TableError(f"{path}: cannot be read as an array of numbers ({error})") from error
    if x.ndim != 2 or len(x) != nodes or x.dtype.kind not in "fiub":
        raise TableError(f"{path}: {nodes} rows of numbers are needed, it holds {x.dtype} of shape {x.shape}")
    return x


def _check_size(tables: Tables, columns: NodeColumns, memory: int) -> None:
    """Refuse to prepare columns that would not fit into memory."""
    path = Path(str(tables.nodes.path))
    size = path.stat().st_size if path.is_file() else 0
    if columns.features and size > memory:
        raise InputError(
            f"{path}: its columns are prepared as features in memory, where {size / 1e9:.3g} GB do not fit; raise "
            "--memory, put the features into features.npy beside it, or give --features raw if all are numbers"
        )


def _prepared(table: pa.Table, raw: bool, name: str, scratch: Path) -> tuple[Any, Preparation | None]:
    """Return the features that are made of columns, and what made them."""
    if raw:
        raise InputError(f"{name}: --features raw needs features as numbers; leave it out")
    preparation = Preparation.fit(table, None, name)
    blocks = (
        preparation.transform(table.slice(first, _ROWS), name) for first in range(0, max(table.num_rows, 1), _ROWS)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the fit has told
        if preparation.sparse:
            return sp.csr_array(sp.vstack(list(blocks), format="csr")), preparation
        width = len(preparation.feature_names)
        return (_written(blocks, width, scratch) if width else None), preparation


def _written(blocks: Iterator[np.ndarray], width: int, scratch: Path) -> np.ndarray:
    """Return blocks of rows as one array in a file of the folder."""
    path = scratch / "features"
    with path.open("wb") as file:
        for block in blocks:
            file.write(np.ascontiguousarray(block, np.float32).data)
    return np.memmap(path, np.float32, "r").reshape(-1, width)
