"""Tables of a synthetic graph of any size: communities, power-law degrees, features; written block by block."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SIZE = 1000
"""Nodes of a community."""
INSIDE = 0.9
"""Share of the edges within a community."""
_BLOCK = 2**21


def write_tables(folder: Path, nodes: int, pairs: int, features: int = 32, classes: int = 5, seed: int = 0) -> None:
    """Write `nodes.parquet`, `edges.parquet` and `features.npy`, for `lignn store build --undirected`.

    The weight of the r-th node of a community falls as r^(-2/3), so that degrees follow a power law with exponent 2.5.
    All nodes of a community have the same class. The features are noise, plus 1 in the column of the class. Ids are
    in random order. A hundredth of the nodes is for training, as many are for validation and for testing.

    Args:
        folder: where to write.
        nodes: number of nodes, n.
        pairs: number of undirected edges, before repeated ones are merged.
        features: width of the features.
        classes: number of classes.
        seed: seed of all random numbers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    place = generator.permutation(nodes).astype(np.int32)  # id ↦ place; neighbouring places are a community
    label = (place // SIZE % classes).astype(np.int16)
    split = np.full(nodes, 3, np.int8)
    part = max(nodes // 100, 2 * classes)
    split[: 3 * part] = np.repeat(np.arange(3, dtype=np.int8), part)
    words = pa.DictionaryArray.from_arrays(pa.array(split), pa.array(["train", "val", "test", ""]))
    table = pa.table({"id": np.arange(nodes, dtype=np.int32), "label": label, "split": words.cast(pa.string())})
    pq.write_table(table, folder / "nodes.parquet")
    x = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, (nodes, features))
    for first in range(0, nodes, _BLOCK // 16):
        rows = slice(first, min(first + _BLOCK // 16, nodes))
        block = generator.standard_normal((rows.stop - first, features), dtype=np.float32)
        block[np.arange(len(block)), label[rows]] += 1
        x[rows] = block
    x.flush()
    del x
    at = np.empty(nodes, np.int32)
    at[place] = np.arange(nodes, dtype=np.int32)
    schema = pa.schema({"source": pa.int32(), "target": pa.int32()})
    with pq.ParquetWriter(folder / "edges.parquet", schema) as writer:
        for first in range(0, pairs, _BLOCK):
            count = min(_BLOCK, pairs - first)
            source, target = _pairs(generator, nodes, count)
            writer.write_table(pa.table({"source": at[source], "target": at[target]}, schema))


def _pairs(generator: np.random.Generator, nodes: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the places of the ends of edges, without self-loops."""
    communities = max(nodes // SIZE, 1)
    one, other = generator.integers(communities, size=(2, count))
    other = np.where(generator.random(count) < INSIDE, one, other)
    size = nodes / communities
    source, target = (
        np.minimum(((community + generator.random(count) ** 3) * size).astype(np.int64), nodes - 1)
        for community in (one, other)
    )
    distinct = source != target
    return source[distinct], target[distinct]
