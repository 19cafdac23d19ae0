"""Reading of the table of nodes: ids, labels, splits, times, groups and features."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from lignn.errors import GraphError, TableError
from lignn.graph import headers, names
from lignn.graph.metadata import Metadata
from lignn.graph.roles import NodeColumns
from lignn.graph.split import PARTS, Split
from lignn.graph.table_file import TEXT, BadRowsError, Table
from lignn.graph.tables import findings, kinds, plausible
from lignn.graph.validate import check_classes

_LARGEST = float(np.finfo(np.float32).max)
_DATE = pa.timestamp("us")


@dataclass(frozen=True)
class Nodes:
    """What the table of nodes holds."""

    ids: pa.Array
    feature_names: tuple[str, ...]
    x: np.ndarray | None
    table: pa.Table | None
    refused: tuple[str, ...]
    """Columns of types that cannot be features."""
    y: np.ndarray | None
    classes: tuple[str, ...] | None
    splits: tuple[Split, ...]
    time: np.ndarray | None
    group: np.ndarray | None
    forms: tuple[tuple[str, str], ...] = ()
    """Columns and the kinds or readings that other tables are read by."""
    notes: tuple[str, ...] = ()
    """What was read otherwise than as it stands, in words."""


def read(
    table: Table, columns: NodeColumns, metadata: Metadata, missing: Collection[str] | None, strict: bool
) -> Nodes:
    """Read the nodes; raise `BadRowsError` if a row cannot be used, `checks` find which.

    Args:
        table: the table.
        columns: its columns by role.
        metadata: what is known of the folder.
        missing: labels that mean unknown.
        strict: read every feature as a number in single precision, and raise where that fails.
    """
    found: kinds.Features | None = None
    x = None
    if strict:
        cells, x = _strict(table, columns)
    else:
        cells, found = _read(table, columns)
    texts = {name: metadata.normalised(pc.fill_null(cells[name], "")) for name in columns.texts}
    ids = _numbers_of(cells, x) if columns.id is None else texts[columns.id]
    _check_ids(table, ids)
    y, classes = None, metadata.classes
    if columns.label is not None:
        where = f"{table.path}, column {columns.label!r}"
        y, classes = _labels(where, texts[columns.label], columns.several, metadata, missing)
    splits = [split for name in columns.splits if (split := _split(texts[name])) is not None]
    time = None if columns.time is None else _time(cells[columns.time])
    group = None if columns.group is None else _groups(texts[columns.group], metadata)
    if not metadata.is_exact and columns.id is not None:
        note_twins(f"{table.path}, column {columns.id!r}", ids)
    features = None
    if found is not None:
        features = found.table(columns.features)
        x = kinds.matrix(features)
        features = features if features.num_columns else None
    else:
        found = kinds.Features()
    if not metadata.is_exact:
        plausible.labels(f"{table.path}, column {columns.label!r}", y, classes)
        plausible.features(str(table.path), features, y)
    kept = tuple(name for name in columns.features if name not in found.refused)
    notes, forms = tuple(found.notes), tuple(found.forms.items())
    return Nodes(ids, kept, x, features, tuple(found.refused), y, classes, tuple(splits), time, group, forms, notes)


def _read(table: Table, columns: NodeColumns) -> tuple[dict[str, pa.Array], kinds.Features]:
    """Return all columns by name, and those of features and times as what they hold."""
    ignored, texts = set(columns.ignored), set(columns.texts)
    wanted = [name for name in table.columns if name not in ignored]
    said = {name for name, kind in columns.kinds.items() if kind in ("category", "text")}
    whole = table.read(wanted, texts | said)
    cells = {name: column.combine_chunks() for name, column in zip(wanted, whole.columns, strict=True) if name in texts}
    others = [name for name in wanted if name not in texts]
    found = kinds.features(table, whole.select(others), columns.kinds)
    if columns.type is not None:
        found.columns[columns.type] = kinds.known(whole.column(columns.type))
    return cells | found.columns, found


def _strict(table: Table, columns: NodeColumns) -> tuple[dict[str, pa.Array], np.ndarray | None]:
    """Return the columns with other roles by name, and the features as a matrix, if there are any."""
    texts = list(dict.fromkeys(columns.texts))
    types = dict.fromkeys(texts, TEXT) | dict.fromkeys(columns.features, pa.float32())
    chunks: list[list[pa.Array]] = [[] for _ in texts]
    numbers: list[np.ndarray] = []
    for block in table.blocks(types):
        for parts, column in zip(chunks, block.columns, strict=False):
            parts.append(column)
        if columns.features:
            features = block.columns[len(texts) :]
            numbers.append(np.column_stack([column.to_numpy(zero_copy_only=False) for column in features]))
    if not all(np.isfinite(block).all() for block in numbers):
        raise BadRowsError("a feature is not finite")
    cells = {name: pa.chunked_array(parts, TEXT).combine_chunks() for name, parts in zip(texts, chunks, strict=True)}
    if columns.time is not None:
        cells |= kinds.features(table, table.read([columns.time], ()), {}).columns
    return cells, np.concatenate(numbers) if numbers else None


def numbers(table: Table, columns: NodeColumns, metadata: Metadata) -> Iterator[np.ndarray]:
    """Yield the features as numbers in single precision, in blocks of rows; raise where a cell is none."""
    try:
        for block in table.blocks(dict.fromkeys(columns.features, pa.float32())):
            rows = np.column_stack([column.to_numpy(zero_copy_only=False) for column in block.columns])
            if not np.isfinite(rows).all():
                raise BadRowsError("a feature is not finite")
            yield rows
    except BadRowsError as problem:
        findings.report(table, checks(table, columns, metadata, None, strict=True), str(problem))


def _numbers_of(cells: dict[str, pa.Array], x: np.ndarray | None) -> pa.Array:
    """Return the numbers of the rows as texts."""
    count = len(x) if x is not None else max(map(len, cells.values()), default=0)
    return pa.array(range(count)).cast(TEXT)


def _check_ids(table: Table, ids: pa.Array) -> None:
    if not len(ids):
        raise TableError(f"{table.path}: has a header but no nodes")
    if pc.any(pc.equal(ids, "")).as_py() or len(pc.unique(ids)) < len(ids):
        raise BadRowsError("an id is empty or repeated")
    if pc.any(pc.ends_with(ids, "\0")).as_py():
        raise BadRowsError("an id ends in a NUL character")


def _labels(
    where: str, column: pa.Array, several: bool, metadata: Metadata, missing: Collection[str] | None
) -> tuple[np.ndarray | None, tuple[str, ...] | None]:
    """Return class numbers, or 0/1 rows if a node may have `several` labels; and the classes."""
    lists = pc.split_pattern(column, "|") if several else None
    words = column if lists is None else metadata.normalised(lists.flatten())
    distinct = set(pc.unique(words).to_pylist())
    try:
        unknown = names.unknown_labels(distinct, missing, metadata.classes or ())
    except GraphError as error:
        raise TableError(f"{where}: {error}") from error
    marked = pc.is_in(column, pa.array(sorted(unknown), TEXT))
    used = distinct - unknown
    classes = names.sorted_classes(used) if metadata.classes is None else metadata.classes
    if not used.issubset(classes):
        raise BadRowsError("a label is not among the classes in graph.json")
    if metadata.classes is None and any(word.endswith("\0") for word in used):
        raise BadRowsError("a label ends in a NUL character")
    if lists is not None:
        node = pc.list_parent_indices(lists)
        inside = pc.and_(pc.is_in(words, pa.array(sorted(unknown - {""}), TEXT)), pc.invert(marked.take(node)))
        if pc.any(inside).as_py():
            raise BadRowsError("one of several labels means unknown")
    names.note_unknown(where, column.filter(marked).to_pylist())
    if pc.all(marked).as_py():
        return None, metadata.classes
    if not classes:
        raise TableError(
            f"{where}: names no class, every label given is '|' (none of the classes); "
            "name the classes in graph.json, or leave the column out"
        )
    if not metadata.is_exact:
        names.note_twins(where, classes)
    number = pc.fill_null(pc.index_in(words, pa.array(classes, TEXT)), -1).to_numpy().astype(np.int64)
    if lists is None:
        return number, classes
    try:
        check_classes(len(column), len(classes))
    except GraphError as error:
        raise TableError(f"{where}: {error}") from error
    y = np.zeros((len(column), len(classes)), np.int8)
    named = number >= 0
    y[node.to_numpy()[named], number[named]] = 1
    y[marked.to_numpy(zero_copy_only=False)] = -1
    return y, classes


def _split(column: pa.Array) -> Split | None:
    masks = [pc.equal(column, part).to_numpy(zero_copy_only=False) for part in PARTS]
    if not np.all(np.any(masks, 0) | pc.equal(column, "").to_numpy(zero_copy_only=False)):
        raise BadRowsError("a word is not the name of a part of a split")
    return Split(*map(torch.from_numpy, masks)) if np.any(masks) else None


def note_twins(where: str, ids: pa.Array) -> None:
    """Warn of ids that are almost equal; PyArrow finds the candidates, as there may be millions of ids."""
    keys = pc.utf8_lower(pc.replace_substring_regex(pc.utf8_normalize(ids, form="NFKC"), names.INVISIBLE, ""))
    if len(pc.unique(keys)) < len(keys):
        counts = pc.value_counts(keys)
        repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        names.note_twins(where, ids.filter(pc.is_in(keys, repeated)).to_pylist())


def _time(column: pa.ChunkedArray) -> np.ndarray:
    """Return times as numbers: dates in seconds since 1970, numbers as they are; NaN for a gap."""
    kind = column.type
    unit = 1.0
    if pa.types.is_date32(kind):
        column, unit = column.cast(pa.int32()), 1 / 86_400
    elif pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        column, unit = column.cast(pa.int64()), {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[getattr(kind, "unit", "ms")]
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        raise BadRowsError("the column of times holds neither numbers alone nor dates alone")
    return column.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy() / unit


def _groups(texts: pa.Array, metadata: Metadata) -> np.ndarray:
    """Return the number of each node's group in the order of their first nodes; -1 for a gap or a mark such as NA."""
    if metadata.is_exact:
        try:
            return texts.cast(pa.int64()).to_numpy()
        except pa.ArrowInvalid as error:
            raise BadRowsError(f"a group is not a number ({error})") from error
    unknown = pc.is_in(texts, pa.array(sorted(names.missing_marks(None)), TEXT))
    codes = pc.if_else(unknown, pa.scalar(None, TEXT), texts).dictionary_encode().indices
    return codes.fill_null(-1).to_numpy().astype(np.int64)


def checks(
    table: Table, columns: NodeColumns, metadata: Metadata, missing: Collection[str] | None, strict: bool
) -> dict[str, findings.Check]:
    """Return what the cells of the nodes must be, see `read`."""
    exact = metadata.is_exact
    found: dict[str, findings.Check] = {name: findings.anything() for name in columns.features}
    if strict:
        hints = headers.misnamed(columns.features)
        hint = "; every column without another role is a feature"
        found = {name: findings.number(_LARGEST, hint=hints.get(name, hint)) for name in columns.features}
    words = findings.among("parts of a split", {*PARTS, ""}, f"one of {', '.join(PARTS)} (or empty)", exact=exact)
    found |= dict.fromkeys(columns.splits, words)
    if columns.time is not None:
        found[columns.time] = findings.time()
    if columns.label is not None:
        marks = names.missing_marks(missing, metadata.classes or ())
        known = findings.anything("labels")
        if metadata.classes is not None:
            known = findings.among(
                "labels", {*metadata.classes, *marks}, "among the classes in graph.json", exact=exact
            )
        found[columns.label] = findings.several(known, marks - {""}) if columns.several else known
    found |= {name: findings.anything() for name in (columns.group,) if name is not None}
    return found if columns.id is None else found | {columns.id: findings.unique(table.unit, exact)}
