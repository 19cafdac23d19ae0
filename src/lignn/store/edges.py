"""The edges of a store in DuckDB, which joins and sorts what does not fit into memory.

`edge` has an edge in each row: the numbers of its ends, `s` and `t`, and, if there are any, its weight `w` and the
number of its type, `k`. The view `link` has the edges to use: these, or both directions of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lignn.errors import ConfigError, LignnError, TableError
from lignn.graph import Graph, edge_table, names
from lignn.graph.metadata import Metadata
from lignn.graph.table_file import TEXT, BadRowsError, Table
from lignn.graph.validate import LARGEST_WEIGHT

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ROWS = 2**20
"""Rows that are taken from DuckDB at a time."""


@contextmanager
def connected(folder: Path, memory: int) -> Iterator[DuckDBPyConnection]:
    """Open the database of a build, which may use so many bytes of memory and any space in `folder`."""
    try:
        import duckdb
    except ImportError as error:
        raise ConfigError("a store is built by DuckDB: pip install 'lignn[store]'") from error
    try:
        with duckdb.connect(str(folder / "build.duckdb")) as connection:
            connection.execute(f"SET memory_limit = '{memory // 2**20}MiB'")
            connection.execute(f"SET temp_directory = '{str(folder / 'sorting').replace(chr(39), chr(39) * 2)}'")
            connection.execute("SET enable_progress_bar = false")
            connection.execute("SET preserve_insertion_order = false")
            yield connection
    except duckdb.Error as error:
        reason = str(error).strip().splitlines()[0]
        raise LignnError(
            f"the edges could not be sorted by DuckDB ({reason}); is the disk full? Make room or raise --memory, and "
            "start again"
        ) from error


def first(database: DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    """Return the first row of a result; all rows are fetched, else DuckDB would wait for the others to be."""
    return database.execute(query).fetchall()[0]


def batches(database: DuckDBPyConnection, query: str) -> Iterator[list[np.ndarray]]:
    """Yield the columns of a result, block by block."""
    for batch in database.sql(query).to_arrow_reader(ROWS):
        yield [column.to_numpy(zero_copy_only=False) for column in batch.columns]


def has(database: DuckDBPyConnection, column: str) -> bool:
    """Return whether the edges have this column: `w` or `k`."""
    return column in [row[0] for row in database.execute("DESCRIBE edge").fetchall()]


def of_graph(graph: Graph, database: DuckDBPyConnection) -> None:
    """Give the database the edges of a graph in memory."""
    source, target = graph.edge_index.numpy()
    columns: dict[str, Any] = {"s": source.astype(np.int32), "t": target.astype(np.int32)}
    if graph.edge_weight is not None:
        columns["w"] = graph.edge_weight.numpy().astype(np.float64)
    if graph.edge_type is not None:
        columns["k"] = graph.edge_type.numpy().astype(np.int32)
    database.register("edge", pa.table(columns))


def of_table(
    table: Table, columns: Mapping[str, str], ids: pa.Array, metadata: Metadata, database: DuckDBPyConnection
) -> tuple[str, ...] | None:
    """Read the table of edges into the database, unless an earlier build has; return the types of edges, if any.

    Args:
        table: the table.
        columns: its columns by role.
        ids: the ids of the nodes.
        metadata: what is known of the folder.
        database: where to put the edges.
    """
    if not first(database, "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'given'")[0]:
        numbers = edge_table.whole_numbers(ids)
        kinds = [pa.int64(), TEXT] if numbers is not None else [TEXT]
        for number, kind in enumerate(kinds):
            blocks = _Blocks(table, columns, metadata, kind)
            _join(blocks, ids if kind == TEXT else numbers, database)
            if blocks.problem is None:
                break
            database.execute("DROP TABLE given")
            if number == len(kinds) - 1:  # an end may be a number in another form, which is read as a text
                edge_table.tell_faults(table, columns, ids, metadata, blocks.problem)
        _check(table, columns, len(ids), database)
    return _typed(metadata, database)


class _Blocks:
    """Blocks of a table of edges as DuckDB takes them: source, target, weight and type as a text.

    Attributes:
        problem: why no more blocks came; None if all did.
    """

    def __init__(self, table: Table, columns: Mapping[str, str], metadata: Metadata, ends: pa.DataType) -> None:
        roles = [role for role in ("source", "target", "weight", "edge_type") if role in columns]
        kinds = {"source": ends, "target": ends, "weight": pa.float64(), "edge_type": TEXT}
        self.schema = pa.schema({role: kinds[role] for role in roles})
        self.problem: str | None = None
        self._blocks = table.blocks({columns[role]: kinds[role] for role in roles})
        self._exact = metadata

    def reader(self) -> pa.RecordBatchReader:
        """Return the blocks for DuckDB."""
        return pa.RecordBatchReader.from_batches(self.schema, self._checked())

    def _checked(self) -> Iterator[pa.RecordBatch]:
        """Yield all blocks up to a wrong one: DuckDB would hide an exception behind its own."""
        try:
            for block in self._blocks:
                arrays = [self._exact.normalised(array) if array.type == TEXT else array for array in block.columns]
                if "weight" in self.schema.names:
                    weight = arrays[2].to_numpy()
                    if not np.all((weight >= 0) & (weight <= LARGEST_WEIGHT)):
                        raise BadRowsError("a weight is negative, not finite or too large")
                yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        except BadRowsError as problem:
            self.problem = str(problem)


def _join(blocks: _Blocks, ids: pa.Array, database: DuckDBPyConnection) -> None:
    """Make the table `given` of pairs of node numbers, in one transaction: a killed build leaves no half table."""
    database.register("rows", blocks.reader())
    more = "".join(f", {name}" for name in blocks.schema.names[2:])
    numbered = ids.type != TEXT and ids.equals(pa.array(range(len(ids)), pa.int64()))
    if numbered:
        within = f"BETWEEN 0 AND {len(ids) - 1}"
        ends = (f"CASE WHEN {end} {within} THEN {end}::INTEGER END" for end in ("source", "target"))
        query = f"SELECT {', '.join(f'{end} AS {name}' for end, name in zip(ends, 'st', strict=True))}{more} FROM rows"
    else:
        database.register("node", pa.table({"id": ids, "number": np.arange(len(ids), dtype=np.int32)}))
        query = (
            f"SELECT a.number AS s, b.number AS t{more} FROM rows "
            "LEFT JOIN node a ON a.id = rows.source LEFT JOIN node b ON b.id = rows.target"
        )
    try:
        database.execute(f"CREATE TABLE given AS {query}")
    finally:
        database.unregister("rows")


def _check(table: Table, columns: Mapping[str, str], nodes: int, database: DuckDBPyConnection) -> None:
    """Refuse edges that join unknown nodes."""
    (unknown,) = first(database, "SELECT count(*) FROM given WHERE s IS NULL OR t IS NULL")
    if unknown:
        raise TableError(
            f"{table.path}: {unknown} edges join a node that is not among the {nodes} nodes (columns "
            f"{columns['source']!r}, {columns['target']!r}); add these nodes, or remove the edges"
        )


def _typed(metadata: Metadata, database: DuckDBPyConnection) -> tuple[str, ...] | None:
    """Make `edge` a view of the edges with the numbers of their types; return the types, if there are any."""
    there = [row[0] for row in database.execute("DESCRIBE given").fetchall()]
    weight = ", weight AS w" if "weight" in there else ""
    if "edge_type" not in there:
        database.execute(f"CREATE OR REPLACE TEMP VIEW edge AS SELECT s, t{weight} FROM given")
        return None
    present = [row[0] for row in database.execute("SELECT DISTINCT edge_type FROM given").fetchall()]
    types = names.sorted_classes(present) if metadata.edge_types is None else metadata.edge_types
    if not set(present).issubset(types):
        raise TableError(f"edges: the type {min(set(present).difference(types))!r} is not among those in graph.json")
    database.register("kind", pa.table({"name": list(types), "k": np.arange(len(types), dtype=np.int32)}))
    database.execute(
        f"CREATE OR REPLACE TEMP VIEW edge AS SELECT s, t{weight}, k FROM given JOIN kind ON kind.name = edge_type"
    )
    return tuple(types)


def make_links(database: DuckDBPyConnection, undirected: bool) -> None:
    """Make `link` a view of the edges, or of both directions of each: the larger weight of a pair's two counts."""
    kind = ", k" if has(database, "k") else ""
    selected = "SELECT * FROM edge"
    if undirected and has(database, "w"):
        both = f"SELECT s, t, sum(w) AS w{kind} FROM edge GROUP BY s, t{kind}"
        both = f"WITH forth AS ({both}) SELECT s, t, w{kind} FROM forth UNION ALL SELECT t, s, w{kind} FROM forth"
        selected = f"SELECT s, t, max(w) AS w{kind} FROM ({both}) GROUP BY s, t{kind} HAVING max(w) > 0"
    elif undirected:
        selected = f"SELECT s, t{kind} FROM edge UNION ALL SELECT t, s{kind} FROM edge WHERE s <> t"
    database.execute(f"CREATE OR REPLACE TEMP VIEW link AS {selected}")


def sorted_entries(
    database: DuckDBPyConnection, position: np.ndarray, ends: Sequence[str], kind: int | None
) -> Iterator[list[np.ndarray]]:
    """Yield the positions of the ends of the links in order, row by row, and their weights if there are any.

    Args:
        database: with the view `link`.
        position: position of each node in the store.
        ends: the end that is the row, and the end that is the column, of "s" and "t".
        kind: the type of the edges; None: all.
    """
    database.register("place", pa.table({"n": np.arange(len(position), dtype=np.int32), "p": position}))
    weight = ", e.w" if has(database, "w") else ""
    where = "" if kind is None else f" WHERE e.k = {kind}"
    row, column = ends
    return batches(
        database,
        f"SELECT a.p AS i, b.p AS j{weight} FROM link e "
        f"JOIN place a ON a.n = e.{row} JOIN place b ON b.n = e.{column}{where} ORDER BY 1, 2",
    )
