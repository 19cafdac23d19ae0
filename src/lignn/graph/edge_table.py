"""Reading of the table of edges: pairs of node numbers, weights and types."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lignn.graph import names
from lignn.graph.metadata import Metadata
from lignn.graph.table_file import TEXT, BadRowsError, Table
from lignn.graph.tables import findings
from lignn.graph.validate import LARGEST_WEIGHT

_ENDS = ("source", "target")
_ADVICE = "; add it to the nodes, or remove the edge"


class UnknownNodesError(BadRowsError):
    """Edges that join nodes which are not in the table of nodes."""


@dataclass(frozen=True)
class Edges:
    """What the table of edges holds."""

    index: np.ndarray
    weight: np.ndarray | None
    type: np.ndarray | None
    types: tuple[str, ...] | None


def read(table: Table, columns: Mapping[str, str], ids: pa.Array, metadata: Metadata) -> Edges:
    """Read the edges; raise `BadRowsError` if a row cannot be used, `checks` find which.

    Args:
        table: the table.
        columns: its columns by role.
        ids: the ids of the nodes.
        metadata: what is known of the folder.
    """
    numbers = whole_numbers(ids)
    if numbers is not None:
        with suppress(BadRowsError):  # an end may be a number in another form, or none
            return _read(table, columns, numbers, metadata)
    return _read(table, columns, ids, metadata)


def tell_faults(
    table: Table, columns: Mapping[str, str], ids: pa.Array, metadata: Metadata, otherwise: str
) -> NoReturn:
    """Raise the error for a table that cannot be read; `otherwise` is the message if no cell is found to be wrong."""
    findings.report(table, checks(columns, ids.to_pylist(), metadata), otherwise)


def tell_unknown(
    table: Table, columns: Mapping[str, str], ids: pa.Array, metadata: Metadata, hint: str | None = None
) -> NoReturn:
    """Raise the error for edges that join unknown nodes; `hint` says what to do."""
    findings.report(table, checks(columns, ids.to_pylist(), metadata, hint or _ADVICE), "an edge joins an unknown node")


def _read(table: Table, columns: Mapping[str, str], ids: pa.Array, metadata: Metadata) -> Edges:
    types = {columns[end]: ids.type for end in _ENDS}
    if "weight" in columns:
        types[columns["weight"]] = pa.type_for_alias(metadata.weight_type)
    if "edge_type" in columns:
        types[columns["edge_type"]] = TEXT
    ends, weights, kinds = [np.empty((2, 0), np.int32)], [np.empty(0, metadata.weight_type)], []
    for block in table.blocks(types):
        source, target, *others = block.columns
        ends.append(_lookup(pa.concat_arrays([source, target]), ids, metadata).reshape(2, -1))
        if "weight" in columns:
            weights.append(others.pop(0).to_numpy())
            if not np.all((weights[-1] >= 0) & (weights[-1] <= LARGEST_WEIGHT)):
                raise BadRowsError("a weight is negative, not finite or too large")
        kinds += [metadata.normalised(column).dictionary_encode() for column in others]
    index = np.concatenate(ends, 1, dtype=np.int64)
    weight = np.concatenate(weights) if "weight" in columns else None
    return Edges(index, weight, *(_types(kinds, metadata) if "edge_type" in columns else (None, None)))


def _lookup(texts: pa.Array, ids: pa.Array, metadata: Metadata) -> np.ndarray:
    """Return the numbers of nodes that are given by their ids."""
    number = pc.index_in(texts, ids)
    if number.null_count and texts.type == TEXT:
        number = pc.index_in(metadata.normalised(texts), ids)
    if number.null_count:
        raise UnknownNodesError("an edge joins an unknown node")
    return number.to_numpy()


def whole_numbers(ids: pa.Array) -> pa.Array | None:
    """Return the ids as whole numbers if each is written as Python writes it, else None; numbers are quicker."""
    try:
        numbers = ids.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    return numbers if numbers.cast(TEXT).equals(ids) else None


def _types(blocks: list[pa.Array], metadata: Metadata) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the number of each edge's type, and the types: those in graph.json, else sorted as classes are."""
    kinds = pa.chunked_array(blocks, pa.dictionary(pa.int32(), TEXT)).unify_dictionaries()
    present = pc.unique(kinds).dictionary_decode().to_pylist() if len(kinds) else []
    types = names.sorted_classes(present) if metadata.edge_types is None else metadata.edge_types
    if not set(present).issubset(types):
        raise BadRowsError("a type of an edge is not among the types in graph.json")
    number = pc.index_in(kinds.cast(TEXT), pa.array(types, TEXT))
    return number.to_numpy().astype(np.int64), types


def checks(
    columns: Mapping[str, str],
    ids: Collection[str],
    metadata: Metadata,
    hint: str = _ADVICE,
    others: bool = False,
) -> dict[str, findings.Check]:
    """Return what the cells of the edges must be.

    Args:
        columns: the columns by role.
        ids: the ids of the nodes.
        metadata: what is known of the folder.
        hint: what to do with ends that are no nodes.
        others: any end may be a node, unless it is empty or means unknown.
    """
    exact = metadata.is_exact
    end = findings.among("ids", set(ids), "the id of a node", hint, exact)
    if others:
        end = findings.named(set(ids))
    found = {columns[role]: end for role in _ENDS}
    if "weight" in columns:
        found[columns["weight"]] = findings.number(LARGEST_WEIGHT, smallest=0)
    if "edge_type" in columns:
        types = metadata.edge_types
        known = findings.anything("types")
        if types is not None:
            known = findings.among("types", set(types), "among the types in graph.json", exact=exact)
        found[columns["edge_type"]] = known
    return found
