"""Writing of graphs as folders of tables, in the format that `table_reader` reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import scipy.sparse as sp
import torch

from lignn.atomic import whole_folder
from lignn.errors import TableError
from lignn.graph import archive, metadata
from lignn.graph.graph import Graph
from lignn.graph.headers import is_feature
from lignn.graph.metadata import Metadata
from lignn.graph.split import PARTS, Split
from lignn.graph.table_file import TEXT
from lignn.graph.table_reader import TABLE_FILE

_MAX_COLUMNS = 64
"""Largest number of unnamed dense features that become columns of nodes.csv; more are written to features.npy."""


def write(graph: Graph, folder: Path) -> None:
    """Write `graph` to `folder`, completely or not at all; only a folder that lignn wrote before is replaced."""
    ids = pa.array(range(graph.num_nodes)) if graph.node_ids is None else pa.array(graph.node_ids.tolist(), TEXT)
    if graph.node_ids is not None and pc.any(pc.equal(ids, "")).as_py():
        raise TableError("node_ids: an empty id cannot be stored in a table; rename it, or write an .npz file")
    files = ("nodes.csv", "edges.csv", "features.npy", "features.npz", TABLE_FILE)
    nodes = {"id": ids} | _labels(graph) | {_split_name(i): _part_names(split) for i, split in enumerate(graph.splits)}
    nodes |= {role: getattr(graph, role) for role in ("time", "group") if getattr(graph, role) is not None}
    features = _features(graph)
    if repeated := set(features) & set(nodes):
        raise TableError(f"feature_names: {min(repeated)!r} cannot name a column; rename it, or write an .npz file")
    nodes |= features
    source, target = (ids.take(pa.array(end)) for end in graph.edge_index.numpy())
    edges = {"source": source, "target": target}
    if graph.edge_weight is not None:
        edges["weight"] = graph.edge_weight.numpy()
    if graph.edge_type is not None:
        edges["edge_type"] = pa.array(graph.edge_types, TEXT).take(pa.array(graph.edge_type.numpy()))
    with whole_folder(folder, marker=metadata.FILE, ours=files) as temporary:
        for name, columns in (("nodes.csv", nodes), ("edges.csv", edges)):
            with (temporary / name).open("wb") as file:
                pa.csv.write_csv(pa.table(columns), file)
        if isinstance(graph.x, sp.csr_array):
            sp.save_npz(temporary / "features.npz", graph.x)
        elif graph.x is not None and not features:
            np.save(temporary / "features.npy", graph.x.numpy())
        table = graph.table if graph.edge_table is None else graph.columns
        if table is not None:
            (temporary / TABLE_FILE).write_bytes(archive.table_bytes(table))
        Metadata.of(graph).write(temporary)


def _features(graph: Graph) -> dict[str, np.ndarray]:
    """Return the features as columns; none if they are written to a separate file."""
    if not isinstance(graph.x, torch.Tensor) or graph.x.dtype != torch.float32:
        if graph.feature_names:
            raise TableError("feature_names: a table stores them for dense float32 features only; write an .npz file")
        return {}
    for name in graph.feature_names or ():
        if not is_feature(name) or name != name.strip() or not name.isprintable():
            raise TableError(f"feature_names: {name!r} cannot name a column; rename it, or write an .npz file")
    wide = graph.num_features > _MAX_COLUMNS
    names = graph.feature_names or [f"x{i}" for i in range(0 if wide else graph.num_features)]
    return dict(zip(names, graph.x.numpy().T, strict=False))


def _split_name(number: int) -> str:
    return "split" if number == 0 else f"split{number + 1}"


def _part_names(split: Split) -> np.ndarray:
    """Return the name of the part that each node is in."""
    return np.select([getattr(split, part).numpy() for part in PARTS], PARTS, "")


def _labels(graph: Graph) -> dict[str, pa.Array]:
    """Return the column of labels, if the graph has labels."""
    if graph.y is None:
        return {}
    names = Metadata.of(graph).classes or ()
    if "" in names:
        raise TableError("class_names: an empty name means unlabelled in a table; rename it, or write an .npz file")
    y, classes = graph.y.numpy(), pa.array(names, TEXT)
    if not graph.is_multilabel:
        return {"label": pc.fill_null(classes.take(pa.array(y, mask=y < 0)), "")}
    joined = [name for name in names if "|" in name]
    if joined:
        raise TableError(
            f"class_names: {joined[0]!r} has a |, which joins labels in a table; rename it, or write an .npz file"
        )
    ends = np.concatenate([[0], (y == 1).sum(1).cumsum()])
    lists = pa.ListArray.from_arrays(ends.astype(np.int32), classes.take(pa.array((y == 1).nonzero()[1])))
    bar = pa.scalar("|", TEXT)
    words = pc.binary_join(lists, bar)
    empty = pc.if_else(pa.array(graph.labelled.numpy()), bar, pa.scalar("", TEXT))
    return {"labels": pc.if_else(pc.equal(words, ""), empty, words)}
