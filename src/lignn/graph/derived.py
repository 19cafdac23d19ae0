"""Columns of the nodes that follow from how they are joined, beside those of their own table.

What edges carry gives columns, see `carried`.

A column whose values join rows is a category, whatever its values look like, and gives another column: how many rows
have the same value. It is computed anew from the rows that are there, so new rows and other graphs get it by the same
rule. Labels have no part in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lignn.errors import InputError
from lignn.graph.joins import texts_of

if TYPE_CHECKING:
    from lignn.graph.graph import Graph


def columns(graph: Graph) -> pa.Table:
    """Return the table of a graph with the columns that follow from its links."""
    table = pa.table({"": pa.nulls(graph.num_nodes)}).select([]) if graph.table is None else graph.table
    for name in () if graph.reading is None or graph.reading.links is None else graph.reading.links.columns:
        if name in table.column_names:
            category = texts_of(table.column(name), name).dictionary_encode()
            table = table.set_column(table.column_names.index(name), name, category)
            table = table.append_column(number_of(name), _alike(category))
    if graph.edge_table is None:
        return table
    more = graph.edge_table.of_nodes(graph.num_nodes)
    if twice := set(more.column_names).intersection(table.column_names):
        raise InputError(f"{graph.name}: the column {min(twice)!r} has the name of one that the edges give; rename it")
    names = [*table.column_names, *more.column_names]
    return pa.table([*table.columns, *more.columns], names=names)


def number_of(name: str) -> str:
    """Return the name of the column with the number of rows that share a value of another one."""
    return f"{name} (rows)"


def _alike(category: pa.DictionaryArray) -> pa.Array:
    """Return how many rows have the same value as each row; missing for an empty one."""
    code = category.indices.fill_null(-1).to_numpy()
    empty = code < 0
    counts = np.bincount(code[~empty], minlength=1)
    return pa.array(counts[code], pa.int64(), mask=empty)
