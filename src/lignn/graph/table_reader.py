"""Reading of graphs from folders of tables, the form in which most people have their own data.

`nodes.csv` or `nodes.parquet`, one row per node:
    `id`       text or integer, unique; the order of the rows is the order of the nodes
    `label`    optional; empty, -1 or a mark such as NA = unlabelled
    `labels`   instead of `label` for multi-label graphs: labels joined by `|`; empty = unlabelled, a lone `|` = none
    `split`    optional; train, val, test or empty. `split2`, `split3` … hold further splits
    all others numeric features, in order
`edges.csv` or `edges.parquet`, one row per edge: `source`, `target` (ids) and, optionally, `weight`.
`features.npy` (dense) or `features.npz` (by `scipy.sparse.save_npz`): instead of feature columns, rows as in nodes.
`graph.json`: optional, see `metadata`. Without it the classes are the distinct labels, integers by value, then texts.

The texts of tables made by hand are normalised; those that lignn wrote are read exactly as they are.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from os.path import lexists
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from lignn.errors import GraphError, InputError, TableError, did_you_mean
from lignn.graph import faults, files, headers, names, table_file
from lignn.graph.graph import Graph
from lignn.graph.metadata import Metadata
from lignn.graph.split import PARTS, Split
from lignn.graph.table_file import TEXT, BadRowsError, Table
from lignn.graph.validate import LARGEST_WEIGHT, check_classes

_FEATURE_FILES = ("features.npy", "features.npz")
_LARGEST = float(np.finfo(np.float32).max)


def read(folder: Path, missing: Collection[str] | None = None) -> Graph:
    """Read the graph in `folder`; its name is the name of the folder.

    Args:
        folder: the folder with the tables.
        missing: labels that mean unknown, besides an empty one; by default `names.MISSING` and -1.
    """
    metadata = Metadata.read(folder)
    nodes = _read_nodes(table_file.find(folder, "nodes"), metadata, missing)
    edge_index, weight = _read_edges(table_file.find(folder, "edges"), nodes.ids, metadata)
    x = _read_features(folder, len(nodes.ids))
    if x is not None and nodes.x is not None:
        raise TableError(f"{folder}: features both as columns of the nodes and in a separate file; keep one of them")
    numbered = not metadata.node_ids and pc.all(pc.equal(nodes.ids, pa.array(range(len(nodes.ids))).cast(TEXT))).as_py()
    try:
        return Graph(
            edge_index,
            x=nodes.x if x is None else x,
            y=nodes.y,
            edge_weight=weight,
            num_nodes=len(nodes.ids),
            node_ids=None if numbered else np.array(nodes.ids.to_pylist(), np.dtypes.StringDType()),
            class_names=nodes.classes if metadata.class_names else None,
            splits=nodes.splits,
            name=files.valid_text(folder.resolve().name),
            feature_names=nodes.feature_names if nodes.feature_names and metadata.feature_names else None,
        )
    except InputError as error:
        raise type(error)(f"{folder}: {error}") from error


@dataclass(frozen=True)
class _Nodes:
    ids: pa.Array
    x: np.ndarray | None
    y: np.ndarray | None
    classes: tuple[str, ...] | None
    splits: list[Split]
    feature_names: list[str]


def _read_nodes(table: Table, metadata: Metadata, missing: Collection[str] | None) -> _Nodes:
    headers.require(table, ["id"])
    headers.check_case(table)
    label = [name for name in table.columns if name in ("label", "labels")]
    if len(label) > 1:
        raise TableError(f"{table.path}: has both 'label' and 'labels'; keep one of them")
    split = [name for name in table.columns if headers.is_split(name)]
    features = [name for name in table.columns if headers.is_feature(name)]
    types = dict.fromkeys(["id", *label, *split], TEXT) | dict.fromkeys(features, pa.float32())
    try:
        texts, x = _read_columns(table, types, metadata)
        y, classes = None, metadata.classes
        for name in label:
            where = f"{table.path}, column {name!r}"
            y, classes = _labels(where, texts[name], name == "labels", metadata, missing)
        splits = [found for name in split if (found := _split(texts[name])) is not None]
    except BadRowsError as problem:
        faults.report(table, _node_checks(types, table.unit, metadata, missing), str(problem))
    if not metadata.is_exact:
        _note_twins(f"{table.path}, column 'id'", texts["id"])
    return _Nodes(texts["id"], x, y, classes, splits, features)


def _read_columns(
    table: Table, types: dict[str, pa.DataType], metadata: Metadata
) -> tuple[dict[str, pa.Array], np.ndarray | None]:
    """Return the columns of texts by name, and the columns of numbers as a matrix, if there are any."""
    chunks: dict[str, list[pa.Array]] = {name: [] for name, kind in types.items() if kind == TEXT}
    numbers: list[np.ndarray] = []
    for block in table.blocks(types):
        columns = dict(zip(table.columns, block.columns, strict=True))
        for name in chunks:
            chunks[name].append(metadata.normalised(columns.pop(name)))
        if columns:
            numbers.append(np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns.values()]))
    texts = {name: pa.chunked_array(parts, TEXT).combine_chunks() for name, parts in chunks.items()}
    ids = texts["id"]
    if not len(ids):
        raise TableError(f"{table.path}: has a header but no nodes")
    if pc.any(pc.equal(ids, "")).as_py() or len(pc.unique(ids)) < len(ids):
        raise BadRowsError("an id is empty or repeated")
    if pc.any(pc.ends_with(ids, "\0")).as_py():
        raise BadRowsError("an id ends in a NUL character")
    if not all(np.isfinite(block).all() for block in numbers):
        raise BadRowsError("a feature is not finite")
    return texts, np.concatenate(numbers) if numbers else None


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


def _note_twins(where: str, ids: pa.Array) -> None:
    """Warn of ids that are almost equal; PyArrow finds the candidates, as there may be millions of ids."""
    keys = pc.utf8_lower(pc.replace_substring_regex(pc.utf8_normalize(ids, form="NFKC"), names.INVISIBLE, ""))
    if len(pc.unique(keys)) < len(keys):
        counts = pc.value_counts(keys)
        repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        names.note_twins(where, ids.filter(pc.is_in(keys, repeated)).to_pylist())


def _node_checks(
    types: dict[str, pa.DataType], unit: str, metadata: Metadata, missing: Collection[str] | None
) -> dict[str, faults.Check]:
    hint = "; every column but id, label, labels and split is a feature"
    hints = headers.misnamed(types)
    checks = {name: faults.number(_LARGEST, hint=hints.get(name, hint)) for name, kind in types.items() if kind != TEXT}
    exact = metadata.is_exact
    words = faults.among({*PARTS, ""}, f"one of {', '.join(PARTS)} (or empty)", exact=exact)
    checks |= {name: words for name in types if headers.is_split(name)}
    marks = names.missing_marks(missing, metadata.classes or ())
    known: faults.Check = lambda _cell, _row: None  # noqa: E731
    if metadata.classes is not None:
        known = faults.among({*metadata.classes, *marks}, "among the classes in graph.json", exact=exact)
    return checks | {"id": faults.unique(unit, exact), "label": known, "labels": faults.several(known, marks - {""})}


def _read_edges(table: Table, ids: pa.Array, metadata: Metadata) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the edges as pairs of node numbers, and their weights."""
    headers.require(table, ["source", "target"])
    unknown = [name for name in table.columns if name not in ("source", "target", "weight")]
    if unknown:
        hint = did_you_mean(unknown[0], ("source", "target", "weight"))
        raise TableError(f"{table.path}: unknown column {unknown[0]!r}; {hint}")
    weighted = "weight" in table.columns
    types = {"source": TEXT, "target": TEXT, "weight": pa.type_for_alias(metadata.weight_type)}
    ends, weights = [np.empty((2, 0), np.int32)], [np.empty(0, metadata.weight_type)]
    try:
        for block in table.blocks({name: types[name] for name in table.columns}):
            texts = pa.concat_arrays([block["source"], block["target"]])
            number = pc.index_in(texts, ids)
            if number.null_count:
                number = pc.index_in(metadata.normalised(texts), ids)
            if number.null_count:
                raise BadRowsError("an edge joins an unknown node")
            ends.append(number.to_numpy().reshape(2, -1))
            if weighted:
                weights.append(block["weight"].to_numpy())
                if not np.all((weights[-1] >= 0) & (weights[-1] <= LARGEST_WEIGHT)):
                    raise BadRowsError("a weight is negative, not finite or too large")
    except BadRowsError as problem:
        exact = metadata.is_exact
        end = faults.among(set(ids.to_pylist()), "the id of a node", "; add it to the nodes, or remove the edge", exact)
        weight = faults.number(LARGEST_WEIGHT, smallest=0)
        faults.report(table, {"source": end, "target": end, "weight": weight}, str(problem))
    return np.concatenate(ends, 1, dtype=np.int64), np.concatenate(weights) if weighted else None


def _read_features(folder: Path, num_nodes: int) -> Any:
    """Return the features in features.npy or features.npz; None if there is no such file."""
    paths = [folder / name for name in _FEATURE_FILES if lexists(folder / name)]
    if len(paths) > 1:
        raise TableError(f"{folder}: both {paths[0].name} and {paths[1].name} exist; keep one of them")
    return files.read_features(paths[0], num_nodes) if paths else None
