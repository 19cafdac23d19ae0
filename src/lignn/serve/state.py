"""A whole state of the service: graph, labels and predictions of one version. Never changed, only replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from lignn.classifier.calibration import calibrated
from lignn.classifier.decision import Decision
from lignn.classifier.draft import Draft
from lignn.classifier.model import Fitted
from lignn.errors import UnknownNodeError, quoted
from lignn.graph import Graph
from lignn.labels import Classes
from lignn.methods import Prediction

Label = str | list[str]
"""Name of a class; for multi-label tasks a list of names."""

_NO_CLASSES = Classes((), False)


@dataclass(frozen=True, eq=False)
class State:
    """What readers see.

    Attributes:
        version: number of the last change in it.
        draft: graph, known labels, split and equilibrium.
        fitted: the model; None before the first fit.
        waiting: labels by id that the model cannot use before a new fit: those of new classes.
        numbers: number of each node by its id.
        ids: id of each node.
        evidence: mask of the nodes that a known label reaches.
    """

    version: int
    draft: Draft
    fitted: Fitted | None
    waiting: Mapping[str, Label]
    numbers: Mapping[str, int]
    ids: Sequence[str]
    evidence: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, draft: Draft, fitted: Fitted | None, waiting: Mapping[str, Label], version: int) -> State:
        """Return the state of a model, or of a graph without one."""
        assert draft.graph.node_ids is not None
        ids = draft.graph.node_ids.tolist()
        numbers = {name: number for number, name in enumerate(ids)}
        return cls(version, draft, fitted, waiting, numbers, ids, _evidence(draft, fitted))

    def after(self, draft: Draft, waiting: Mapping[str, Label], version: int) -> State:
        """Solve a changed draft of this state."""
        fitted = None if self.fitted is None else draft.solved(self.fitted)
        if draft.graph is not self.graph:
            solved = draft if fitted is None else Draft.of(fitted)
            return State.of(solved, fitted, waiting, version)
        if fitted is None:
            return replace(self, version=version, waiting=waiting, draft=draft)
        before, now = self.draft.labels.mask.numpy(), draft.labels.mask.numpy()
        # What a known label reaches was reached before if the node itself was.
        same = not (before & ~now).any() and self.evidence[now].all()
        evidence = self.evidence if same else _evidence(draft, fitted)
        return replace(self, version=version, waiting=waiting, draft=Draft.of(fitted), fitted=fitted, evidence=evidence)

    @property
    def graph(self) -> Graph:
        """The graph; its nodes have ids."""
        return self.draft.graph

    @property
    def rows(self) -> np.ndarray:
        """Numbers of the nodes to predict: all but values that rows of a table share."""
        return self.graph.is_row.nonzero().flatten().numpy()

    @property
    def prediction(self) -> Prediction | None:
        """The prediction of the model."""
        return None if self.fitted is None else self.fitted.prediction

    @property
    def classes(self) -> Classes:
        """Classes of the model, none without one."""
        return _NO_CLASSES if self.fitted is None else self.fitted.classes

    @cached_property
    def new_classes(self) -> dict[str, int]:
        """Classes that the model does not know, and how many labels they have."""
        counts: dict[str, int] = {}
        for label in self.waiting.values():
            for name in [label] if isinstance(label, str) else label:
                if name not in self.classes.names:
                    counts[name] = counts.get(name, 0) + 1
        return counts

    @cached_property
    def _best(self) -> np.ndarray:
        """Predicted class of each node: one of them is read faster from an array than from a tensor."""
        assert self.fitted is not None
        return self.fitted.prediction.labels.cpu().numpy()

    @property
    def class_names(self) -> tuple[str, ...]:
        """All classes: those of the model, then new ones in the order of their first labels."""
        return (*self.classes.names, *self.new_classes)

    def number(self, node: str) -> int:
        """Return the number of a node by its id."""
        found = self.numbers.get(node)
        if found is None:
            raise UnknownNodeError(f"node {quoted(node)} is not in the graph")
        return found

    def label(self, node: str) -> Label | None:
        """Return the label that was given for a node, None if there is none."""
        if node in self.waiting:
            return self.waiting[node]
        return known_label(self.draft, self.classes, self.numbers[node])

    def record(self, number: int) -> dict[str, Any]:
        """Return the prediction of one node as JSON has it."""
        node = self.ids[number]
        given = self.label(node)
        told = "|".join(given) or "|" if isinstance(given, list) else given
        found: dict[str, Any] = {"id": node, "label": None, "confidence": None, "evidence": False, "given": told}
        if self.fitted is None:
            return found | {"probabilities": {}, "version": self.version}
        prediction, names = self.fitted.prediction, self.classes.names
        multilabel = self.classes.multilabel
        rows = calibrated(prediction.probabilities[number : number + 1], self.fitted.calibration, multilabel)
        row = rows[0].tolist()
        if multilabel:
            chosen = [name for name, p in zip(names, prediction.probabilities[number].tolist(), strict=True) if p > 0.5]
            found["label"] = "|".join(chosen) or "|"
            found["confidence"] = min(max(p, 1 - p) for p in row)
        else:
            best = int(self._best[number])
            found["label"], found["confidence"] = names[best], row[best]
        found["evidence"] = bool(self.evidence[number])
        return found | {"probabilities": dict(zip(names, row, strict=True)), "version": self.version}

    def decision(self, numbers: np.ndarray | slice) -> Decision:
        """Return what the model says of some nodes; there must be a model."""
        assert self.fitted is not None
        prediction, labels, multilabel = self.fitted.prediction, self.draft.labels, self.classes.multilabel
        rows: Any = numbers
        onehot = labels.onehot[rows].cpu()
        given = np.asarray(onehot if multilabel else onehot.argmax(1))
        assert self.graph.node_ids is not None
        decision = Decision.of(
            calibrated(prediction.probabilities[rows], self.fitted.calibration, multilabel).cpu().numpy(),
            prediction.labels[rows].cpu().numpy(),
            self.evidence[rows],
            labels.mask[rows].numpy(),
            given,
            self.graph.node_ids[rows],
            self.classes.names,
        )
        return self._with_waiting(decision) if self.waiting else decision

    def _with_waiting(self, decision: Decision) -> Decision:
        """Return the decision with the labels that wait for a fit as given ones."""
        known, given = decision.known.copy(), decision.given.copy()
        for row, node in enumerate(decision.node_ids.tolist()):
            label = self.waiting.get(node)
            if label is not None:
                known[row], given[row] = True, label if isinstance(label, str) else "|".join(label)
        return replace(decision, known=known, given=given)

    def changed_since(self, before: State) -> np.ndarray:
        """Return the numbers of the nodes whose predicted label was another one, or that were not there."""
        if self.fitted is None or before.fitted is None:
            return np.arange(0 if self.fitted is None else self.graph.num_nodes)
        old, new = before.fitted.prediction.labels, self.fitted.prediction.labels
        if before.classes != self.classes:
            return np.arange(len(new))
        if before.numbers is not self.numbers:
            places = torch.tensor([before.numbers.get(node, -1) for node in self.ids])
            fresh, old = places < 0, old[places.clamp(min=0)]
        else:
            fresh = torch.zeros(len(new), dtype=torch.bool)
        other = (old != new).reshape(len(new), -1).any(1)
        return (other.cpu() | fresh).nonzero().flatten().numpy()

    def given_labels(self) -> dict[str, Label]:
        """Return all labels that are given by now, by id."""
        known = self.draft.labels.mask.nonzero().flatten().tolist()
        nodes: Sequence[str] = [*(self.ids[number] for number in known), *self.waiting]
        return {node: label for node in nodes if (label := self.label(node)) is not None}


def known_label(draft: Draft, classes: Classes, number: int) -> Label | None:
    """Return the label of a node that the model was given, None if there is none."""
    labels = draft.labels
    if not labels.mask.numpy()[number]:  # faster than asking the tensor
        return None
    names = [classes.names[c] for c in labels.onehot[number].nonzero().flatten().tolist()]
    return names if labels.multilabel else names[0]


def _evidence(draft: Draft, fitted: Fitted | None) -> np.ndarray:
    return np.zeros(draft.graph.num_nodes, dtype=bool) if fitted is None else fitted.prediction.evidence.numpy()
