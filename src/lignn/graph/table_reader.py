"""Reading of graphs from tables, the form in which most people have their own data.

The nodes, one row per node (see `roles` for the headers that are recognised, and how columns are named):
    id         text or integer, unique; the order of the rows is the order of the nodes
    label      optional; empty, -1 or a mark such as NA = unlabelled
    labels     instead of `label` for multi-label graphs: labels joined by `|`; empty = unlabelled, a lone `|` = none
    split      optional; train, val, test or empty. `split2`, `split3` … hold further splits
    time       optional, only by name: numbers or dates
    group      optional, only by name: any values
    all others features: numbers, categories, dates, truth values and texts, with or without gaps
The edges, one row per edge: source, target (ids) and, optionally, weight and edge_type; what other columns say of the
ends of an edge becomes columns of the nodes, see `carried`, and nodes may be named by such edges only.

Tables are `nodes` and `edges` in one folder or in one SQLite file, or two files. Beside the tables in a folder may be:
`features.npy` (dense) or `features.npz` (by `scipy.sparse.save_npz`): instead of columns of features, rows as in nodes.
`features.arrow`: the columns of features that lignn wrote, in their types.
`graph.json`: see `metadata`. Without it the classes are the distinct labels, integers by value, then texts.

The texts of tables made by hand are normalised; those that lignn wrote are read exactly as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from os.path import isdir, lexists
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lignn.errors import DataWarning, InputError, TableError
from lignn.graph import (
    archive,
    arrow_tables,
    edge_table,
    files,
    headers,
    keys,
    linked,
    node_table,
    roles,
    table_file,
)
from lignn.graph.edge_table import Edges, UnknownNodesError
from lignn.graph.graph import Graph
from lignn.graph.metadata import Metadata
from lignn.graph.node_table import Nodes
from lignn.graph.reading import Reading, TableReading
from lignn.graph.roles import NodeColumns, Wanted
from lignn.graph.table_file import TEXT, BadRowsError, Table
from lignn.graph.tables import findings, kinds
from lignn.graph.tables.kinds import UndecidedError
from lignn.graph.text_table import of_sqlite

if TYPE_CHECKING:
    from lignn.graph.edge_rows import EdgeRows

FEATURE_FILES = ("features.npy", "features.npz")
TABLE_FILE = "features.arrow"
LISTS = "features"
"""The column that lists of features become."""


@dataclass(frozen=True)
class Tables:
    """The two tables of a graph.

    Attributes:
        name: name of the graph.
        where: what messages call the graph.
        nodes: the table of the nodes.
        edges: the table of the edges; None if rules make them.
        folder: the folder with further files, if there is one.
    """

    name: str
    where: str
    nodes: Table
    edges: Table | None
    folder: Path | None = None

    @classmethod
    def at(cls, path: Path, edges: Path | None = None) -> Tables:
        """Return the tables in a folder, in an SQLite file, or in two files."""
        if edges is not None:
            name = files.valid_text(path.resolve().parent.name)
            return cls(name, f"{path} and {edges}", table_file.open_table(path), table_file.open_table(edges))
        if path.name.lower().endswith(tuple(f".{ending}" for ending in table_file.ENDINGS)):
            return cls(files.valid_text(path.name.partition(".")[0]), str(path), table_file.open_table(path), None)
        if isdir(path):
            name = files.valid_text(path.resolve().name)
            return cls(name, str(path), table_file.find(path, "nodes"), table_file.find(path, "edges"), path)
        nodes, links = of_sqlite(path, "nodes"), of_sqlite(path, "edges")
        for table in (nodes, links):
            headers.check(table)
        return cls(files.valid_text(path.stem), str(path), nodes, links)

    @classmethod
    def in_memory(cls, nodes: Any, edges: Any, name: str) -> Tables:
        """Return tables of pandas, Polars or Arrow; without edges, one table."""
        if edges is None:
            return cls(name, name, arrow_tables.in_memory(name, nodes), None)
        return cls(name, name, arrow_tables.in_memory("nodes", nodes), arrow_tables.in_memory("edges", edges))


def read(tables: Tables, wanted: Wanted, missing: Collection[str] | None = None, raw: bool = False) -> Graph:
    """Read a graph from its tables; raise for all faults of both at once.

    Args:
        tables: the tables.
        wanted: what the user says of their columns, and of rows with faults.
        missing: labels that mean unknown, besides an empty one; by default `names.MISSING` and -1.
        raw: read all features as numbers in single precision, without a table.
    """
    attempt = _of_one_table if tables.edges is None else _of_two_tables
    try:
        graph = attempt(tables, wanted, missing, raw)
    except (BadRowsError, UndecidedError) as problem:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # they come again
            mended, notes = _mended(tables, wanted, missing, raw, str(problem))
        graph = attempt(mended, wanted, missing, raw)
        assert graph.reading is not None
        graph = graph.replace(reading=graph.reading.with_notes(notes))
    if wanted.strict and graph.reading is not None and (changed := graph.reading.mended(wanted.said)):
        raise TableError(f"{tables.where}: {changed}; --strict mends nothing, so say what it is, or correct it")
    return graph


def _of_two_tables(tables: Tables, wanted: Wanted, missing: Collection[str] | None, raw: bool) -> Graph:
    """Read a graph from a table of nodes and one of edges."""
    assert tables.edges is not None
    if wanted.links is not None and (wanted.links.columns or wanted.links.nearest):
        raise InputError(f"--link joins the rows of one table, {tables.where} has a table of the edges; leave one out")
    metadata = Metadata() if tables.folder is None else Metadata.read(tables.folder)
    columns, ends, notes = columns_of(tables, wanted, metadata)
    plain = raw or metadata.is_exact
    columns = replace(columns, type=None) if plain else columns
    nodes = node_table.read(tables.nodes, columns, metadata, missing, plain)
    ends, carried = (ends, None) if plain or _has_feature_file(tables) else _carried(tables, ends, wanted)
    try:
        edges = edge_table.read(tables.edges, ends, nodes.ids, metadata)
    except UnknownNodesError:
        fits = _other_keys(tables, columns, ends, metadata)
        found = None
        if not (len(fits) == 1 and "id" not in wanted.roles) and _may_grow(tables, wanted, plain):
            from lignn.graph import edge_rows

            found = edge_rows.with_unknown(tables.edges, ends, nodes, metadata)
        if found is None and (len(fits) != 1 or "id" in wanted.roles):
            hint = f"; {tables.nodes.path} has these ids in {fits[0]!r}: give --column id={fits[0]}" if fits else None
            edge_table.tell_unknown(tables.edges, ends, nodes.ids, metadata, hint)
        if found is None:
            columns = roles.of_nodes(tables.nodes, wanted, wanted.left_out(tables.nodes, tables.edges), fits[0])
            columns, notes = replace(columns, type=None) if plain else columns, (_note(fits[0]),)
            found = node_table.read(tables.nodes, columns, metadata, missing, plain), ()
        nodes, notes = found[0], (*notes, *found[1])
        edges = edge_table.read(tables.edges, ends, nodes.ids, metadata)
    nodes = _with_lists(tables, nodes, plain)
    reading = reading_of(tables, columns, ends, nodes, notes, carried)
    graph = _graph(tables, nodes, edges, metadata, reading, raw)
    return graph if carried is None else carried.on(graph)


def _may_grow(tables: Tables, wanted: Wanted, plain: bool) -> bool:
    """Return whether nodes that only edges name are nodes: not where each node has its row of numbers."""
    return not (plain or wanted.strict or _has_feature_file(tables))


def _mended(
    tables: Tables, wanted: Wanted, missing: Collection[str] | None, raw: bool, otherwise: str
) -> tuple[Tables, tuple[str, ...]]:
    """Return tables without the rows that cannot be used, and notes on them; raise for all faults unless they may go.

    Args:
        tables: the tables.
        wanted: what the user says.
        missing: labels that mean unknown.
        raw: see `read`.
        otherwise: what is wrong if no fault is found.
    """
    metadata = Metadata() if tables.folder is None else Metadata.read(tables.folder)
    plain = raw or metadata.is_exact
    whole = replace(tables, nodes=_readable(tables.nodes))
    if tables.edges is None:
        columns, ends = _columns_of_one(whole, wanted), None
    else:
        whole = replace(whole, edges=_readable(tables.edges))
        columns, ends, _ = columns_of(whole, wanted, metadata)
    checks = node_table.checks(whole.nodes, columns, metadata, missing, plain)
    found = [findings.scan(tables.nodes, checks, columns.id, repeats=wanted.strict or metadata.is_exact)]
    mended = replace(tables, nodes=tables.nodes.without(found[0].out))
    steps: list[Callable[[], object]] = [lambda: node_table.read(mended.nodes, columns, metadata, missing, plain)]
    if tables.edges is not None and ends is not None:
        ids = _ids(mended.nodes, columns.id, metadata) if wanted.skip_bad else found[0].ids
        others = _may_grow(tables, wanted, plain)
        found.append(findings.scan(tables.edges, edge_table.checks(ends, ids, metadata, others=others)))
        mended = replace(mended, edges=tables.edges.without(found[1].out))
        steps += [lambda: _carried(mended, ends, wanted)] * (not plain)
    lines = [line for each in found for line in each.lines]
    count = sum(len(each.bad) for each in found)
    undecided = []
    for step in steps:
        try:
            step()
        except UndecidedError as error:
            undecided.append(str(error))
        except BadRowsError as error:
            raise TableError(f"{tables.where}: {error}") from error
        except TableError:
            if not lines:  # else it may follow from rows that are left out
                raise
    if undecided or (lines and not wanted.skip_bad):
        advice = f"correct them, or leave out {count:,} row{'s' * (count > 1)} by --skip-bad" if count else ""
        raise TableError("\n".join([*lines, *undecided, *[advice] * bool(advice)]))
    if not any(each.out for each in found):
        raise TableError(f"{tables.where}: {otherwise}")
    repeated = len(found[0].repeated)
    say = (
        "rows repeat another one in every cell and count"
        if repeated > 1
        else "row repeats another one in every cell and counts"
    )
    notes = [f"{repeated:,} {say} once"] * bool(repeated)
    notes += [f"left out {count:,} row{'s' * (count > 1)}: {'; '.join(lines)}"] * bool(count)
    return mended, tuple(notes)


def _readable(table: Table) -> Table:
    """Return the table without rows that are too short, too long or no text."""
    bad = findings.scan(table, {name: findings.anything() for name in table.columns}).bad
    return table.without(bad) if bad else table


def _ids(table: Table, key: str | None, metadata: Metadata) -> set[str]:
    """Return the ids of the nodes."""
    assert key is not None
    column = table.read([key], [key]).column(0)
    return {text for chunk in column.chunks for text in metadata.normalised(chunk).to_pylist()}


def _of_one_table(tables: Tables, wanted: Wanted, missing: Collection[str] | None, raw: bool) -> Graph:
    """Read a graph from one table, whose rows are joined by rules; without a column of ids, their numbers are ids."""
    table = tables.nodes
    like = wanted.like
    if like is not None and like.edges is not None:
        raise TableError(
            f"{table.path}: is one table; the model was trained on a table of the edges too: give one, or a folder"
        )
    columns = _columns_of_one(tables, wanted)
    nodes = node_table.read(table, columns, Metadata(), missing, raw)
    of_nodes = TableReading(
        Path(str(table.path)).name,
        columns.pairs,
        len(columns.features) - len(nodes.refused),
        (*columns.ignored, *nodes.refused),
        nodes.notes,
        nodes.forms,
    )
    nothing = Edges(np.empty((2, 0), np.int64), None, None, None)
    graph = _graph(tables, nodes, nothing, Metadata(), Reading(of_nodes), raw)
    if columns.id is None:
        graph = graph.replace(node_ids=None)
    try:
        of_model = wanted.links is None and like is not None
        return linked.linked(graph, like.links if of_model and like is not None else wanted.links, of_model)
    except InputError as error:
        raise type(error)(str(error).replace(graph.name, tables.where, 1)) from error


def _columns_of_one(tables: Tables, wanted: Wanted) -> NodeColumns:
    """Return the columns of one table by role."""
    table = tables.nodes
    given, ignored = wanted.given(table, roles.OF_NODES), wanted.left_out(table)
    wanted.given(table, roles.OF_EDGES)
    wanted.check_kinds(table)
    key = given.get("id") or _key_of_rows(table, {*ignored, *given.values()})
    return replace(roles.of_nodes(table, wanted, ignored, key), type=None)


def _key_of_rows(table: Table, taken: Collection[str]) -> str | None:
    """Return the column of the ids of a table whose rows nothing else names: a usual header, and all values differ."""
    candidates = roles.candidates_for_ids(table, taken)
    columns = table.read(candidates, candidates).columns if candidates else []
    fit = [
        name
        for name, cells in zip(candidates, columns, strict=True)
        if pc.count_distinct(cells).as_py() == len(cells) and not pc.any(pc.equal(cells, "")).as_py()
    ]
    return fit[0] if len(fit) == 1 else None


def columns_of(
    tables: Tables, wanted: Wanted, metadata: Metadata
) -> tuple[NodeColumns, dict[str, str], tuple[str, ...]]:
    """Return the columns of the nodes and of the edges by role, and notes on them."""
    nodes, edges = tables.nodes, tables.edges
    assert edges is not None
    given, ignored = wanted.given(nodes, roles.OF_NODES), wanted.left_out(nodes, edges)
    given_ends = wanted.given(edges, roles.OF_EDGES)
    wanted.check_kinds(nodes, edges)
    if metadata.is_exact:
        given = metadata.node_roles | given
        present = {role: role for role in (*roles.ENDS[0], "weight") if role in edges.columns}
        ends = present | metadata.edge_roles | given_ends
        if lacking := [end for end in (*roles.ENDS[0], *ends) if ends.get(end) not in edges.columns]:
            raise headers.lacking(edges, lacking)
        if lacking := [role for role, name in given.items() if name not in nodes.columns]:
            raise headers.lacking(nodes, lacking)
        return roles.of_nodes(nodes, wanted, ignored, given["id"], metadata.node_roles), ends, ()
    taken, left_out, notes = {*ignored, *given.values()}, wanted.left_out(edges, nodes), []
    try:
        ends = roles.of_edges(edges, given_ends, left_out)
    except TableError:
        keyed = [given["id"]] if "id" in given else roles.candidates_for_ids(nodes, taken)
        free = [name for name in edges.columns if name not in {*left_out, *given_ends.values()}]
        pair = keys.ends(nodes, keyed[0], edges, free) if len(keyed) == 1 and not given_ends else []
        if len(pair) != 2:
            raise
        ends = roles.of_edges(edges, given_ends | dict(zip(roles.ENDS[0], pair, strict=True)), left_out)
        notes = [f"{pair[0]!r} and {pair[1]!r} of the edges hold values of {keyed[0]!r}"]
    key, note = (given["id"], "") if "id" in given else _key(tables, ends, taken)
    return roles.of_nodes(nodes, wanted, ignored, key), ends, (*notes, *[note] * bool(note))


def _key(tables: Tables, ends: dict[str, str], taken: Collection[str]) -> tuple[str, str]:
    """Return the column of the ids, and a note if its header is not a usual one."""
    assert tables.edges is not None
    nodes, pair = tables.nodes, [ends[end] for end in roles.ENDS[0]]
    candidates = roles.candidates_for_ids(nodes, taken)
    if len(candidates) == 1 and keys.likely(nodes, candidates, tables.edges, pair):
        return candidates[0], ""
    fits = keys.matching(nodes, candidates, tables.edges, pair)
    if name := roles.only(nodes, "id", fits):
        return name, ""
    free = [name for name in nodes.columns if name not in taken]
    if name := roles.only(nodes, "id", keys.matching(nodes, free, tables.edges, pair)):
        return name, _note(name)
    for among in (candidates, free):
        if name := roles.only(nodes, "id", keys.likely(nodes, among, tables.edges, pair)):
            return name, "" if name in candidates else _note(name)
    if len(candidates) == 1:
        return candidates[0], ""  # reading the edges says that they name none of its values
    raise headers.lacking(nodes, ["id"])


def _note(key: str) -> str:
    return f"the ends of the edges are values of {key!r}"


def _carried(tables: Tables, ends: dict[str, str], wanted: Wanted) -> tuple[dict[str, str], EdgeRows | None]:
    """Return the columns of the edges by role, and what the other columns carry, if there are any."""
    edges, like = tables.edges, wanted.like
    assert edges is not None
    left_out = wanted.left_out(edges, tables.nodes)
    others = set(edges.columns).difference(ends.values(), left_out)
    if like is not None and like.carried is None:
        others = set()  # the edges of the model carried nothing
    if not others and wanted.links is None and (like is None or like.carried is None):
        return ends, None
    from lignn.graph import edge_rows  # imports scikit-learn, which is slow

    ends = edge_rows.without_many_types(edges, ends, wanted) if others else ends
    return ends, edge_rows.read(edges, ends, left_out, wanted)


def _with_lists(tables: Tables, nodes: Nodes, plain: bool) -> Nodes:
    """Return the nodes with the lists of features in a file `features.json`, if there is one, as a column of texts."""
    paths = [] if tables.folder is None or plain else sorted(tables.folder.glob("*features.json"))
    if not paths:
        return nodes
    texts = files.read_lists(paths[0], nodes.ids.to_pylist())
    column = pa.array(texts, TEXT)
    table = pa.table({LISTS: column}, pa.schema([kinds.as_text(LISTS)]))
    if nodes.table is not None:
        table = nodes.table.append_column(kinds.as_text(LISTS), column)
    note = f"{paths[0].name}: lists of {pc.count(column).as_py():,} nodes, read as texts"
    return replace(nodes, x=None, table=table, notes=(*nodes.notes, note))


def _has_feature_file(tables: Tables) -> bool:
    """Return whether the features are in a file of their own, beside which there are no columns."""
    return tables.folder is not None and any(lexists(tables.folder / name) for name in FEATURE_FILES)


def _other_keys(tables: Tables, columns: NodeColumns, ends: dict[str, str], metadata: Metadata) -> list[str]:
    """Return the columns that have the ends of the edges."""
    assert tables.edges is not None
    if metadata.is_exact:
        return []
    free = [name for name in columns.features if name != columns.id]
    return keys.matching(tables.nodes, free, tables.edges, [ends["source"], ends["target"]])


def reading_of(
    tables: Tables,
    columns: NodeColumns,
    ends: dict[str, str],
    nodes: Nodes,
    notes: tuple[str, ...],
    carried: EdgeRows | None = None,
) -> Reading:
    """Return how the tables were read."""
    assert tables.edges is not None
    of_nodes = TableReading(
        Path(str(tables.nodes.path)).name,
        columns.pairs,
        len(columns.features) - len(nodes.refused),
        (*columns.ignored, *nodes.refused),
        (*notes, *nodes.notes),
        nodes.forms,
    )
    file, rule = Path(str(tables.edges.path)).name, None if carried is None else carried.rule
    others = tuple(name for name in tables.edges.columns if name not in {*ends.values(), *(rule.names if rule else ())})
    said = (f"in the order of {rule.order}",) if rule is not None and rule.order is not None else ()
    said, forms = (said, ()) if carried is None else ((*said, *carried.notes), carried.forms)
    of_edges = TableReading(file, tuple(ends.items()), 0 if rule is None else len(rule.columns), others, said, forms)
    return Reading(of_nodes, of_edges, carried=rule)


def _graph(tables: Tables, nodes: Nodes, edges: Edges, metadata: Metadata, reading: Reading, strict: bool) -> Graph:
    x, table, n = nodes.x, nodes.table, len(nodes.ids)
    stored = None if tables.folder is None else _read_features(tables.folder, n)
    if stored is not None:
        if x is not None or table is not None:
            raise TableError(
                f"{tables.where}: features both as columns of the nodes and in a separate file; keep one of them"
            )
        x = stored
    if tables.folder is not None and not strict and lexists(tables.folder / TABLE_FILE):
        table = archive.read_table(tables.folder / TABLE_FILE)
    numbered = not metadata.node_ids and pc.all(pc.equal(nodes.ids, pa.array(range(n)).cast(TEXT))).as_py()
    named = nodes.x is not None and metadata.feature_names
    try:
        return Graph(
            edges.index,
            x=x,
            y=nodes.y,
            edge_weight=edges.weight,
            num_nodes=n,
            node_ids=None if numbered else np.array(nodes.ids.to_pylist(), np.dtypes.StringDType()),
            class_names=nodes.classes if metadata.class_names else None,
            splits=nodes.splits,
            name=tables.name,
            feature_names=nodes.feature_names if named else None,
            table=table,
            edge_type=edges.type,
            edge_types=edges.types,
            time=nodes.time,
            group=nodes.group,
            reading=reading,
        )
    except InputError as error:
        raise type(error)(f"{tables.where}: {error}") from error


def _read_features(folder: Path, num_nodes: int) -> Any:
    """Return the features in features.npy or features.npz; None if there is no such file."""
    paths = [folder / name for name in FEATURE_FILES if lexists(folder / name)]
    if len(paths) > 1:
        raise TableError(f"{folder}: both {paths[0].name} and {paths[1].name} exist; keep one of them")
    return files.read_features(paths[0], num_nodes) if paths else None
