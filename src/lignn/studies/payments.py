"""S-FFSD, a public table of card payments, as a graph.

Each payment is a node, and so is each distinct source, target, location and type; a payment is joined to its four
values, and to the next two payments in time. Xiang et al., "Semi-supervised credit card fraud detection via
attribute-driven graph representation", AAAI 2023, published the table and the random split.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from lignn.datasets import places
from lignn.errors import DatasetError
from lignn.graph import Graph, Split

NAME = "s-ffsd"
_FILE = Path("raw", "S-FFSD.csv")
VALUES = ("Source", "Target", "Location", "Type")
_NEXT = 2
UNKNOWN = 2
"""The label of payments of which nobody knows whether they are frauds."""


def find() -> Path | None:
    """Return the file of the table, None if no folder has it."""
    files = (folder / _FILE for folder in places.folders())
    return next((file for file in files if file.is_file()), None)


def file() -> Path:
    """Return the file of the table; raise if no folder has it."""
    found = find()
    if found is None:
        raise DatasetError(f"{NAME}: {_FILE} is in none of the folders of datasets; put it under ${places.VARIABLE}")
    return found


def graph() -> Graph:
    """Return the table as an undirected graph with a type of edges for each column and for time."""
    from pyarrow import csv

    table = csv.read_csv(file())
    count = table.num_rows
    columns = [table[name].to_numpy() for name in ("Time", "Amount")]
    ends, first = [], count
    for name in VALUES:
        values, code = np.unique(table[name].to_numpy().astype(str), return_inverse=True)
        columns.append(code)
        ends.append(np.stack([np.arange(count), first + code]))
        first += len(values)
    order = np.argsort(columns[0], kind="stable")
    ends.append(np.concatenate([np.stack([order[:-step], order[step:]]) for step in range(1, _NEXT + 1)], axis=1))
    x, y, time = np.zeros((first, len(columns)), np.float32), np.full(first, -1), np.full(first, np.nan)
    labels = table["Labels"].to_numpy()
    x[:count], y[:count], time[:count] = np.stack(columns, 1), np.where(labels == UNKNOWN, -1, labels), columns[0]
    return Graph(
        np.concatenate(ends, axis=1),
        x=torch.from_numpy(x),
        y=y,
        num_nodes=first,
        edge_type=np.repeat(np.arange(len(ends)), [each.shape[1] for each in ends]),
        edge_types=[*VALUES, "Next"],
        class_names=["no fraud", "fraud"],
        name=NAME,
        time=time,
    ).to_undirected()


def published_split(graph: Graph, state: int) -> Split:
    """Return the published split of all payments, of which only the labelled ones count; `state` is its seed."""
    from sklearn.model_selection import train_test_split

    assert graph.y is not None
    payments = np.arange(graph.num_nodes) if graph.time is None else np.flatnonzero(~np.isnan(graph.time))
    y = graph.y.numpy()
    strata = np.where(y[payments] < 0, UNKNOWN, y[payments])
    train, test = train_test_split(payments, stratify=strata, test_size=0.2, random_state=state)
    parts = (train, train[:0], test)
    return Split.from_indices(graph.num_nodes, *(torch.from_numpy(part[y[part] >= 0]) for part in parts))
