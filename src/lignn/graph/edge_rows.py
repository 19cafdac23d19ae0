"""Reading of the columns that edges carry, and of the nodes that only edges name."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from lignn.errors import DataWarning, quoted
from lignn.features.kinds import FEW
from lignn.graph import edge_table, names
from lignn.graph.carried import Carried, EdgeTable, both_ways
from lignn.graph.graph import Graph
from lignn.graph.metadata import Metadata
from lignn.graph.node_table import Nodes, note_twins
from lignn.graph.roles import Wanted
from lignn.graph.split import Split
from lignn.graph.table_file import TEXT, BadRowsError, Table
from lignn.graph.tables import kinds

_ENDS = ("source", "target")


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """The columns that edges carry, and what becomes of them.

    Attributes:
        rows: the columns, in the order of the edges.
        rule: what becomes of them.
        forms: columns and the kinds or readings that other tables are read by.
        notes: what was read otherwise than as it stands, in words.
    """

    rows: pa.Table
    rule: Carried
    forms: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def on(self, graph: Graph) -> Graph:
        """Return a graph with these edges, in the same order, in both directions and with what they carry."""
        return both_ways(graph, EdgeTable(graph.edge_index.numpy(), self.rows, self.rule))


def with_unknown(
    table: Table, ends: Mapping[str, str], nodes: Nodes, metadata: Metadata
) -> tuple[Nodes, tuple[str, ...]] | None:
    """Return the nodes with those that only edges name, and a note; None if the edges name no row of the nodes.

    Ends that are empty or mean unknown are no nodes; reading the edges says where they are.
    """
    kind = TEXT if edge_table.whole_numbers(nodes.ids) is None else pa.int64()
    try:
        named = _named(table, ends, kind, metadata)
    except BadRowsError:
        named = _named(table, ends, TEXT, metadata)
    known, marks = pc.is_in(named, nodes.ids), pa.array(["", *names.MISSING], TEXT)
    more = named.filter(pc.and_(pc.invert(known), pc.invert(pc.is_in(named, marks))))
    if not pc.any(known).as_py():
        return None
    if not len(more):
        return nodes, ()
    note = (
        f"nodes that only edges name: {len(more):,}, for example {quoted(more[0].as_py())}; they have no label and "
        "no columns of their own"
    )
    nodes = _extended(nodes, more)
    note_twins(f"{table.path}, nodes that only edges name", nodes.ids)
    return nodes, (note,)


def without_many_types(table: Table, ends: Mapping[str, str], wanted: Wanted) -> dict[str, str]:
    """Return the columns of edges by role, without types if nobody asked for them and there are more than `FEW`.

    They are told apart as shares then, with the other columns that the edges carry.
    """
    name = ends.get("edge_type")
    given = wanted.roles.get("edge_type") or (None if wanted.like is None else wanted.like.columns.get("edge_type"))
    if name is None or name == given or len(pc.unique(table.read([name], [name]).column(0))) <= FEW:
        return dict(ends)
    return {role: column for role, column in ends.items() if role != "edge_type"}


def read(table: Table, ends: Mapping[str, str], ignored: Collection[str], wanted: Wanted) -> EdgeRows | None:
    """Return the columns that edges carry, weights and types among them; None if nothing becomes of them.

    Args:
        table: the table of the edges.
        ends: its columns by role.
        ignored: columns to leave out.
        wanted: what the user says of the columns; the rule of another graph holds here too.
    """
    known = None if wanted.like is None else wanted.like.carried
    taken = {ends["source"], ends["target"], *ignored}
    columns = [name for name in table.columns if name not in taken]
    found = table.read(columns if known is None else [name for name in known.names if name in columns], ())
    read = kinds.features(table, found, wanted.kinds(table, None if wanted.like is None else wanted.like.edges))
    rows, forms, notes = read.table(found.column_names), tuple(read.forms.items()), tuple(read.notes)
    if known is None:
        rule = Carried.learned(rows, None if wanted.links is None else wanted.links.order, str(table.path))
        return EdgeRows(rows.select(rule.names), rule, forms, notes) if rule.columns else None
    for name in known.names:
        if name not in rows.column_names:
            words = f"{table.path}: no column {name!r}, which the model was trained with; its values count as missing"
            warnings.warn(words, DataWarning, stacklevel=2)
            empty = pa.nulls(rows.num_rows if rows.num_columns else _count(table, ends))
            rows = pa.table([*rows.columns, empty], names=[*rows.column_names, name])
    return EdgeRows(rows, known, forms, notes)


def _count(table: Table, ends: Mapping[str, str]) -> int:
    return sum(block.num_rows for block in table.blocks({ends["source"]: TEXT}))


def _named(table: Table, ends: Mapping[str, str], kind: pa.DataType, metadata: Metadata) -> pa.Array:
    """Return the different ends of the edges as texts, in the order of their first edges."""
    blocks = table.blocks({ends[end]: kind for end in _ENDS})
    columns = [column for block in blocks for column in block.columns]
    named = pc.unique(pa.chunked_array(columns, kind)).cast(TEXT)
    return named if kind != TEXT else pc.unique(metadata.normalised(named))


def _extended(nodes: Nodes, ids: pa.Array) -> Nodes:
    """Return the nodes with more of them, of which nothing but the id is known."""
    count = len(ids)

    def longer(values: np.ndarray | None, value: float) -> np.ndarray | None:
        if values is None:
            return None
        return np.concatenate([values, np.full((count, *values.shape[1:]), value, values.dtype)])

    def in_none(split: Split) -> Split:
        return Split(*(torch.cat([mask, mask.new_zeros(count)]) for mask in (split.train, split.val, split.test)))

    table = nodes.table
    if table is not None:
        empty = pa.table([pa.nulls(count, kind) for kind in table.schema.types], schema=table.schema)
        table = pa.concat_tables([table, empty])
    return replace(
        nodes,
        ids=pa.concat_arrays([nodes.ids, ids.cast(nodes.ids.type)]),
        x=None,
        table=table,
        y=longer(nodes.y, -1),
        splits=tuple(map(in_none, nodes.splits)),
        time=longer(nodes.time, np.nan),
        group=longer(nodes.group, -1),
    )
