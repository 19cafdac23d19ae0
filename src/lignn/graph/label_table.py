"""Tables of new labels for nodes of a graph; an empty label removes a known one.

The columns are `id` and `label`. For multi-label graphs they are `id` and `labels`: labels joined by `|`, where a lone
`|` means none of the classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lignn.errors import TableError, did_you_mean
from lignn.graph import headers
from lignn.graph.graph import Graph
from lignn.graph.names import normalised
from lignn.graph.table_file import TEXT, BadRowsError, Table, open_table
from lignn.graph.tables import findings

Label = int | list[int] | None
"""A class number, or a list of class numbers for multi-label graphs; None: unlabelled."""


def read(path: Path, graph: Graph, classes: Sequence[str]) -> dict[int, Label]:
    """Return the labels in the file `path`, by node number; `classes` are the names that a label may have."""
    column = "labels" if graph.is_multilabel else "label"
    table = _open(path, ("id", column))
    ids = [str(i) for i in range(graph.num_nodes)] if graph.node_ids is None else graph.node_ids.tolist()
    node_number = {name: number for number, name in enumerate(ids)}
    class_number = {name: number for number, name in enumerate(classes)}
    labels: dict[int, Label] = {}
    rows = 0
    try:
        for block in table.blocks(dict.fromkeys(table.columns, TEXT)):
            rows += len(block)
            for name, cell in zip(block["id"].to_pylist(), block[column].to_pylist(), strict=True):
                name = name if name in node_number else normalised(name)
                words = [
                    word if word in class_number else normalised(word)
                    for word in (cell.split("|") if graph.is_multilabel else [cell])
                ]
                if name not in node_number or not {word for word in words if word}.issubset(class_number):
                    raise BadRowsError("a node or a label is unknown")
                label = [class_number[word] for word in words if word]
                labels[node_number[name]] = None if words == [""] else label if graph.is_multilabel else label[0]
        if len(labels) < rows:
            raise BadRowsError("two rows have the same id")
    except BadRowsError as problem:
        checks = {"id": _known_once(set(ids), table.unit), column: _known(classes, graph.is_multilabel)}
        findings.report(table, checks, str(problem))
    if not labels:
        raise TableError(f"{path}: has a header but no labels")
    return labels


def _open(path: Path, columns: tuple[str, ...]) -> Table:
    table = open_table(path)
    headers.require(table, columns)
    for name in table.columns:
        if name not in columns:
            raise TableError(f"{path}: unknown column {name!r}; {did_you_mean(name, columns)}")
    return table


def _known_once(ids: set[str], unit: str) -> findings.Check:
    return findings.both(findings.unique(unit), findings.among("ids", ids, "the id of a node"))


def _known(classes: Sequence[str], several: bool) -> findings.Check:
    shown = ", ".join(classes[:10]) + (", …" if len(classes) > 10 else "")
    known = findings.among("labels", {*classes, ""}, f"one of the classes {shown} (or empty)")
    return findings.several(known) if several else known
