"""Predictions as a table: `id`, `label`, `confidence`, `evidence`, `given`, and `p_CLASS` for every class."""

from __future__ import annotations

import io
from os import PathLike
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from lignn.atomic import check_file, whole_file
from lignn.classifier.decision import Decision
from lignn.errors import InputError

ENDINGS = (".csv", ".parquet")
TABLES = ("nodes", "edges")
"""What the tables of a graph are called."""


def check(path: Path, *inputs: str | PathLike[str]) -> None:
    """Refuse a file that cannot be written, whose ending names no format or that is read, before the work begins."""
    if path.suffix not in ENDINGS:
        raise InputError(f"{path}: predictions are written as {' or '.join(ENDINGS)}; choose such an ending")
    if path.stem in TABLES:
        raise InputError(f"{path}: is the name of a graph's table, which would be lost; choose another name")
    check_file(path, *inputs)


def of(decision: Decision) -> pa.Table:
    """One row a node."""
    columns = {
        "id": pa.array(decision.node_ids.tolist(), pa.string()),
        "label": pa.array(decision.names.tolist(), pa.string()),
        "confidence": decision.confidence,
        "evidence": decision.evidence,
        "given": pa.array(decision.given.tolist(), pa.string(), mask=~decision.known),
    }
    probabilities = zip(decision.class_names, decision.probabilities.T, strict=True)
    return pa.table(columns | {f"p_{name}": column for name, column in probabilities})


def as_csv(table: pa.Table) -> str:
    """The table as text."""
    buffer = io.BytesIO()
    pa.csv.write_csv(table, buffer)
    return buffer.getvalue().decode()


def write(table: pa.Table, path: Path) -> None:
    """Write the table in the format that the ending names, whole or not at all."""
    # PyArrow opens no path with characters that the locale does not have.
    with whole_file(path) as temporary, temporary.open("wb") as file:
        if path.suffix == ".csv":
            pa.csv.write_csv(table, file)
        else:
            pa.parquet.write_table(table, file)
