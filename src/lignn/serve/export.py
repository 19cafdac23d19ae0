"""Labels as a table: id, label, who gave it, and when; and back."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from lignn.errors import TableError
from lignn.graph import headers
from lignn.graph.table_file import TEXT, open_table
from lignn.serve.journal import Change, Journal
from lignn.serve.state import State


def rows_of(state: State, journal: Journal) -> list[tuple[str, str, str, str]]:
    """Return id, label, who and time of all labels by now; the last two are empty for those that the model had."""
    last = {entry.change.key: entry for entry in journal.entries(kind="label")}
    rows = []
    for node, label in state.given_labels().items():
        entry = last.get(node)
        ours = entry is not None and entry.change.new == label
        text = label if isinstance(label, str) else "|".join(label) or "|"
        rows.append((node, text, entry.who if ours and entry else "", entry.time if ours and entry else ""))
    return rows


def csv_of(state: State, journal: Journal) -> str:
    """Return the table as text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("id", "labels" if state.classes.multilabel else "label", "who", "time"))
    writer.writerows(rows_of(state, journal))
    return text.getvalue()


def read(path: Path) -> list[Change]:
    """Return the labels in a table with the columns `id` and `label`; an empty label removes one."""
    if path.suffix not in (".csv", ".parquet"):
        raise TableError(f"{path}: labels are read from a .csv or a .parquet file")
    table = open_table(path)
    several = "labels" in table.columns
    column = "labels" if several else "label"
    headers.require(table, ("id", column))
    found: dict[str, Change] = {}
    for block in table.blocks(dict.fromkeys(table.columns, TEXT)):
        for node, label in zip(block["id"].to_pylist(), block[column].to_pylist(), strict=True):
            if node in found:
                raise TableError(f"{path}: two rows have the id {node!r}; keep one of them")
            value = [name for name in label.split("|") if name] if several else label
            found[node] = Change("label", node, value if label else None)
    return list(found.values())
