"""New labels for nodes of a graph as a table; an empty label takes a known one away.

Columns `id` and `label`; for graphs with several labels a node `id` and `labels`, joined by `|`, a lone `|` = none.
"""

from __future__ import annotations

from collections.abc import Sequence
from os.path import isdir
from pathlib import Path

from lignn.errors import TableError, did_you_mean
from lignn.graph import faults, headers
from lignn.graph.graph import Graph
from lignn.graph.rows import TEXT, BadRowsError, CsvTable, ParquetTable, Table

Label = int | list[int] | None
"""A class number, for several labels a node a list of them; None: unlabelled."""


def read(path: Path, graph: Graph, classes: Sequence[str]) -> dict[int, Label]:
    """Labels by node number; `classes` are all names that a label may have."""
    column = "labels" if graph.is_multilabel else "label"
    table = _open(path, ("id", column))
    ids = [str(i) for i in range(graph.num_nodes)] if graph.node_ids is None else graph.node_ids.tolist()
    node = {name: number for number, name in enumerate(ids)}
    number = {name: c for c, name in enumerate(classes)}
    found: dict[int, Label] = {}
    rows = 0
    try:
        for block in table.blocks(dict.fromkeys(table.columns, TEXT)):
            rows += len(block)
            for name, cell in zip(block["id"].to_pylist(), block[column].to_pylist(), strict=True):
                words = cell.split("|") if graph.is_multilabel else [cell]
                if name not in node or not {word for word in words if word}.issubset(number):
                    raise BadRowsError("a node or a label is unknown")
                label = [number[word] for word in words if word]
                found[node[name]] = None if not cell else label if graph.is_multilabel else label[0]
        if len(found) < rows:
            raise BadRowsError("an id is there twice")
    except BadRowsError as problem:
        checks = {"id": _known_once(set(ids), table.unit), column: _among(classes, graph.is_multilabel)}
        faults.report(table, checks, str(problem))
    if not found:
        raise TableError(f"{path}: has a header but no labels")
    return found


def _open(path: Path, columns: tuple[str, ...]) -> Table:
    if path.suffix not in (".csv", ".parquet"):
        raise TableError(f"{path}: labels are read from a .csv or a .parquet file")
    if isdir(path):
        raise TableError(f"{path}: is a folder, a file is wanted")
    table: Table = CsvTable(path) if path.suffix == ".csv" else ParquetTable(path)
    for name in columns:
        if name not in table.columns:
            there = ", ".join(map(faults.quoted, table.columns[:10]))
            hint = headers.renaming([name], [there for there in table.columns if there not in columns])
            raise TableError(f"{path}: the column {name!r} is missing, the header has {there}{hint}")
    for name in table.columns:
        if name not in columns:
            raise TableError(f"{path}: unknown column {name!r}; {did_you_mean(name, columns)}")
    if len(table.columns) > len(columns):
        raise TableError(f"{path}: a column is there twice; remove one")
    return table


def _known_once(ids: set[str], unit: str) -> faults.Check:
    known, once = faults.among(ids, "the id of a node"), faults.unique(unit)
    return lambda cell, row: once(cell, row) or known(cell, row)


def _among(classes: Sequence[str], several: bool) -> faults.Check:
    shown = ", ".join(classes[:10]) + (", …" if len(classes) > 10 else "")
    known = faults.among({*classes, ""}, f"one of the classes {shown} (or empty)")

    def check(cell: str, row: int) -> str | None:
        words = cell.split("|") if several else [cell]
        return next((fault for word in words if (fault := known(word, row))), None)

    return check
