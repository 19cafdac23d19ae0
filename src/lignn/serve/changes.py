"""Changes taking effect on a state: checked one request at a time, solved together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp

from lignn.classifier import edits
from lignn.classifier.draft import Draft
from lignn.errors import ConflictError, InputError, UnknownNodeError, quoted
from lignn.graph import Graph
from lignn.labels import Classes
from lignn.serve.journal import Change
from lignn.serve.state import Label, State, known_label

if TYPE_CHECKING:
    import pyarrow as pa

MOST_CLASSES = 1000
MOST_CHARACTERS = 500
"""Longest id or name of a class that is taken."""


def edge_key(source: str, target: str, kind: str | None = None) -> str:
    """Return the key of an edge in the journal."""
    return json.dumps([source, target] + ([] if kind is None else [kind]), ensure_ascii=False)


@dataclass(frozen=True, eq=False)
class Work:
    """A state in the course of being changed; each request that fits returns another one.

    Attributes:
        classes: classes of the model.
        draft: graph, labels and equilibrium, without the labels in `labels`.
        labels: labels of this batch that are not in the draft yet; None = removed.
        waiting: labels that wait for a new fit.
        numbers: number of each node by its id.
    """

    classes: Classes
    draft: Draft
    labels: Mapping[str, Label | None]
    waiting: Mapping[str, Label]
    numbers: Mapping[str, int]
    before: State

    @classmethod
    def on(cls, state: State) -> Work:
        """Return the work on a state to which nothing was done."""
        return cls(state.classes, state.draft, {}, state.waiting, state.numbers, state)

    def taking(self, changes: Iterable[Change], *, new_classes: bool = False) -> tuple[Work, list[Change]]:
        """Apply the changes of one request, all or none.

        Args:
            changes: in order; runs of the same kind are applied together.
            new_classes: whether labels may be of classes that are not known yet.

        Returns:
            The work after them, and the changes with their old values, without those that change nothing.
        """
        work, made = self, []
        for (kind, gone), run in groupby(changes, key=lambda change: (change.kind, change.new is None)):
            if kind == "label":
                work, found = work._labelled(list(run), new_classes)
            elif kind == "node":
                work, found = (work._without_nodes if gone else work._with_nodes)(list(run))
            elif kind == "edge":
                work, found = (work._without_edges if gone else work._with_edges)(list(run))
            else:
                work, found = work._with_features(list(run))
            made += found
        return work, made

    def solved(self, version: int) -> State:
        """Return the state with all changes, solved."""
        return self.before.after(self._flushed().draft, self.waiting, version)

    def _flushed(self) -> Work:
        """Return the work with all labels in the draft."""
        if not self.labels:
            return self
        numbers = {self.numbers[node]: label for node, label in self.labels.items()}
        return replace(self, draft=self.draft.with_labels(self.classes, numbers), labels={})

    def _label(self, node: str) -> Label | None:
        if node in self.waiting:
            return self.waiting[node]
        if node in self.labels:
            return self.labels[node]
        return known_label(self.draft, self.classes, self.numbers[node])

    def _labelled(self, changes: Sequence[Change], new_classes: bool) -> tuple[Work, list[Change]]:
        known = {*self.classes.names, *(name for label in self.waiting.values() for name in _names(label))}
        work, made = replace(self, labels=dict(self.labels), waiting=dict(self.waiting)), []
        for change in changes:
            node = change.key
            self._check_node(node)
            label = None if change.new is None else self._checked(change.new, known, new_classes)
            old = work._label(node)
            if label == old:
                continue
            work._relabel(node, label)
            made.append(replace(change, new=label, old=old))
        return work, made

    def _relabel(self, node: str, label: Label | None) -> None:
        """Change one label in the dictionaries of this work, which must be its own."""
        labels, waiting = cast(dict, self.labels), cast(dict, self.waiting)
        waits = label is not None and not set(_names(label)) <= set(self.classes.names)
        waiting.pop(node, None)
        if waits:
            waiting[node] = label
        if self.classes.names:  # A label that must wait replaces the one that the model was given.
            labels[node] = None if waits else label

    def _checked(self, label: Any, known: set[str], new_classes: bool) -> Label:
        """Return a label whose classes are known, or may be new; these are added to `known`."""
        if not isinstance(label, str) and not self.classes.multilabel:
            raise InputError(f"one class per node is needed, got {label!r}")
        for name in _names(label):
            if not name.strip() or len(name) > MOST_CHARACTERS:
                raise InputError(f"a class is named by 1 to {MOST_CHARACTERS} characters, got {quoted(name)}")
            if name in known:
                continue
            if not new_classes:
                self._refuse_class(name)
            if len(known) >= MOST_CLASSES:
                raise InputError(f"there are {MOST_CLASSES} classes already; no more can be made here")
            known.add(name)
        return sorted(set(_names(label))) if self.classes.multilabel else label

    def _refuse_class(self, name: str) -> None:
        if self.classes.names:
            self.classes.number(name)  # raises, with the closest name
        raise InputError(f"class {quoted(name)} is new; say new_class=true to make it")

    def _check_node(self, node: str) -> None:
        if node not in self.numbers:
            raise UnknownNodeError(f"node {quoted(node)} is not in the graph")

    def _with_nodes(self, changes: Sequence[Change]) -> tuple[Work, list[Change]]:
        ids = [change.key for change in changes]
        for place, node in enumerate(ids):
            if node in self.numbers or node in ids[:place]:
                raise ConflictError(f"node {quoted(node)} is in the graph already")
            if not node or len(node) > MOST_CHARACTERS:
                raise InputError(f"an id has 1 to {MOST_CHARACTERS} characters, got {quoted(node)}")
        graph = self.draft.graph
        given = [(c.key, c.new.get("features")) for c in changes]
        rows: Any = None
        if graph.table is not None:
            rows = _table_rows(graph.table, given)
        elif graph.x is not None:
            rows = _rows(graph, given)
        weights = None if graph.edge_weight is None else np.zeros(0)
        nowhere = np.zeros((2, 0), dtype=np.int64)
        draft = self._flushed().draft.with_nodes(len(ids) if rows is None else rows, nowhere, ids, weights)
        assert draft.graph.node_ids is not None
        new = draft.graph.node_ids[graph.num_nodes :].tolist()  # ids, and values that they share with a row first
        numbers = {**self.numbers, **{node: graph.num_nodes + i for i, node in enumerate(new)}}
        return replace(self, draft=draft, labels={}, numbers=numbers), list(changes)

    def _without_nodes(self, changes: Sequence[Change]) -> tuple[Work, list[Change]]:
        work, made = self._flushed(), []
        for change in changes:
            self._check_node(change.key)
            number = self.numbers[change.key]
            old = {"features": features_of(self.draft.graph, number), "label": self._label(change.key)}
            made.append(replace(change, old=old | {"edges": work._edges_at(number)}))
        gone = {change.key for change in changes}
        draft = work.draft.without_nodes([self.numbers[node] for node in gone])
        left = [node for node in self.numbers if node not in gone]
        waiting = {node: label for node, label in self.waiting.items() if node not in gone}
        return replace(work, draft=draft, numbers={node: i for i, node in enumerate(left)}, waiting=waiting), made

    def _edges_at(self, number: int) -> list[list[Any]]:
        """Return source, target, weight and type of the edges at a node."""
        graph, ids = self.draft.graph, list(self.numbers)
        found = (graph.edge_index == number).any(0).nonzero().flatten().tolist()
        return [[*(ids[end] for end in graph.edge_index[:, edge].tolist()), *_edge(graph, edge)] for edge in found]

    def _pairs(self, changes: Sequence[Change]) -> tuple[np.ndarray, list[str] | None]:
        """Return the ends of edges as numbers, 2×E, and their types, if they have some."""
        parts = [json.loads(change.key) for change in changes]
        for source, target, *_ in parts:
            self._check_node(source)
            self._check_node(target)
        ends = np.array([[self.numbers[part[0]], self.numbers[part[1]]] for part in parts], dtype=np.int64).T
        kinds = [part[2] for part in parts if len(part) > 2]
        if kinds and len(kinds) < len(parts):
            raise InputError("edges: either all edges of a request have a type, or none")
        return ends, kinds or None

    def _old_edges(self, changes: Sequence[Change], ends: np.ndarray) -> list[Any]:
        graph = self.draft.graph
        source, target = graph.edge_index.numpy()
        found = []
        for change, (one, other) in zip(changes, ends.T, strict=True):
            kind = json.loads(change.key)[2:]
            there = np.flatnonzero((source == one) & (target == other))
            told = [_edge(graph, int(edge)) for edge in there]
            told = [(weight, name) for weight, name in told if not kind or name == kind[0]]
            found.append({} if told and told[0][0] is None else {"weight": told[0][0]} if told else None)
        return found

    def _with_edges(self, changes: Sequence[Change]) -> tuple[Work, list[Change]]:
        ends, kinds = self._pairs(changes)
        given = [change.new.get("weight") for change in changes]
        weights = None if all(weight is None for weight in given) else given
        if weights is not None and None in weights:
            raise InputError("edges: either all edges of a request have a weight, or none")
        columns = self._columns_of_edges(changes)
        draft = self._flushed().draft.with_edges(ends, weights, kinds, columns)
        if columns is not None:
            return replace(self, draft=draft, labels={}), list(changes)
        olds = self._old_edges(changes, ends)
        made = [replace(c, old=old) for c, old in zip(changes, olds, strict=True) if old is None or old != c.new]
        return replace(self, draft=draft, labels={}) if made else self, made

    def _columns_of_edges(self, changes: Sequence[Change]) -> list[dict[str, Any]] | None:
        """Return what new edges carry; values that are not given are missing. None if no edge names any."""
        given, rows = [change.new.get("columns") for change in changes], self.draft.graph.edge_table
        if all(each is None for each in given):
            return None
        names = () if rows is None else rows.rows.column_names
        return [{**dict.fromkeys(names), **(each or {})} for each in given]

    def _without_edges(self, changes: Sequence[Change]) -> tuple[Work, list[Change]]:
        ends, kinds = self._pairs(changes)
        draft = self._flushed().draft.without_edges(ends, kinds)
        olds = self._old_edges(changes, ends)
        made = [replace(change, old=old) for change, old in zip(changes, olds, strict=True)]
        return replace(self, draft=draft, labels={}), made

    def _with_features(self, changes: Sequence[Change]) -> tuple[Work, list[Change]]:
        made = []
        for change in changes:
            self._check_node(change.key)
            row = features_of(self.draft.graph, self.numbers[change.key], every=True) or {}
            old = {name: row.get(name) for name in change.new}
            if old != change.new:
                made.append(replace(change, old=old))
        given = {self.numbers[change.key]: change.new for change in changes}
        return replace(self, draft=self._flushed().draft.with_features(given), labels={}), made


def feature_columns(graph: Graph) -> tuple[str, ...]:
    """Return the names of the features, or of the columns that become features."""
    if graph.table is not None:
        return tuple(graph.table.column_names)
    return graph.feature_names or tuple(map(str, range(graph.num_features)))


def features_of(graph: Graph, number: int, every: bool = False) -> dict[str, Any] | None:
    """Return the features of a node by name, without zeros if features are sparse; None for a graph without any."""
    if graph.table is not None:
        return {name: _plain(value) for name, value in graph.table.slice(number, 1).to_pylist()[0].items()}
    if graph.x is None:
        return None
    row, names = edits.feature_row(graph, number), feature_columns(graph)
    columns = np.flatnonzero(row) if sp.issparse(graph.x) and not every else range(len(row))
    return {names[column]: float(row[column]) for column in columns}


def _plain(value: Any) -> Any:
    """Return the value of a cell as JSON has it: dates are texts."""
    return value if isinstance(value, str | bool | int | float | None) else str(value)


def _table_rows(table: pa.Table, given: Sequence[tuple[str, Any]]) -> pa.Table:
    """Return the columns of new nodes in the types of `table`; those that are not named are missing."""
    import pyarrow as pa

    for node, features in given:
        unknown = [name for name in features or {} if name not in table.column_names]
        if not isinstance(features, Mapping | None) or unknown:
            wrong = f"{unknown[0]!r} is no column" if isinstance(features, Mapping) else "values by name are needed"
            raise InputError(f"features of {quoted(node)}: {wrong}; see GET /model")
    rows = [features or {} for _, features in given]
    return pa.table(
        {name: edits.typed_column(table, name, [row.get(name) for row in rows]) for name in table.column_names}
    )


def _rows(graph: Graph, given: Sequence[tuple[str, Any]]) -> np.ndarray:
    """Return the features of new nodes as rows; of sparse features those that are not named are zero."""
    names = feature_columns(graph)
    rows = []
    for node, features in given:
        where = f"features of {quoted(node)}"
        if isinstance(features, Mapping):
            unknown = [name for name in features if name not in names]
            missing = [] if sp.issparse(graph.x) else [name for name in names if name not in features]
            if unknown or missing:
                wrong = f"{unknown[0]!r} is no feature" if unknown else f"{missing[0]!r} is missing"
                raise InputError(f"{where}: {wrong}; the graph has {len(names)} features, see GET /model")
            rows.append([features.get(name, 0.0) for name in names])
        elif features is None or len(features) != len(names):
            raise InputError(f"{where}: {len(names)} numbers are needed, got {len(features or ())}")
        else:
            rows.append(list(features))
    return np.array(rows, dtype=np.float64)


def _edge(graph: Graph, edge: int) -> tuple[float | None, str | None]:
    """Return weight and type of an edge."""
    weight = None if graph.edge_weight is None else float(graph.edge_weight[edge])
    kind = None if graph.edge_type is None else (graph.edge_types or ())[int(graph.edge_type[edge])]
    return weight, kind


def _names(label: Label) -> list[str]:
    return [label] if isinstance(label, str) else label
