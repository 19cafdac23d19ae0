"""The task `classify`: a `NodeClassifier`, as a user would fit it, is scored on labels that it was not given."""

from __future__ import annotations

import time
import warnings
from typing import Any

import torch

from lignn.classifier import NodeClassifier
from lignn.classifier.calibration import calibration_error
from lignn.classifier.race.candidates import candidates
from lignn.declarations import DEFAULT_METRIC
from lignn.errors import ConvergenceWarning, ImbalanceWarning
from lignn.graph import Graph
from lignn.methods.starts import measure, share_by_start
from lignn.studies import graphs
from lignn.studies.case import StudyCase, without_name
from lignn.studies.tables import scores

AUTO = "auto"
_STARTS = 5


def classify(case: StudyCase) -> dict[str, Any]:
    """Fit, and return how good, sure and well-posed the predictions of the test nodes are."""
    graph = graphs.load(case.graph, case.seed)
    number, split = graphs.choose_split(graph, case.split)
    hidden = graph.labelled & ~(split.train | split.val)
    assert graph.y is not None
    given = graph.replace(y=torch.where(hidden, -1, graph.y), splits=())
    if case.split["kind"] != "by_time":
        given = given.replace(time=None)  # else the latest labels would be held back
    classifier = classifier_of(case, given)
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, ImbalanceWarning):  # the record says the same in numbers
            warnings.simplefilter("ignore", kind)
        start = time.process_time()
        classifier.fit(given, split if split.val.any() else None)
        seconds = time.process_time() - start
    probabilities, truth = torch.from_numpy(classifier.predict_proba())[split.test], graph.y[split.test]
    decided = probabilities.argmax(1)
    solution = classifier._fitted.prediction.solution
    counts = {"there": truth, "predicted": decided, "right": truth[decided == truth]}
    return {
        "split": number,
        "scores": scores(probabilities, truth, case.training.get("metric", DEFAULT_METRIC)),
        "nodes": len(truth),
        "classes": {what: each.bincount(minlength=graph.num_classes).tolist() for what, each in counts.items()},
        "chosen": getattr(classifier.method_, "chosen", None),
        "members": _members(classifier),
        "solve": None if solution is None else solution.record(),
        "metric": classifier.metric_,
        "calibration_error": calibration_error(probabilities, truth),
        "temperature": classifier.temperature_,
        "epochs": classifier.n_iter_,
        "best_epoch": classifier.history_.best + 1,
        "fit_seconds": seconds,
        **(_equilibrium(classifier) if case.method["name"] == "lignn" else {}),
    }


def classifier_of(case: StudyCase, graph: Graph) -> NodeClassifier:
    """Return the classifier of a case: of a method, `auto`, or one candidate of `auto`."""
    name, options = case.method["name"], without_name(case.method)
    common = dict(case.training) | {"precision": case.precision, "seed": case.seed}
    if name != AUTO:
        return NodeClassifier(**common, method=name, method_options=options)
    if "candidate" not in options:
        return NodeClassifier(**common, method=name, **options)
    found = {one.name: one for one in candidates(graph, options["quality"])}[options["candidate"]]
    return NodeClassifier(**found.with_common(common))


def _members(classifier: NodeClassifier) -> dict[str, float]:
    """Return the weights of the models that `auto` found best by name; empty for any other classifier."""
    board = classifier.leaderboard_
    return {} if board is None else {row.name: row.weight for row in board.members}


def _equilibrium(classifier: NodeClassifier) -> dict[str, Any]:
    """Return the bound of the map, K̂, and the share of nodes whose prediction differs by the start of the solve."""
    prediction = classifier._fitted.prediction
    starts = measure(prediction)
    return {
        "contraction": classifier._fitted.spec.values.get("contraction"),
        "lipschitz": prediction.bound.lipschitz,
        "K": None if starts is None else starts.contraction,
        "differing": None if starts is None else share_by_start(prediction, _STARTS),
    }
