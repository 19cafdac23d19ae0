"""Conversion of graphs from and to PyG, NetworkX and SciPy."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.errors import GraphError
from lignn.graph import names
from lignn.graph.graph import Graph
from lignn.graph.split import PARTS, Split

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data, HeteroData

_TYPE_NAMES = "edge_type_names"
"""Attribute of a PyG `Data` with the names of the types of edges."""


def from_pyg(data: Data | HeteroData, **parts: Any) -> Graph:
    """Return a graph from a PyG `Data` or `HeteroData`."""
    from torch_geometric.data import HeteroData

    if isinstance(data, HeteroData):
        from lignn.graph import hetero

        return hetero.from_hetero(data, **parts)
    arguments = {
        "x": data.get("x"),
        "y": labels_of(data),
        "edge_weight": weights_of(data),
        "num_nodes": data.num_nodes,
        "splits": splits_of([data.get(f"{part}_mask") for part in PARTS], data.num_nodes),
        "edge_type": data.get("edge_type"),
        "edge_types": data.get(_TYPE_NAMES),
    }
    return Graph(data.edge_index, **(arguments | parts))


def weights_of(store: Any) -> Tensor | None:
    """Return the weights of a PyG graph's edges; without `edge_weight`, a one-column `edge_attr` gives them."""
    weight = store.get("edge_weight")
    if weight is None and (attr := store.get("edge_attr")) is not None and attr.numel() == store.num_edges:
        weight = attr.flatten()
    return weight


def labels_of(store: Any) -> Tensor | None:
    """Return the labels of a PyG graph's nodes; those in a single column are class numbers."""
    y = store.get("y")
    return y[:, 0] if y is not None and y.ndim == 2 and y.shape[1] == 1 else y


def splits_of(masks: list[Tensor | None], num_nodes: int) -> list[Split]:
    """Return the splits in the masks (n or n×runs) of training, validation and test; none if one of them is missing."""
    there = [mask for mask in masks if mask is not None]
    if len(there) < len(masks):
        return []
    columns = [mask.reshape(num_nodes, -1).bool() for mask in there]
    return [Split(*(c[:, min(run, c.shape[1] - 1)] for c in columns)) for run in range(columns[0].shape[1])]


def to_pyg(graph: Graph) -> Data | HeteroData:
    """Return a PyG graph with the same tensors; CSR features become a torch sparse COO tensor.

    If the graph's table has a column `type`, the types of its nodes, the result is a `HeteroData`. Otherwise it is a
    `Data`, with the types of edges as `edge_type` (numbers) and `edge_type_names`.
    """
    from torch_geometric.data import Data

    from lignn.graph import hetero

    if hetero.has_node_types(graph):
        return hetero.to_hetero(graph)
    x = graph.x
    if isinstance(x, sp.csr_array):
        coo = x.tocoo()
        entries = torch.from_numpy(np.stack(coo.coords)), torch.from_numpy(coo.data)
        x = torch.sparse_coo_tensor(*entries, x.shape, check_invariants=True, is_coalesced=True)
    data = Data(x=x, edge_index=graph.edge_index, y=graph.y, num_nodes=graph.num_nodes)
    if graph.edge_weight is not None:
        data.edge_weight = graph.edge_weight
    if graph.edge_type is not None:
        data.edge_type = graph.edge_type
        data[_TYPE_NAMES] = graph.edge_types
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


def from_networkx(
    graph: nx.Graph, label: str, weight: str, x: str, missing: Collection[str] | None, edge_type: str
) -> Graph:
    """Return a graph from NetworkX.

    Labels may be values of any type; their texts become the class names. A missing label, NaN, -1 and the marks in
    `missing` mean unlabelled.
    For multi-label graphs, labels are lists with a 0 or 1 for each class, and the graph attribute `class_names` names
    the classes.
    """
    nodes = list(graph.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    edges = [(number[s], number[t], data) for s, t, data in graph.edges(data=True)]
    if not graph.is_directed():
        edges += [(t, s, data) for s, t, data in edges if s != t]
    weights, types = (_edge_values(edges, nodes, attribute) for attribute in (weight, edge_type))
    type_names = None if types is None else names.sorted_classes(map(str, types))
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
        edge_weight=None if weights is None else np.array(weights, np.float32),
        num_nodes=len(nodes),
        node_ids=[str(node) for node in nodes],
        class_names=class_names,
        name=graph.name or "graph",
        edge_type=None if types is None or type_names is None else [type_names.index(str(kind)) for kind in types],
        edge_types=type_names,
    )


def _edge_values(edges: list[tuple[int, int, dict[str, Any]]], nodes: list[Any], attribute: str) -> list[Any] | None:
    """Return an attribute of all edges; None if they do not have it."""
    values = [data.get(attribute) for _, _, data in edges]
    for (s, t, _), value in zip(edges, values, strict=True):
        if (value is None) != (values[0] is None):
            raise GraphError(
                f"edge {nodes[s]!r} → {nodes[t]!r} and the first edge: one has a {attribute!r}, the other has none"
            )
    return values if values and values[0] is not None else None


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
    values: dict[str, list[Any]] = {}
    if graph.edge_weight is not None:
        values["weight"] = graph.edge_weight.tolist()
    if graph.edge_type is not None and graph.edge_types is not None:
        values["type"] = [graph.edge_types[number] for number in graph.edge_type.tolist()]
    for edge, (s, t) in enumerate(graph.edge_index.T.tolist()):
        result.add_edge(ids[s], ids[t], **{name: value[edge] for name, value in values.items()})
    return result
