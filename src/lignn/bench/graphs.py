"""Synthetic graphs of any size whose degrees follow a power law: in memory, or as tables written block by block."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from lignn.graph import Graph, Split

COMMUNITY = 1000
"""Nodes of a community."""
INSIDE = 0.8
"""Share of the edges that stay inside a community."""
_TABLE_INSIDE = 0.9
"""The same in tables."""
_BLOCK = 2**21
"""Edges of a table that are drawn at once."""


def power_law(
    edges: int, num_classes: int = 10, num_features: int = 100, seed: int = 0, communities: bool = False
) -> Graph:
    """Return a learning problem with about `edges` undirected edges and a tenth as many nodes.

    The edges do not depend on the labels. The features are Gaussian noise, plus 1 in the column of the class. A
    hundredth of the nodes, but at least two a class, are for training, as many for validation, as many for testing.
    """
    n = max(edges // 10, 10 * num_classes)
    y = np.arange(n) % num_classes
    x = np.random.default_rng(seed).standard_normal((n, num_features), dtype=np.float32)
    x[np.arange(n), y] += 1
    part = max(n // 100, 2 * num_classes)
    split = Split.from_indices(n, *np.split(np.arange(3 * part), 3))
    graph = (graph_with_communities if communities else power_law_graph)(n, 2 * edges + n, seed=seed)
    return Graph(graph.edge_index, x=x, y=y, num_nodes=n, splits=[split], name=f"power law, {edges:.0e} edges")


def power_law_graph(nodes: int, entries: int, exponent: float = 2.5, seed: int = 0) -> Graph:
    """Return an undirected graph with nodes in random order and about `entries` non-zeros in A + I."""
    generator = np.random.default_rng(seed)
    weight = (np.arange(nodes) + 10.0) ** (-1 / (exponent - 1))
    ends = generator.choice(nodes, size=(2, (entries - nodes) // 2), p=weight / weight.sum())
    edges = torch.from_numpy(generator.permutation(nodes)[ends])
    return Graph(edges, num_nodes=nodes).without_self_loops().to_undirected()


def graph_with_communities(nodes: int, entries: int, exponent: float = 2.5, seed: int = 0) -> Graph:
    """Return such a graph with communities, as social and citation networks have them; nodes in random order.

    Both ends of an edge are drawn in proportion to their weights: the first among all nodes, the second with
    probability `INSIDE` only among those of the first one's community.
    """
    generator = np.random.default_rng(seed)
    weight = generator.permutation((np.arange(nodes) + 10.0) ** (-1 / (exponent - 1)))
    below = np.concatenate([[0.0], weight.cumsum()]) / weight.sum()
    count = (entries - nodes) // 2
    first = _drawn(below, generator.random(count))
    start = first // COMMUNITY * COMMUNITY
    inside = generator.random(count) < INSIDE
    low = np.where(inside, below[start], 0.0)
    high = np.where(inside, below[np.minimum(start + COMMUNITY, nodes)], 1.0)
    second = _drawn(below, low + (high - low) * generator.random(count))
    edges = torch.from_numpy(generator.permutation(nodes)[np.stack([first, second])])
    return Graph(edges, num_nodes=nodes).without_self_loops().to_undirected()


def _drawn(below: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return the nodes at places between 0 and 1, where `below` has the share of all weight before each node."""
    return np.minimum(np.searchsorted(below, place, side="right") - 1, len(below) - 2)


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
    label = (place // COMMUNITY % classes).astype(np.int16)
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
    communities = max(nodes // COMMUNITY, 1)
    one, other = generator.integers(communities, size=(2, count))
    other = np.where(generator.random(count) < _TABLE_INSIDE, one, other)
    size = nodes / communities
    source, target = (
        np.minimum(((community + generator.random(count) ** 3) * size).astype(np.int64), nodes - 1)
        for community in (one, other)
    )
    distinct = source != target
    return source[distinct], target[distinct]
