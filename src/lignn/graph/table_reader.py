"""Graphs as a folder of tables, the form in which people keep their own.

`nodes.csv` or `nodes.parquet`, one row a node:
    `id`       text or integer, unique; the order of the rows is the order of the nodes
    `label`    optional; empty = unlabelled
    `labels`   instead of `label` for multi-label graphs: labels joined by `|`; empty = unlabelled, a lone `|` = none
    `split`    optional; train, val, test or empty. `split2`, `split3` … hold further splits
    all others numeric features, in order
`edges.csv` or `edges.parquet`, one row an edge: `source`, `target` (ids) and, optionally, `weight`.
`features.npy` (dense) or `features.npz` (by `scipy.sparse.save_npz`): instead of feature columns, rows as in nodes.
`graph.json`: optional, see `notes`. Without it the classes are the distinct labels, integers by value, then texts.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from os.path import lexists
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
import torch
from numpy.lib.format import read_array

from lignn.errors import InputError, TableError, did_you_mean
from lignn.graph import faults, headers, rows
from lignn.graph.classes import in_order
from lignn.graph.graph import Graph
from lignn.graph.notes import Notes
from lignn.graph.rows import TEXT, BadRowsError, Table
from lignn.graph.split import PARTS, Split
from lignn.graph.validate import LARGEST_WEIGHT, Features

FEATURES = ("features.npy", "features.npz")
_SPLIT = re.compile(r"split\d*")
_LARGEST = float(np.finfo(np.float32).max)


def read(folder: Path) -> Graph:
    """The graph in `folder`, named after it."""
    notes = Notes.read(folder)
    nodes = _read_nodes(rows.find(folder, "nodes"), notes)
    edge_index, weight = _read_edges(rows.find(folder, "edges"), nodes.ids, notes)
    x = _read_features(folder)
    if x is not None and nodes.x is not None:
        raise TableError(
            f"{folder}: features both as columns of the nodes and in a file of their own; keep one of them"
        )
    numbered = not notes.node_ids and pc.all(pc.equal(nodes.ids, pa.array(range(len(nodes.ids))).cast(TEXT))).as_py()
    try:
        return Graph(
            edge_index,
            x=nodes.x if x is None else x,
            y=nodes.y,
            edge_weight=weight,
            num_nodes=len(nodes.ids),
            node_ids=None if numbered else np.array(nodes.ids.to_pylist(), np.dtypes.StringDType()),
            class_names=nodes.classes if notes.class_names else None,
            splits=nodes.splits,
            name=folder.resolve().name,
            feature_names=nodes.features if nodes.features and notes.feature_names else None,
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
    features: list[str]
    """Names of the columns of `x`."""


def _read_nodes(table: Table, notes: Notes) -> _Nodes:
    _require(table, ["id"])
    _refuse_capitals(table)
    label = [name for name in table.columns if name in ("label", "labels")]
    if len(label) > 1:
        raise TableError(f"{table.path}: has both 'label' and 'labels'; keep one of them")
    split = [name for name in table.columns if _SPLIT.fullmatch(name)]
    features = [name for name in table.columns if is_feature(name)]
    types = dict.fromkeys(["id", *label, *split], TEXT) | dict.fromkeys(features, pa.float32())
    try:
        texts: dict[str, list[pa.Array]] = {name: [] for name in ("id", *label, *split)}
        numbers: list[np.ndarray] = []
        for block in table.blocks(types):
            for name, chunks in texts.items():
                chunks.append(block[name])
            if features:
                numbers.append(np.column_stack([block[name].to_numpy(zero_copy_only=False) for name in features]))
        column = {name: pa.chunked_array(chunks, TEXT).combine_chunks() for name, chunks in texts.items()}
        if not len(column["id"]):
            raise TableError(f"{table.path}: has a header but no nodes")
        if pc.any(pc.equal(column["id"], "")).as_py() or pc.count_distinct(column["id"]).as_py() < len(column["id"]):
            raise BadRowsError("an id is empty or there twice")
        if pc.any(pc.ends_with(column["id"], "\0")).as_py():
            raise BadRowsError("an id ends in a NUL character")
        if not all(np.isfinite(block).all() for block in numbers):
            raise BadRowsError("a feature is not finite")
        y, classes = _labels(column[label[0]], label[0] == "labels", notes) if label else (None, notes.classes)
        if y is not None and not classes:
            raise TableError(
                f"{table.path}, column 'labels': names no class, every label given is '|' (none of the classes); "
                "name the classes in graph.json, or leave the column out"
            )
        splits = [found for name in split if (found := _split(column[name])) is not None]
    except BadRowsError as problem:
        faults.report(table, _node_checks(types, table.unit, notes), str(problem))
    return _Nodes(column["id"], np.concatenate(numbers) if features else None, y, classes, splits, features)


def is_feature(name: str) -> bool:
    """Whether a column of the nodes has a name that is free for a feature."""
    return bool(name) and name not in ("id", "label", "labels") and not _SPLIT.fullmatch(name)


def _labels(column: pa.Array, several: bool, notes: Notes) -> tuple[np.ndarray | None, tuple[str, ...] | None]:
    """Class numbers, or 0/1 rows if there may be `several` labels a node; and the classes."""
    lists = pc.split_pattern(column, "|") if several else None
    words = column if lists is None else lists.flatten()
    used = [word for word in pc.unique(words).to_pylist() if word]
    classes = in_order(used) if notes.classes is None else notes.classes
    if not set(used).issubset(classes):
        raise BadRowsError("a label is not among the classes in graph.json")
    if notes.classes is None and any(word != word.strip() or word.endswith("\0") for word in used):
        raise BadRowsError("a label has spaces around it or ends in a NUL character")
    if pc.all(pc.equal(column, "")).as_py():
        return None, notes.classes
    number = pc.fill_null(pc.index_in(words, pa.array(classes, TEXT)), -1).to_numpy().astype(np.int64)
    if lists is None:
        return number, classes
    y = np.zeros((len(column), len(classes)), np.int8)
    named = number >= 0
    y[pc.list_parent_indices(lists).to_numpy()[named], number[named]] = 1
    y[pc.equal(column, "").to_numpy(zero_copy_only=False)] = -1
    return y, classes


def _split(column: pa.Array) -> Split | None:
    masks = [pc.equal(column, part).to_numpy(zero_copy_only=False) for part in PARTS]
    if not np.all(np.any(masks, 0) | pc.equal(column, "").to_numpy(zero_copy_only=False)):
        raise BadRowsError("a word is not the name of a part of a split")
    return Split(*map(torch.from_numpy, masks)) if np.any(masks) else None


def _node_checks(types: dict[str, pa.DataType], unit: str, notes: Notes) -> dict[str, faults.Check]:
    hint = "; every column but id, label, labels and split is a feature"
    meant = _meant(types)
    checks = {name: faults.number(_LARGEST, hint=meant.get(name, hint)) for name, kind in types.items() if kind != TEXT}
    words = faults.among({*PARTS, ""}, f"one of {', '.join(PARTS)} (or empty)")
    checks |= {name: words for name in types if _SPLIT.fullmatch(name)}
    known: faults.Check = faults.unpadded
    if notes.classes is not None:
        known = faults.among({*notes.classes, ""}, "among the classes in graph.json")

    def several(cell: str, row: int) -> str | None:
        return next((fault for label in cell.split("|") if (fault := known(label, row))), None)

    return checks | {"id": faults.unique(unit), "label": known, "labels": several}


def _meant(columns: Iterable[str]) -> dict[str, str]:
    """For columns that cannot be features: what they may be meant to be, of what the table does not have."""
    hints: dict[str, str] = {}
    for part, names in (("splits", ("split",)), ("labels", ("labels", "label"))):
        found = {} if set(names) & set(columns) else {headers.likely(name, columns): name for name in names}
        hints |= {
            column: f"; if it holds the {part}, rename it to {name!r}" for column, name in found.items() if column
        }
    return hints


def _refuse_capitals(table: Table) -> None:
    """A column `Label` is more likely the labels than a feature, whatever it holds."""
    for name in table.columns:
        if is_feature(name) and not is_feature(name.lower()) and name.lower() not in table.columns:
            meant = f"rename it to {name.lower()!r}, or to another name if it is a feature"
            raise TableError(f"{table.path}, column {name!r}: capital letters count; {meant}")


def _read_edges(table: Table, ids: pa.Array, notes: Notes) -> tuple[np.ndarray, np.ndarray | None]:
    """Edges as pairs of node numbers, and their weights."""
    _require(table, ["source", "target"])
    unknown = [name for name in table.columns if name not in ("source", "target", "weight")]
    if unknown:
        hint = did_you_mean(unknown[0], ("source", "target", "weight"))
        raise TableError(f"{table.path}: unknown column {unknown[0]!r}; {hint}")
    weighted = "weight" in table.columns
    types = {"source": TEXT, "target": TEXT, "weight": pa.type_for_alias(notes.weight_type)}
    ends, weights = [np.empty((2, 0), np.int32)], [np.empty(0, notes.weight_type)]
    try:
        for block in table.blocks({name: types[name] for name in table.columns}):
            number = pc.index_in(pa.concat_arrays([block["source"], block["target"]]), ids)
            if number.null_count:
                raise BadRowsError("an edge joins an unknown node")
            ends.append(number.to_numpy().reshape(2, -1))
            if weighted:
                weights.append(block["weight"].to_numpy())
                if not np.all((weights[-1] >= 0) & (weights[-1] <= LARGEST_WEIGHT)):
                    raise BadRowsError("a weight is negative, not finite or too large")
    except BadRowsError as problem:
        end = faults.among(set(ids.to_pylist()), "the id of a node", "; add it to the nodes, or remove the edge")
        weight = faults.number(LARGEST_WEIGHT, smallest=0)
        faults.report(table, {"source": end, "target": end, "weight": weight}, str(problem))
    return np.concatenate(ends, 1, dtype=np.int64), np.concatenate(weights) if weighted else None


def _require(table: Table, names: list[str]) -> None:
    missing = [name for name in names if name not in table.columns]
    if missing:
        there = ", ".join(map(faults.quoted, table.columns[:10])) + (", …" if len(table.columns) > 10 else "")
        other = next((sign for sign in ";\t" if len(table.columns) == 1 and sign in table.columns[0]), None)
        hint = headers.renaming(missing, [name for name in table.columns if name not in names])
        if other:
            hint = f"; separate the cells by commas, not by {other!r}"
        raise TableError(f"{table.path}: the column {missing[0]!r} is missing, the header has {there}{hint}")


def _read_features(folder: Path) -> Features | None:
    """The features in a file of their own, if there is one."""
    paths = [folder / name for name in FEATURES if lexists(folder / name)]
    if len(paths) > 1:
        raise TableError(f"{folder}: both {FEATURES[0]} and {FEATURES[1]} are there; keep one of them")
    for path in paths:
        try:
            file = path.open("rb")
        except OSError as error:
            raise TableError(f"{path}: cannot be read: {error.strerror}") from error
        try:
            with file:
                x: Any = (
                    sp.csr_array(sp.load_npz(file)) if path.suffix == ".npz" else read_array(file, allow_pickle=False)
                )
        except (OSError, ValueError, TypeError, EOFError, KeyError, RuntimeError, BadZipFile, zlib.error) as error:
            # the reasons that NumPy, SciPy and zipfile give for damaged and foreign files
            raise TableError(f"{path}: is not a whole matrix of plain numbers ({error}); write it again") from error
        if x.dtype.kind not in "fiub":
            raise TableError(f"{path}: numbers are needed, it holds {x.dtype}")
        return x.astype(np.float64 if x.dtype == np.float64 else np.float32, copy=False)
    return None
