"""The task `labels_added`: labels that come after training are solved again, trained on, or trained from scratch."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch

from lignn.classifier import NodeClassifier, Update
from lignn.errors import ConvergenceWarning
from lignn.graph import Graph, Split
from lignn.studies import graphs
from lignn.studies.case import StudyCase

SOLVED, TRAINED_ON, RETRAINED = "re-solved", "trained on", "retrained"
WAYS = (SOLVED, TRAINED_ON, RETRAINED)


def labels_added(case: StudyCase) -> dict[str, Any]:
    """Return test score, seconds and steps for each number of added labels and each way to use them.

    `split.added` has the numbers of labels a class, `split.epochs` the epochs of a training that goes on.
    """
    graph = graphs.load(case.graph, case.seed)
    number, split = graphs.choose_split(graph, case.split)
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(case.seed))
    pool = order[~(split.train | split.held_out)[order]]
    classifier = _new(case)
    seconds = _seconds(lambda: classifier.fit(graph, split))
    seconds |= {f"certificate_{name}": value for name, value in _seconds(classifier.diagnose).items()}
    points = [{"added": 0, "way": RETRAINED, "test": classifier.score(split.test), **seconds}]
    for amount in case.split["added"]:
        labels = first_of_each_class(graph, pool, amount)
        used = _points(classifier, split, labels, case)
        points += [{"added": amount, "labels": len(labels)} | point for point in used]
    return {"split": number, "points": points}


def _new(case: StudyCase) -> NodeClassifier:
    return NodeClassifier(**case.training, method=case.method["name"], seed=case.seed)


def _points(classifier: NodeClassifier, split: Split, labels: dict[int, int], case: StudyCase) -> list[dict[str, Any]]:
    """Use the labels in the three ways; the labels of the classifier are the same afterwards."""
    graph = classifier.graph_
    trained_on, retrained = deepcopy(classifier), _new(case)
    more = split.train.clone()
    more[list(labels)] = True
    updates: list[Update] = []
    ways: dict[str, tuple[NodeClassifier, Callable[[], Any]]] = {
        SOLVED: (classifier, lambda: updates.append(classifier.update_labels(labels))),
        TRAINED_ON: (trained_on, lambda: trained_on.update_labels(labels, epochs=case.split["epochs"])),
        RETRAINED: (retrained, lambda: retrained.fit(graph, Split(more, split.val, split.test))),
    }
    points = []
    for way, (used, act) in ways.items():
        seconds = _seconds(act)
        points.append({"way": way, "test": used.score(split.test), **seconds})
    solution = updates[0].solution
    points[0] |= {"warm": updates[0].warm, "steps": None if solution is None else solution.steps}
    classifier.update_labels(dict.fromkeys(labels))
    return points


def first_of_each_class(graph: Graph, pool: torch.Tensor, amount: int) -> dict[int, int]:
    """Return the labels of the first nodes of each class in `pool`, of all if a class has fewer."""
    assert graph.y is not None
    chosen = torch.cat([pool[graph.y[pool] == c][:amount] for c in range(graph.num_classes)])
    return {int(node): int(graph.y[node]) for node in chosen}


def _seconds(act: Callable[[], Any]) -> dict[str, float]:
    """Call `act` and return its wall time and processor time; other processes affect only the first."""
    wall, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # the points have the number of steps
        act()
    return {"seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - processor}
