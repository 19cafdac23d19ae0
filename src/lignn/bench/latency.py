"""One new label: `update_labels` against a cold solve and against training again."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import numpy as np

from lignn.bench.sides import Task, load_task
from lignn.bench.timing import Record, Side, interleaved, record
from lignn.classifier import NodeClassifier
from lignn.labels import KnownLabels
from lignn.methods import Prediction, Problem

UPDATES = 200
FEW_EPOCHS = 20
"""Epochs on the two large graphs, so that the time of training again is a lower bound there."""
ONE_HOP = "cora, one hop"
"""A network of one layer, for which Theorem 1 can prove that updates may start from the last equilibrium."""


def run(quick: bool) -> Iterator[Record]:
    """Add the labels of held-out nodes one by one; both sides keep what depends on the features alone."""
    epochs: dict[str | int, int | None]  # None: until training stops early
    epochs = {"cora": None, "amazon_photo": None, "coauthor_physics": FEW_EPOCHS, 10**6: FEW_EPOCHS}
    for source, most in ({10_000: 3} if quick else epochs).items():
        problem = load_task(source)
        classifier = NodeClassifier(max_epochs=most)
        start = perf_counter()
        classifier.fit(problem.graph, problem.split)
        training = perf_counter() - start
        warm, cold = _records(problem, classifier, 10 if quick else UPDATES)
        again = warm | {"side": "training again", "median": training, "spread": 0.0, "p99": training}
        again["ratio"] = training / warm["median"]
        yield from (warm, cold, again)
    yield from _one_hop(quick)


def _one_hop(quick: bool) -> Iterator[Record]:
    """Time updates of a map that is proved to contract."""
    problem = load_task(10_000 if quick else "cora")
    classifier = NodeClassifier(backbone="sgc", backbone_options={"hops": 1}, max_epochs=3 if quick else 60)
    classifier.fit(problem.graph, problem.split)
    for each in _records(problem, classifier, 10 if quick else UPDATES):
        yield each | {"case": ONE_HOP}


def _records(problem: Task, classifier: NodeClassifier, updates: int) -> list[Record]:
    classifier.diagnose()  # decides, once for these weights, whether warm starts are safe
    sides = {"update_labels": _warm(problem, classifier, updates), "cold solve": _cold(problem, classifier, updates)}
    timings = interleaved(sides, updates)
    reference = timings["update_labels"]
    config = {"preset": "practical", "updates": updates, "epochs": classifier.n_iter_}
    found = []
    for name, timing in timings.items():
        others = {"ratio": timing.median / reference.median, "p99": float(np.quantile(timing.seconds, 0.99))}
        found.append(record(problem.graph.name, name, config, **timing.figures(reference) | others))
    return found


def _arrivals(problem: Task, count: int) -> list[int]:
    """Return the nodes whose labels arrive: `count`, and one more for the call that is not timed."""
    nodes = problem.split.test.nonzero().flatten().numpy()
    return np.random.default_rng(0).permutation(nodes)[: count + 1].tolist()


def _warm(problem: Task, classifier: NodeClassifier, count: int) -> Side:
    labels = problem.graph.y
    assert labels is not None
    arriving = iter([{node: int(labels[node])} for node in _arrivals(problem, count)])
    return lambda: classifier.update_labels(next(arriving))


def _cold(problem: Task, classifier: NodeClassifier, count: int) -> Side:
    """Return a side that adds the same labels and starts each solve from zero."""
    graph = problem.graph
    bound = classifier.method_.on(Problem.of(graph, problem.split.train))
    bound.solve()  # looks at the features, once
    arriving, known = iter(_arrivals(problem, count)), problem.split.train.clone()

    def solve() -> Prediction:
        known[next(arriving)] = True
        return bound.with_labels(KnownLabels.of(graph, known.clone())).solve()

    return solve
