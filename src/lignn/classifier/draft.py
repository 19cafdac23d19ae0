"""A model's graph while it is being changed: any number of changes, then one solve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lignn.classifier import columns, edits, growth, scoring
from lignn.classifier.model import Fitted
from lignn.classifier.update import relabelled, solve_again, why_cold
from lignn.graph import Graph, Split
from lignn.labels import Classes, KnownLabels

if TYPE_CHECKING:
    from lignn.features import FeatureTransform


@dataclass(frozen=True, eq=False)
class Draft:
    """What a solve needs to know of a graph, row by row; each change returns another draft.

    Attributes:
        graph: the graph.
        labels: the known labels.
        split: the split.
        state: the last equilibrium, zeros for new nodes; None if a solve cannot start from it.
        preparation: makes features of the rows of a table; None if they are taken as they are.
    """

    graph: Graph
    labels: KnownLabels
    split: Split
    state: Tensor | None
    preparation: FeatureTransform | None = None

    @classmethod
    def of(cls, fitted: Fitted) -> Draft:
        """Return the draft of a fitted model in which nothing is changed yet."""
        prediction = fitted.prediction
        state = growth.state_for(prediction, fitted.graph.num_nodes)
        return cls(fitted.graph, prediction.problem.labels, fitted.split, state, fitted.preparation)

    @classmethod
    def without_model(cls, graph: Graph) -> Draft:
        """Return the draft of a graph for which there is no model, and so no classes."""
        nothing = torch.zeros(graph.num_nodes, dtype=torch.bool)
        return cls(
            graph, KnownLabels(nothing, torch.zeros(graph.num_nodes, 0)), Split(nothing, nothing, ~nothing), None
        )

    def with_nodes(
        self,
        features: Any,
        edges: Any,
        ids: Sequence[str] | None,
        edge_weight: Any = None,
        edge_type: Any = None,
        edge_columns: Any = None,
    ) -> Draft:
        """Add nodes, see `NodeClassifier.add_nodes`; they belong to the test part of the split."""
        rows = columns.new_rows(features, self.graph, self.preparation)
        graph = growth.grow(self.graph, rows, edges, ids, edge_weight, edge_type, edge_columns)
        n = graph.num_nodes
        labels, split = growth.labels_for(self.labels, n), growth.split_for(self.split, n)
        state = None if self.state is None else growth.padded(self.state, n)
        return replace(self, graph=graph, labels=labels, split=split, state=state)

    def without_nodes(self, nodes: Iterable[Any]) -> Draft:
        """Remove nodes with their edges and labels."""
        kept = edits.kept_nodes(self.graph, nodes)
        labels, split = self.labels, self.split
        return replace(
            self,
            graph=edits.without_nodes(self.graph, kept),
            labels=replace(labels, mask=labels.mask[kept], onehot=labels.onehot[kept]),
            split=Split(split.train[kept], split.val[kept], split.test[kept]),
            state=None if self.state is None else self.state[kept],
        )

    def with_edges(self, edges: Any, edge_weight: Any = None, edge_type: Any = None, edge_columns: Any = None) -> Draft:
        """Add edges, or replace them."""
        return replace(self, graph=edits.with_edges(self.graph, edges, edge_weight, edge_type, edge_columns))

    def without_edges(self, edges: Any, edge_type: Any = None) -> Draft:
        """Remove edges."""
        return replace(self, graph=edits.without_edges(self.graph, edges, edge_type))

    def with_features(self, features: Mapping[Any, Any]) -> Draft:
        """Change features of nodes."""
        return replace(self, graph=edits.with_features(self.graph, features))

    def with_labels(self, classes: Classes, labels: Mapping[Any, Any]) -> Draft:
        """Change known labels; None makes a label unknown."""
        return replace(self, labels=relabelled(self.labels, self.graph, classes, labels))

    def solved(self, fitted: Fitted) -> Fitted:
        """Predict with the weights of `fitted`, without training.

        The solve starts from the last equilibrium if it is proved that the start does not matter, otherwise from zero.
        """
        if self.graph is fitted.graph:
            return replace(fitted, prediction=solve_again(fitted.prediction, self.labels).after)
        bound = scoring.bind(fitted, self.graph, self.labels)
        prediction = bound.solve(None if why_cold(bound) else self.state)
        return replace(fitted, graph=self.graph, split=self.split, prediction=prediction)
