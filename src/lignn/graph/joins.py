"""Edges that rules make of a table: rows that share a value, rows that follow each other, and nearest rows.

A value that rows share becomes a node, and each of its rows is joined to it, both ways: there are as many edges as
rows, never a clique. A value that is empty, that one row alone has or that nearly all rows share joins nothing.
With an order, each row is also joined to the two rows before and the two rows after it that have the same value.

The rules look at columns of the table only, never at labels. `joined` makes all edges of a table; `linked` makes a
graph of them, and joins new rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lignn.errors import InputError, quoted
from lignn.graph.links import Links

_FOLLOWING = 2
"""Rows before and after a row to which an order joins it."""
_NEARLY_ALL = 0.9
"""Share of the rows from which on a value says nothing."""
_TEXT = pa.large_string()


@dataclass(frozen=True, eq=False)
class Joined:
    """The edges of a table, of n rows.

    Attributes:
        edges: 2×E; rows come first, then the values that rows share. Each edge is there in both directions.
        kinds: E numbers of types, see `Links.types`.
        column: for each value, the number of its column among `Links.columns`.
        values: the values as texts.
        notes: what the rules did, in words.
    """

    edges: np.ndarray
    kinds: np.ndarray
    column: np.ndarray
    values: tuple[str, ...]
    notes: tuple[str, ...]


def joined(table: pa.Table, links: Links, near: np.ndarray | None = None) -> Joined:
    """Return the edges that the rules make.

    Args:
        table: one row per node.
        links: the rules.
        near: nearest rows as pairs of numbers, 2×E, see `nearest.pairs`.
    """
    parts: list[np.ndarray] = []
    columns: list[np.ndarray] = []
    values: list[str] = []
    notes: list[str] = []
    codes = [shared(table.column(name), name) for name in links.columns]
    for number, found in enumerate(codes):
        rows = np.flatnonzero(found.code >= 0)
        parts.append(np.stack([rows, table.num_rows + len(values) + found.code[rows]]))
        columns.append(np.full(len(found.values), number))
        values += found.values
        notes.append(found.note)
    if links.order is not None:
        order = ranks(table.column(links.order), links.order)
        everywhere = [np.zeros(table.num_rows, np.int64)]
        parts += [_following(code, order) for code in [found.code for found in codes] or everywhere]
    if links.nearest:
        assert near is not None
        parts.append(near)
    kinds = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    one_way = np.concatenate([np.empty((2, 0), np.int64), *parts], axis=1)
    both = np.concatenate([one_way, one_way[::-1]], axis=1)
    column = np.concatenate([np.empty(0, np.int64), *columns])
    return Joined(both, np.tile(kinds, 2), column, tuple(values), tuple(notes))


@dataclass(frozen=True, eq=False)
class Shared:
    """Which rows share values of a column.

    Attributes:
        code: number of each row's value among `values`; -1 for a value that joins nothing.
        values: the values that rows share, as texts, in the order of their first rows.
        note: how many rows they join, and why others are not joined.
    """

    code: np.ndarray
    values: tuple[str, ...]
    note: str


def shared(column: pa.ChunkedArray, name: str) -> Shared:
    """Return the values of a column that join rows."""
    texts = texts_of(column, name)
    encoded = texts.dictionary_encode()
    code = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
    n, present = len(code), code >= 0
    counts = np.bincount(code[present], minlength=len(encoded.dictionary))
    all_alike = counts > _NEARLY_ALL * n
    kept = (counts > 1) & ~all_alike
    place = np.where(kept, kept.cumsum() - 1, -1)
    values = tuple(encoded.dictionary.filter(pa.array(kept)).to_pylist())
    code[present] = place[code[present]]
    joins = "1 value joins" if len(values) == 1 else f"{len(values):,} values join"
    parts = [f"{name}: {joins} {int((code >= 0).sum()):,} of {n:,} rows"]
    if empty := int((~present).sum()):
        parts.append(f"{empty:,} rows have none")
    if (single := int((counts == 1).sum())) and n > 1:
        parts.append(f"{single:,} have one of their own")
    if all_alike.any():
        value = encoded.dictionary[int(all_alike.argmax())].as_py()
        parts.append(f"{quoted(value)}, which {counts.max():,} rows share, joins nothing")
    return Shared(code, values, "; ".join(parts))


def texts_of(column: pa.ChunkedArray, name: str) -> pa.Array:
    """Return the values of a column as texts, null for an empty one."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        texts = column.cast(_TEXT).combine_chunks()
    except pa.ArrowException as error:
        raise InputError(f"--link {name}: values of the type {column.type} cannot join rows ({error})") from error
    texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    texts = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, _TEXT), texts)


def ranks(column: pa.ChunkedArray, name: str) -> np.ndarray:
    """Return the place of each row in the order of a column, equal values in the order of the rows; -1 for a gap."""
    try:
        order = pc.sort_indices(column).to_numpy()
    except pa.ArrowException as error:
        raise InputError(f"--order {name}: values of the type {column.type} have no order ({error})") from error
    rank = np.empty(len(column), np.int64)
    rank[order] = np.arange(len(column))
    missing = pc.is_null(column, nan_is_null=True)
    rank[missing.to_numpy().astype(bool)] = -1
    return rank


def _following(code: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Return the pairs of rows of a value that follow each other, at most two places apart."""
    rows = np.flatnonzero((code >= 0) & (rank >= 0))
    rows = rows[np.lexsort((rank[rows], code[rows]))]
    pairs = [np.stack([rows[:-step], rows[step:]]) for step in range(1, _FOLLOWING + 1)]
    found = np.concatenate(pairs, axis=1)
    return found[:, code[found[0]] == code[found[1]]]
