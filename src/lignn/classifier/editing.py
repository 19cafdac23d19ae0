"""The methods of `NodeClassifier` that change its graph without training."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lignn.classifier import edits
from lignn.classifier.certificate import unique_for_all_labels, warn_if_unsolved
from lignn.classifier.draft import Draft
from lignn.classifier.model import Fitted, Model
from lignn.classifier.update import Update
from lignn.graph import Graph

_UNPROVED = "it is not proved that the equilibrium is unique on the changed graph"


class GraphEditing:
    """Changes of the graph of a fitted classifier: each is solved at once and leaves all of it consistent."""

    graph_: Graph
    _fitted: Fitted

    def remove_nodes(self, nodes: Iterable[Any]) -> Update:
        """Remove nodes (numbers or ids) with their edges and labels; the nodes behind them get smaller numbers."""
        check_is_fitted(self)
        kept = edits.kept_nodes(self.graph_, nodes)
        update = self._solve_draft(Draft.of(self._fitted).without_nodes(nodes), kept)
        warn_if_unsolved(update.after)
        return update

    def add_edges(self, edges: Any, edge_weight: Any = None, edge_type: Any = None, edge_columns: Any = None) -> Update:
        """Add edges between nodes of the graph; one that is there already is replaced, unless edges carry columns.

        Args:
            edges: 2×E, sources above targets, as numbers or ids. In an undirected graph they are used in both
                directions.
            edge_weight: one weight per edge, for a graph with weights.
            edge_type: one type per edge, by number or name, for a graph with types.
            edge_columns: one row per edge, for a graph whose edges carry columns.
        """
        check_is_fitted(self)
        draft = Draft.of(self._fitted).with_edges(edges, edge_weight, edge_type, edge_columns)
        update = self._solve_draft(draft)
        warn_if_unsolved(update.after)
        return update

    def remove_edges(self, edges: Any, edge_type: Any = None) -> Update:
        """Remove edges, all of which must be there.

        Args:
            edges: as for `add_edges`.
            edge_type: one type per edge; by default the edges of all types between the two nodes are removed.
        """
        check_is_fitted(self)
        update = self._solve_draft(Draft.of(self._fitted).without_edges(edges, edge_type))
        warn_if_unsolved(update.after)
        return update

    def change_features(self, features: Mapping[Any, Any]) -> Update:
        """Change features of nodes.

        Args:
            features: by node number or id: a list of all features, or a mapping from names of columns (numbers as text
                in a graph without names) to new values.
        """
        check_is_fitted(self)
        update = self._solve_draft(Draft.of(self._fitted).with_features(features))
        warn_if_unsolved(update.after)
        return update

    def _solve_draft(self, draft: Draft, kept: Tensor | None = None) -> Update:
        """Take the solved draft over; `kept` are the old nodes that are still there, by default all."""
        before = self._fitted.prediction
        self._take(draft.solved(self._fitted))
        after = self._fitted.prediction
        warm = draft.state is not None and unique_for_all_labels(after.bound)
        return Update(before, after, "" if warm else _UNPROVED, kept)

    @abstractmethod
    def _take(self, model: Model) -> None:
        """Take over another state of the model."""
