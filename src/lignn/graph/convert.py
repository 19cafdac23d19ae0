"""Conversion of graphs from and to PyG, NetworkX and SciPy."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch

from lignn.errors import GraphError
from lignn.graph import names
from lignn.graph.graph import Graph
from lignn.graph.split import PARTS, Split

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data


def from_pyg(data: Data, **parts: Any) -> Graph:
    """Return a graph from a PyG `Data`; without `edge_weight`, a one-column `edge_attr` gives the weights."""
    weight = data.get("edge_weight")
    if weight is None and (attr := data.get("edge_attr")) is not None and attr.numel() == data.num_edges:
        weight = attr.flatten()
    y = data.get("y")
    if y is not None and y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    masks = [data.get(f"{part}_mask") for part in PARTS]
    splits: list[Split] = []
    if all(mask is not None for mask in masks):
        columns = [mask.reshape(data.num_nodes, -1).bool() for mask in masks]
        splits = [Split(*(c[:, min(run, c.shape[1] - 1)] for c in columns)) for run in range(columns[0].shape[1])]
    arguments = {"x": data.get("x"), "y": y, "edge_weight": weight, "num_nodes": data.num_nodes, "splits": splits}
    return Graph(data.edge_index, **(arguments | parts))


def to_pyg(graph: Graph) -> Data:
    """Return a PyG `Data` with the same tensors; CSR features become a torch sparse COO tensor."""
    from torch_geometric.data import Data

    x = graph.x
    if isinstance(x, sp.csr_array):
        coo = x.tocoo()
        entries = torch.from_numpy(np.stack(coo.coords)), torch.from_numpy(coo.data)
        x = torch.sparse_coo_tensor(*entries, x.shape, check_invariants=True, is_coalesced=True)
    data = Data(x=x, edge_index=graph.edge_index, y=graph.y, num_nodes=graph.num_nodes)
    if graph.edge_weight is not None:
        data.edge_weight = graph.edge_weight
    if graph.splits:
        for part in PARTS:
            data[f"{part}_mask"] = getattr(graph.splits[0], part)
    return data


def from_scipy(matrix: sp.sparray, **parts: Any) -> Graph:
    """Return a graph from a square matrix; if all entries are one, the graph has no weights."""
    coo = sp.coo_array(matrix)
    if coo.shape[0] != coo.shape[1]:
        raise GraphError(f"an adjacency matrix must be square, got {coo.shape[0]}×{coo.shape[1]}")
    weight = None if np.all(coo.data == 1) else coo.data
    return Graph(np.stack(coo.coords).astype(np.int64), edge_weight=weight, **({"num_nodes": coo.shape[0]} | parts))


def to_scipy(graph: Graph) -> sp.csr_array:
    """Return a CSR matrix whose entry (i, j) is the summed weight of the edges i → j (their number, if unweighted)."""
    weight = np.ones(graph.num_edges, np.float32) if graph.edge_weight is None else graph.edge_weight.numpy()
    source, target = graph.edge_index.numpy()
    return sp.coo_array((weight, (source, target)), shape=(graph.num_nodes,) * 2).tocsr()


def from_networkx(graph: nx.Graph, label: str, weight: str, x: str, missing: Collection[str] | None) -> Graph:
    """Return a graph from NetworkX.

    Labels may be values of any type; their texts become the class names. A missing label, NaN, -1 and the marks in
    `missing` mean unlabelled.
    For multi-label graphs, labels are lists with a 0 or 1 for each class, and the graph attribute `class_names` names
    the classes.
    """
    nodes = list(graph.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    edges = [(number[s], number[t], data.get(weight)) for s, t, data in graph.edges(data=True)]
    if not graph.is_directed():
        edges += [(t, s, w) for s, t, w in edges if s != t]
    if some := [e for e in edges if (e[2] is None) != (edges[0][2] is None)]:
        s, t, _ = some[0]
        raise GraphError(
            f"edge {nodes[s]!r} → {nodes[t]!r} and the first edge: one has a {weight!r}, the other has none"
        )
    labels = [_label(data.get(label)) for _, data in graph.nodes(data=True)]
    several = any(isinstance(value, list | set | frozenset) for value in labels)
    y, class_names = (
        (_multi_hot(labels, nodes, label), graph.graph.get("class_names"))
        if several
        else _class_numbers(labels, label, missing)
    )
    features = [data.get(x) for _, data in graph.nodes(data=True)]
    if any(f is None for f in features) and any(f is not None for f in features):
        raise GraphError(f"node {nodes[[f is None for f in features].index(True)]!r} has no {x!r} while others have")
    return Graph(
        np.array([e[:2] for e in edges], np.int64).T,
        x=None if not features or features[0] is None else _matrix(features, x),
        y=y,
        edge_weight=np.array([e[2] for e in edges], np.float32) if edges and edges[0][2] is not None else None,
        num_nodes=len(nodes),
        node_ids=[str(node) for node in nodes],
        class_names=class_names,
        name=graph.name or "graph",
    )


def _label(value: Any) -> Any:
    """Return a label, a list of 0 and 1 for multi-label graphs, or None if the label is missing."""
    if isinstance(value, np.ndarray | torch.Tensor):
        value = value.tolist()
    if isinstance(value, Real) and math.isnan(value):
        return None
    return list(value) if isinstance(value, tuple) else value


def _class_numbers(
    labels: list[Any], what: str, missing: Collection[str] | None
) -> tuple[np.ndarray | None, tuple[str, ...] | None]:
    """Return the class numbers, -1 = unlabelled, and the class names; two times None if there is no label."""
    texts = ["" if value is None else names.normalised(str(value)) for value in labels]
    unknown = names.unknown_labels(set(texts), missing)
    names.note_unknown(f"node attribute {what!r}", [text for text in texts if text in unknown])
    classes = names.sorted_classes(set(texts) - unknown)
    names.note_twins(f"node attribute {what!r}", classes)
    number = {name: i for i, name in enumerate(classes)}
    y = np.array([number.get(text, -1) for text in texts])
    return (y, classes) if classes else (None, None)


def _multi_hot(labels: list[Any], nodes: list[Any], what: str) -> np.ndarray:
    """Return the labels of a multi-label graph as 0/1 rows, -1 = unlabelled."""
    width = max(len(value) for value in labels if isinstance(value, list | set | frozenset))
    for node, value in zip(nodes, labels, strict=True):
        row = isinstance(value, list) and len(value) == width and all(entry in (0, 1) for entry in value)
        if value is not None and not row:
            raise GraphError(
                f"node {node!r}: a {what!r} of several classes must be a list of 0 and 1, one per class ({width}), "
                f"got {value!r}"
            )
    return np.array([[-1] * width if value is None else value for value in labels], np.int8)


def _matrix(rows: list[Any], what: str) -> np.ndarray:
    try:
        return np.asarray(rows, np.float32)
    except (ValueError, TypeError) as error:
        raise GraphError(f"{what}: every node needs the same number of numbers ({error})") from error


def to_networkx(graph: Graph) -> nx.MultiDiGraph:
    """Return a directed multigraph; for multi-label graphs, its attribute `class_names` names the classes."""
    import networkx as nx

    result = nx.MultiDiGraph(name=graph.name)
    if graph.is_multilabel and graph.class_names is not None:
        result.graph["class_names"] = graph.class_names
    ids = [str(i) for i in graph.node_ids] if graph.node_ids is not None else list(range(graph.num_nodes))
    x = graph.x.toarray() if isinstance(graph.x, sp.csr_array) else graph.x
    for i, node in enumerate(ids):
        attributes: dict[str, Any] = {} if x is None else {"x": x[i].tolist()}
        if graph.y is not None and graph.labelled[i]:
            label: Any = graph.y[i].tolist()
            attributes["label"] = (
                label if graph.class_names is None or graph.is_multilabel else graph.class_names[label]
            )
        result.add_node(node, **attributes)
    weights = [None] * graph.num_edges if graph.edge_weight is None else graph.edge_weight.tolist()
    for (s, t), w in zip(graph.edge_index.T.tolist(), weights, strict=True):
        result.add_edge(ids[s], ids[t], **({} if w is None else {"weight": w}))
    return result
