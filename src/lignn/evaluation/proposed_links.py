"""Columns of one table whose values are worth joining rows by, found from types, headers and how often values repeat.

A column is proposed if it holds texts, or whole numbers under a header such as `card_id`; if more than `FEW` of its
values are shared, so that it is no small category; and if these join at least half of the rows. Labels have no part.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lignn.features.kinds import FEW
from lignn.graph import Graph
from lignn.graph.carried import is_time
from lignn.graph.joins import shared

_JOINED = 0.5
"""Share of the rows that a column must join."""
_KEY = re.compile(r"(^|[^a-z])(id|key|code|number|no|nr|zip|ip)$|[a-z](Id|ID|Code|Number|Nr|No)$")
"""Headers of whole numbers that name something; other whole numbers count or measure."""


@dataclass(frozen=True)
class ProposedColumn:
    """A column to link.

    Attributes:
        name: its name.
        values: number of values that rows share.
        rows: number of rows that they join.
        note: how many rows are joined, and why others are not.
    """

    name: str
    values: int
    rows: int
    note: str


@dataclass(frozen=True)
class Proposal:
    """Rules that would join the rows of one table.

    Attributes:
        columns: the columns to link.
        order: a column of times, in whose order rows of a value could follow each other; None if there is none, or the
            rows follow each other already.
    """

    columns: tuple[ProposedColumn, ...]
    order: str | None

    def command(self, arguments: Sequence[str]) -> str:
        """Return the command that fits a model with these rules; `arguments` name the table."""
        links = [word for column in self.columns for word in ("--link", column.name)]
        order = [] if self.order is None else ["--order", self.order]
        return shlex.join(["lignn", "fit", *arguments, *links, *order, "-o", "model"])


def proposed(graph: Graph) -> Proposal | None:
    """Return rules for one table whose columns join no rows yet; None if there is nothing to propose."""
    reading = graph.reading
    if reading is None or reading.links is None or reading.links.columns or graph.table is None:
        return None
    found = []
    for name, column in zip(graph.table.column_names, graph.table.columns, strict=True):
        if not _may_name(name, column.type):
            continue
        joins = shared(column, name)
        rows = int((joins.code >= 0).sum())
        if len(joins.values) > FEW and rows >= _JOINED * graph.num_nodes:
            found.append(ProposedColumn(name, len(joins.values), rows, joins.note))
    if not found:
        return None
    times = (name for name in graph.table.column_names if _is_time(graph, name))
    return Proposal(tuple(found), None if reading.links.order else next(times, None))


def _may_name(name: str, kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or (_is_whole(kind) and _KEY.search(name) is not None)
    )


def _is_time(graph: Graph, name: str) -> bool:
    """Return whether a column looks like times that are not all alike."""
    assert graph.table is not None
    column = graph.table.column(name)
    return is_time(name, column.type) and pc.count_distinct(column).as_py() > 1


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind))
