"""What a graph holds, before anything is trained: columns, edges, labels, and what to do about what looks wrong.

Only labels that a fit would know have a part in this: those of the training and validation nodes of the graph's own
split, all labels if it has none. Test labels change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from lignn.errors import GraphError
from lignn.evaluation.inspected_columns import InspectedColumn, class_names, columns
from lignn.evaluation.proposed_links import Proposal, proposed
from lignn.graph import Graph, measures, splits
from lignn.training.metrics import MAJORITY

FEW = 5
"""Known labels of a class below which little can be learned of it."""
_GAPS = 0.5
"""Share of missing values from which a column is worth a word."""
COUNTED, LISTED = 1000, 100
"""Largest number of classes whose transitions are counted, and listed."""
_NAMED = 3
"""Names in a warning before the rest is counted."""


@dataclass(frozen=True)
class Homophily:
    """How often the ends of an edge have the same known label; see `lignn.graph.measures`."""

    edge: float
    node: float
    adjusted: float | None
    """None if all these edges join nodes of one class."""


@dataclass(frozen=True)
class Inspection:
    """What a graph holds.

    Attributes:
        name: name of the graph.
        columns: the columns of its tables.
        nodes: number of nodes.
        edges: number of stored edges by type; "edges" if they have no types.
        directed: whether an edge lacks its reverse.
        repeated: number of edges that join the same nodes as another of the same type.
        self_loops: number of edges that join a node to itself.
        degrees: statistics of the numbers of incoming edges.
        degree_counts: number of nodes by number of incoming edges.
        components: number of weakly connected components.
        largest_component: number of nodes of the largest.
        classes: number of known labels by class.
        known: number of nodes with a known label.
        held_back: number of labels that were not looked at: those that the graph's split has for the test, or nowhere.
        homophily: of edges between known labels; None if there are none, or nodes have several labels.
        transitions: share of the edges out of class i that end in class j; None as above, or with many classes.
        evidence: how many nodes no known label reaches; None without known labels.
        notes: what the reader of the tables says, in words.
        several: whether a node may have several labels.
        carried: whether edges carry columns, so that they may be repeated.
        proposal: rules that would join the rows of one table; None if there is nothing to propose.
    """

    name: str
    columns: tuple[InspectedColumn, ...]
    nodes: int
    edges: Mapping[str, int]
    directed: bool
    repeated: int
    self_loops: int
    degrees: measures.Degrees
    degree_counts: Mapping[int, int]
    components: int
    largest_component: int
    classes: Mapping[str, int]
    known: int
    held_back: int
    homophily: Homophily | None
    transitions: list[list[float]] | None
    evidence: measures.OneWay | None
    notes: tuple[str, ...]
    several: bool
    carried: bool = False
    proposal: Proposal | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What looks wrong and what to do about it, in words."""
        return (*_about_labels(self), *_about_edges(self), *_about_columns(self))

    def plain(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self) | {"warnings": list(self.warnings)}

    def facts(self) -> list[tuple[str, str]]:
        """Return rows of a table: what is counted, and the number."""
        one_way = "directed" if self.directed else "undirected, each stored in both directions"
        if self.carried:
            one_way = "each stored in both directions, the reversed ones as types of their own"
        degrees, largest = self.degrees, f"the largest has {self.largest_component:,} nodes"
        found = [("nodes", f"{self.nodes:,}"), ("edges", f"{sum(self.edges.values()):,} ({one_way})")]
        if list(self.edges) != ["edges"]:
            found += [(f"  {name}", f"{count:,}") for name, count in self.edges.items()]
        found += [
            ("repeated edges, self-loops", f"{self.repeated:,}, {self.self_loops:,}"),
            ("incoming edges a node", f"mean {degrees.mean:.2f}, median {degrees.median:g}, most {degrees.maximum:,}"),
            ("nodes without edges", f"{degrees.isolated:,}"),
            ("connected components", f"{self.components:,} ({largest})"),
            ("known labels", f"{self.known:,}" + f", {self.held_back:,} more are not looked at" * bool(self.held_back)),
        ]
        if self.homophily is not None:
            same, adjusted = self.homophily, self.homophily.adjusted
            chance = "" if adjusted is None else f", corrected for chance {adjusted:.3f}"
            found.append(("edges between equal labels", f"{same.edge:.1%}, mean of nodes {same.node:.1%}{chance}"))
        if self.evidence is not None:
            reached = self.nodes - self.evidence.without
            found.append(("nodes that a known label reaches", f"{reached:,} ({reached / self.nodes:.1%})"))
        return found


def inspect(graph: Graph) -> Inspection:
    """Return what `graph` holds."""
    known = known_labels(graph)
    component = measures.components(graph).bincount()
    counts = graph.edge_index[1].bincount(minlength=graph.num_nodes).bincount()
    seen = _with_labels(graph, known)
    transitions = _transitions(seen)
    return Inspection(
        name=graph.name,
        columns=columns(graph),
        nodes=graph.num_nodes,
        edges=_edges(graph),
        directed=not graph.is_undirected,
        repeated=graph.num_edges - graph.coalesced().num_edges,
        self_loops=int((graph.edge_index[0] == graph.edge_index[1]).sum()),
        degrees=measures.degrees(graph),
        degree_counts={degree: int(count) for degree, count in enumerate(counts) if count},
        components=len(component),
        largest_component=int(component.max()),
        classes=class_counts(graph, known),
        known=int(known.sum()),
        held_back=int((graph.labelled & ~known).sum()),
        homophily=None if transitions is None else _homophily(seen),
        transitions=None if transitions is None or len(transitions) > LISTED else transitions.tolist(),
        evidence=measures.one_way(graph, known) if known.any() else None,
        notes=() if graph.reading is None else graph.reading.notes,
        several=graph.is_multilabel,
        carried=graph.edge_table is not None,
        proposal=proposed(graph),
    )


def known_labels(graph: Graph) -> Tensor:
    """Return the mask of the labels that a fit would know."""
    split = splits.own(graph)
    return graph.labelled if split is None else graph.labelled & (split.train | split.val)


def _with_labels(graph: Graph, known: Tensor) -> Graph:
    """Return the graph with the known labels only."""
    if graph.y is None or not known.any():
        return graph.replace(y=None, class_names=None)
    y = torch.where(known[:, None] if graph.is_multilabel else known, graph.y, -1)
    return graph.replace(y=y, class_names=class_names(graph))


def _edges(graph: Graph) -> dict[str, int]:
    if graph.edge_type is None or graph.edge_types is None:
        return {"edges": graph.num_edges}
    counts = graph.edge_type.bincount(minlength=len(graph.edge_types)).tolist()
    return dict(zip(graph.edge_types, counts, strict=True))


def class_counts(graph: Graph, known: Tensor) -> dict[str, int]:
    """Return the number of known labels by class."""
    if graph.y is None:
        return {}
    y = graph.y[known]
    counts = y.long().sum(0) if graph.is_multilabel else y.bincount(minlength=graph.num_classes)
    return dict(zip(class_names(graph), counts.tolist(), strict=True))


def _transitions(graph: Graph) -> Tensor | None:
    """Return the label transitions; None where they are not defined."""
    if graph.y is None or graph.is_multilabel or graph.num_classes > COUNTED:
        return None
    if not graph.labelled[graph.edge_index].all(0).any():
        return None
    return measures.label_transitions(graph)


def _homophily(graph: Graph) -> Homophily:
    try:
        adjusted = measures.adjusted_homophily(graph)
    except GraphError:  # all edges join nodes of one class
        adjusted = None
    return Homophily(measures.edge_homophily(graph), measures.node_homophily(graph), adjusted)


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(repr, names[:_NAMED])) + more


def _about_labels(found: Inspection) -> Iterator[str]:
    if not found.known:
        yield "no label is known, so nothing can be learned; fill some in, or name their column by --column label=NAME"
        return
    name, most = max(found.classes.items(), key=lambda item: item[1])
    if most > MAJORITY * found.known and not found.several:
        yield (
            f"class {name!r} has {most / found.known:.1%} of the known labels, which a model may always answer; "
            "choose a --metric such as average_precision or f1_macro, and try --class-weight balanced"
        )
    if rare := [name for name, count in found.classes.items() if count < FEW]:
        yield (
            f"{len(rare)} of {len(found.classes)} classes have fewer than {FEW} known labels: {_named(rare)}; label "
            "more nodes of them, or name labels that mean unknown by --missing"
        )
    reach = found.evidence
    if reach is not None and found.directed and reach.matters:
        yield str(reach)
    if reach is not None and reach.without_if_undirected > measures.MANY * found.nodes:
        yield (
            f"{reach.without_if_undirected} of {found.nodes} nodes have no known label in their component: their "
            "features alone speak; label a node in each large component"
        )


def _about_edges(found: Inspection) -> Iterator[str]:
    isolated = found.degrees.isolated
    if isolated > measures.MANY * found.nodes:
        yield (
            f"{isolated} of {found.nodes} nodes have no edges; if they should have some, see whether the edges name "
            "them by another column (--column id=NAME)"
        )
    if found.repeated and not found.carried:
        yield (
            f"{found.repeated} edges repeat another, so that they weigh more together; remove them if that is not meant"
        )
    if len(found.edges) > 1:
        yield f"edges have {len(found.edges)} types, which most networks take as one; --backbone rgcn tells them apart"


def _about_columns(found: Inspection) -> Iterator[str]:
    if ids := [column.name for column in found.columns if column.kind == "id" and column.role == "ignored"]:
        yield f"{_named(ids)} looks like an id and is ignored; if the edges name nodes by it, say --column id={ids[0]}"
    gaps = [column for column in found.columns if column.role == "feature" and column.kind != "constant"]
    if sparse := [column.name for column in gaps if (column.missing or 0) > _GAPS * found.nodes]:
        yield f"more than half of {_named(sparse)} is missing; leave it out by --ignore NAME if that says nothing"
    if not any(column.role in ("feature", "type") for column in found.columns):
        yield "the nodes have no features; methods that need them will refuse, lignn and lpa do not need them"
