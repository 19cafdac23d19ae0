"""A classifier in use: labels come and go, nodes join, models are saved and loaded, other graphs are predicted.

Hypothesis draws sequences of calls. After each of them a plain oracle is asked: the same weights, bound afresh to the
graph and the labels that the test has kept account of by itself, and solved from zero. `LIGNN_FUZZ=3600` draws that
many sequences instead of the sixty of a test run; ten of them take about a second.
"""

from __future__ import annotations

import copy
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import lignn
from lignn import Graph, NodeClassifier, Split
from lignn.labels import KnownLabels
from lignn.methods import Problem

pytestmark = pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")

CLASSES, FEATURES, MOST_NODES = 3, 2, 14
NARROW = {"hidden": 4, "max_epochs": 2, "precision": "float64"}
KINDS = {
    "lpa": {"method": "lpa"},
    "lignn": NARROW,
    "one hop": NARROW | {"hidden": None, "backbone_options": {"num_layers": 1}, "tol": 1e-11, "max_steps": 500},
    "paper": NARROW | {"preset": "paper"},
    "reslpa": NARROW | {"method": "reslpa"},
    "label_reuse": NARROW | {"method": "label_reuse"},
    "correct_and_smooth": NARROW | {"method": "correct_and_smooth"},
    "ignn": NARROW | {"method": "ignn"},
}
"""Linear, equilibrium, proved to contract (the only one that starts from the last state), fixed passes, no labels."""

seeds = st.integers(0, 2**16)
classes = st.integers(0, CLASSES - 1)


def random_graph(nodes: int, seed: int, directed: bool) -> Graph:
    """Few edges, so that some nodes are out of reach of any label; every class has two labels at least."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(nodes, (2, nodes), generator=generator)
    edges = edges[:, edges[0] != edges[1]]
    if not edges.shape[1]:
        edges = torch.tensor([[0], [1]])
    y = torch.randint(-1, CLASSES, (nodes,), generator=generator)
    y[: 2 * CLASSES] = torch.arange(2 * CLASSES) % CLASSES
    x = torch.randn(nodes, FEATURES, generator=generator, dtype=torch.float64)
    names = [f"n{i}" for i in range(nodes)]
    graph = Graph(edges, x=x, y=y, node_ids=names, class_names=tuple("abc"), num_nodes=nodes, name="drawn")
    return graph if directed else graph.to_undirected()


class InUse(RuleBasedStateMachine):
    """`known` is what the test holds to be the labels by now, by the number of the node."""

    @initialize(
        kind=st.sampled_from(sorted(KINDS)),
        nodes=st.integers(2 * CLASSES, 10),
        seed=seeds,
        directed=st.booleans(),
        own=st.booleans(),
        refit=st.booleans(),
    )
    def fit(self, kind: str, nodes: int, seed: int, directed: bool, own: bool, refit: bool) -> None:
        self.graph = random_graph(nodes, seed, directed)
        labelled = self.graph.labelled
        split = None
        if not own:
            val, test = (torch.arange(nodes) == CLASSES), (torch.arange(nodes) == CLASSES + 1)
            split = Split(labelled & ~val & ~test, val, test)
        self.classifier = NodeClassifier(**KINDS[kind], refit=refit).fit(self.graph, split)
        trains = self.classifier.history_.best >= 0
        inputs = labelled if split is None else split.train | (split.val & bool(refit and trains))
        assert self.graph.y is not None
        self.known = {int(i): int(self.graph.y[i]) for i in inputs.nonzero()}

    def _node(self, seed: int) -> int:
        return seed % self.classifier.graph_.num_nodes

    @rule(changes=st.dictionaries(seeds, st.none() | classes, max_size=3))
    def update(self, changes: dict[int, int | None]) -> None:
        labels = {self._node(seed): label for seed, label in changes.items()}
        self.classifier.update_labels(labels)
        self._keep(labels)

    @rule()
    def withdraw_all(self) -> None:
        labels = dict.fromkeys(self.known)
        self.classifier.update_labels({f"n{node}": None for node in labels})
        self._keep(labels)

    @precondition(lambda self: self.known)
    @rule(seed=seeds, label=classes)
    def train_on(self, seed: int, label: int) -> None:
        labels = {self._node(seed): label}
        self.classifier.update_labels(labels, epochs=1)
        self._keep(labels)

    def _keep(self, labels: dict[int, int | None]) -> None:
        for node, label in labels.items():
            self.known.pop(node, None)
            if label is not None:
                self.known[node] = label

    @precondition(lambda self: self.classifier.graph_.num_nodes < MOST_NODES)
    @rule(ends=st.lists(seeds, max_size=3), value=st.floats(-3, 3))
    def add_node(self, ends: list[int], value: float) -> None:
        n = self.classifier.graph_.num_nodes
        sources = sorted({self._node(seed) for seed in ends})
        found = self.classifier.add_nodes([[value] * FEATURES], [sources, [n] * len(sources)], [f"n{n}"])
        assert found.node_ids.tolist() == [f"n{n}"]
        assert not found.known.any()
        assert self.classifier.graph_.num_nodes == n + 1

    @rule()
    def save_and_load(self) -> None:
        before = self.classifier.decision()
        with tempfile.TemporaryDirectory() as folder:
            self.classifier.save(Path(folder) / "m")
            self.classifier = lignn.load(Path(folder) / "m")
        after = self.classifier.decision()
        for part in ("probabilities", "labels", "known", "given", "evidence"):
            assert np.array_equal(getattr(before, part), getattr(after, part)), part

    @rule(nodes=st.integers(2 * CLASSES, 9), seed=seeds, held_back=st.booleans())
    def predict_elsewhere(self, nodes: int, seed: int, held_back: bool) -> None:
        before = self.classifier.predict_proba()
        other = random_graph(nodes, seed + 2**16 + 1, directed=False)  # no seed of a fitted graph
        test = torch.arange(nodes) < 2
        if held_back:
            empty = torch.zeros_like(test)
            other = other.replace(splits=(Split(~test, empty, test),))
        inputs = other.labelled & ~(test & held_back)
        found = self.classifier.decision(other)
        assert np.array_equal(found.known, inputs.numpy())
        self._agrees(found.probabilities, other, KnownLabels.of(other, inputs, torch.float64))
        assert np.array_equal(self.classifier.predict_proba(), before)
        twin = copy.deepcopy(self.classifier.graph_).replace(name="twin")
        assert np.array_equal(self.classifier.predict_proba(twin), before)

    @rule(changes=st.dictionaries(seeds, st.none() | classes, min_size=2, max_size=4), order=st.randoms())
    def order_does_not_matter(self, changes: dict[int, int | None], order: object) -> None:
        labels = {self._node(seed): label for seed, label in changes.items()}
        at_once, one_by_one = copy.deepcopy(self.classifier), copy.deepcopy(self.classifier)
        at_once.update_labels(labels)
        items = list(labels.items())
        order.shuffle(items)  # type: ignore[attr-defined]
        for node, label in items:
            one_by_one.update_labels({node: label})
        np.testing.assert_allclose(one_by_one.predict_proba(), at_once.predict_proba(), rtol=0, atol=1e-8)

    @invariant()
    def known_labels_are_those_given(self) -> None:
        decision = self.classifier.decision()
        assert {int(i): "abc".index(decision.given[i]) for i in np.flatnonzero(decision.known)} == self.known
        assert np.isfinite(decision.probabilities).all()
        np.testing.assert_allclose(decision.probabilities.sum(1), 1, rtol=1e-5)

    @invariant()
    def predictions_are_those_of_a_fresh_solve(self) -> None:
        graph = self.classifier.graph_
        mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
        onehot = torch.zeros(graph.num_nodes, CLASSES, dtype=torch.float64)
        for node, label in self.known.items():
            mask[node], onehot[node, label] = True, 1
        self._agrees(self.classifier.predict_proba(), graph, KnownLabels(mask, onehot))

    def _agrees(self, found: np.ndarray, graph: Graph, labels: KnownLabels) -> None:
        dtype = self.classifier._fitted.spec.dtype
        labels = KnownLabels(labels.mask, labels.onehot.to(dtype))
        fresh = copy.deepcopy(self.classifier.method_).on(Problem.with_labels(graph, labels)).solve()
        expected, calibration = fresh.probabilities, self.classifier.calibration_
        if calibration is not None:
            expected = (expected.clamp(min=1e-12).log() / calibration.temperature).softmax(1)
            expected = (1 - calibration.doubt) * expected + calibration.doubt / CLASSES
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 if dtype == torch.float64 else 1e-6)


InUse.TestCase.settings = settings(
    max_examples=int(os.environ.get("LIGNN_FUZZ", "60")),
    stateful_step_count=8,
    deadline=None,
    derandomize="LIGNN_FUZZ" not in os.environ,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
TestInUse = InUse.TestCase
