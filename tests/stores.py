"""Small stores for the tests."""

from __future__ import annotations

from pathlib import Path

from lignn import Graph
from lignn.store import StoredGraph
from lignn.store.build import Options, build


def stored(graph: Graph, path: Path, parts: int = 5, keeps_features: bool = True) -> StoredGraph:
    build(graph, path, Options(parts, "metis"))
    return StoredGraph(path, keeps_features=keeps_features)
