"""What a graph in a store holds: the same facts as `inspection` finds in memory, counted part by part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components

from lignn.evaluation.inspected_columns import USES, InspectedColumn, of_nodes, of_table
from lignn.evaluation.inspection import COUNTED, LISTED, Homophily, Inspection, class_counts, known_labels
from lignn.graph import measures
from lignn.propagation.streamed import StreamedAdjacency
from lignn.store import Part, StoredGraph
from lignn.store.share import BLOCK


def inspect(graph: StoredGraph) -> Inspection:
    """Return what a graph in a store holds; its repeated edges were merged when it was built."""
    known = known_labels(graph)
    counted = _Counted.of(graph, known.numpy())
    sizes = np.bincount(counted.component)
    transitions = counted.transitions
    single = transitions is not None and transitions.sum() > 0
    evidence = None
    if known.any():
        unreached = ~np.isin(counted.component, counted.component[known.numpy()])
        forth = StreamedAdjacency(graph, graph.share, "none", False, torch.float32).reached(known)
        evidence = measures.OneWay(int((~forth).sum()), int(unreached.sum()), graph.num_nodes)
    return Inspection(
        name=graph.name,
        columns=_columns(graph),
        nodes=graph.num_nodes,
        edges=_edges(graph),
        directed=not graph.is_undirected,
        repeated=0,
        self_loops=counted.loops,
        degrees=measures.Degrees(
            float(counted.incoming.mean()),
            float(np.median(counted.incoming)),
            int(counted.incoming.max()),
            int((~counted.touched).sum()),
        ),
        degree_counts={degree: int(count) for degree, count in enumerate(np.bincount(counted.incoming)) if count},
        components=len(sizes),
        largest_component=int(sizes.max()),
        classes=class_counts(graph, known),
        known=int(known.sum()),
        held_back=int((graph.labelled & ~known).sum()),
        homophily=counted.homophily if single else None,
        transitions=_shares(transitions) if transitions is not None and single and len(transitions) <= LISTED else None,
        evidence=evidence,
        notes=() if graph.reading is None else graph.reading.notes,
        several=graph.is_multilabel,
    )


@dataclass
class _Counted:
    """What is counted in one pass over the edges.

    Attributes:
        incoming: number of incoming edges of each node.
        touched: whether a node has an edge other than a self-loop.
        loops: number of self-loops.
        component: number of each node's weakly connected component.
        transitions: number of edges between known labels by their classes; None if nodes have several, or there are
            too many classes.
        same: number of a node's incoming edges from the same known label.
        labelled: number of its incoming edges from a known label, if its own is known.
    """

    incoming: np.ndarray
    touched: np.ndarray
    loops: int
    component: np.ndarray
    transitions: np.ndarray | None
    same: np.ndarray
    labelled: np.ndarray

    @classmethod
    def of(cls, graph: StoredGraph, known: np.ndarray) -> _Counted:
        """Count; `known` is the mask of the known labels."""
        n, c = graph.num_nodes, graph.num_classes
        numbers = (np.zeros(n, np.int64) for _ in range(3))
        several = graph.y is None or graph.is_multilabel or not 0 < c <= COUNTED
        found = cls(next(numbers), np.zeros(n, bool), 0, np.arange(n), None, next(numbers), next(numbers))
        y = np.full(n, -1)
        if not several and graph.y is not None:
            found.transitions = np.zeros((c, c), np.int64)
            y = np.where(known, graph.y.numpy(), -1)
        for part in (part for kind in graph.kinds for part in graph.matrix("in", kind)):
            found._add(part, y)
        _, found.component = np.unique(found.component, return_inverse=True)
        return found

    def _add(self, part: Part, y: np.ndarray) -> None:
        row, column = _ends(part)
        rows, count = part.rows, part.rows.stop - part.rows.start
        proper = row != column
        self.incoming[rows] += np.bincount(row - rows.start, minlength=count)
        self.loops += int((~proper).sum())
        self.touched[row[proper]] = self.touched[column[proper]] = True
        self._join(self.component[row], self.component[column])
        if self.transitions is not None:
            both = (y[row] >= 0) & (y[column] >= 0)
            source, target, node = y[column[both]], y[row[both]], row[both] - rows.start
            c = len(self.transitions)
            self.transitions += np.bincount(source * c + target, minlength=c * c).reshape(c, c)
            self.labelled[rows] += np.bincount(node, minlength=count)
            self.same[rows] += np.bincount(node[source == target], minlength=count)

    def _join(self, one: np.ndarray, other: np.ndarray) -> None:
        """Join components that edges connect; each is named by one of its nodes."""
        names, ends = np.unique(np.stack([one, other]), return_inverse=True)
        links = sp.coo_array((np.ones(len(one), bool), tuple(ends)), shape=(len(names), len(names)))
        count, joined = connected_components(links, directed=True, connection="weak")
        name = np.empty(count, np.int64)
        name[joined] = names
        table = np.arange(len(self.component))
        table[names] = name[joined]
        self.component = table[self.component]

    @property
    def homophily(self) -> Homophily:
        """Homophily of the edges between known labels."""
        counts, has = torch.from_numpy(self.transitions).double(), self.labelled > 0
        node = float((self.same[has] / self.labelled[has]).mean())
        return Homophily(measures.edge_share(counts), node, measures.adjusted_share(counts))


def _ends(part: Part) -> tuple[np.ndarray, np.ndarray]:
    """Return the targets and the sources of the edges of a part."""
    rows = np.arange(part.rows.start, part.rows.stop)
    row = [np.repeat(rows, np.diff(block.indptr)) for block in (part.local, part.halo)]
    column = [part.local.indices + part.rows.start, part.nodes[part.halo.indices]]
    return np.concatenate(row), np.concatenate(column)


def _shares(counts: np.ndarray) -> list[list[float]]:
    return (counts / np.maximum(counts.sum(1, keepdims=True), 1)).tolist()


def _edges(graph: StoredGraph) -> dict[str, int]:
    counts = [
        sum(part["local"] + part["halo"] for part in graph.manifest["parts"][graph.matrix_name("in", kind)])
        for kind in graph.kinds
    ]
    return dict(zip(graph.edge_types or ("edges",), counts, strict=True))


def _columns(graph: StoredGraph) -> tuple[InspectedColumn, ...]:
    """Return the columns of the tables that the store was built from; its features are one column without them."""
    ids = graph.ids_of(slice(0, min(3, graph.num_nodes))).tolist() if graph.has_ids else None
    read = graph.reading
    file, kind = ("nodes", None) if read is None else (read.nodes.file, dict(read.nodes.roles).get("type"))
    found = list(of_nodes(graph, ids))
    if graph.preparation is not None:
        found += of_table(file, graph.preparation.columns, kind)
    elif graph.num_features:
        used = f"{graph.num_features:,} features, used as they are"
        found.append(InspectedColumn(file, "x", "feature", "number", 0, None, _range(graph), used))
    if graph.edge_types is not None:
        types, shown = graph.edge_types, ", ".join(map(repr, graph.edge_types[:3]))
        of_edges = None if read is None else read.edges
        named = "edge_type" if of_edges is None else dict(of_edges.roles)["edge_type"]
        file = "edges" if of_edges is None else of_edges.file
        found.append(InspectedColumn(file, named, "edge_type", "category", 0, len(types), shown, USES["edge_type"]))
    return tuple(found)


def _range(graph: StoredGraph) -> str:
    """Return the least and the largest feature; those that a sparse matrix does not store are zero."""
    x = graph.array("x_data") if "x_data" in graph.manifest["arrays"] else graph.array("x")
    blocks = [x[first : first + BLOCK] for first in range(0, len(x), BLOCK)]
    ends = [(float(block.min()), float(block.max())) for block in blocks]
    if x.ndim == 1:
        ends.append((0.0, 0.0))
    return f"{min(low for low, _ in ends):.6g} … {max(high for _, high in ends):.6g}"
