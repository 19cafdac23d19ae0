"""One run: from a case to its result in plain values."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import partial
from typing import Any

import torch
from torch import Generator

from lignn import datasets, methods
from lignn.errors import ConfigError, LignnError, did_you_mean
from lignn.evaluation import peak
from lignn.graph import Graph, measures
from lignn.labels import KnownLabels
from lignn.methods import Method
from lignn.studies import graphs
from lignn.studies.case import StudyCase, without_name
from lignn.studies.classify import classify
from lignn.studies.labels_added import labels_added
from lignn.studies.normalisation import use_statistics
from lignn.studies.tables import nearest_rows
from lignn.training import Assembly, History, Metric, Scorer, Training, assemble, scorer


def assembled(case: StudyCase) -> tuple[Assembly, Scorer, int]:
    """Return the training run that `case` describes, its scorer, and the number of its split."""
    graph = datasets.load(case.dataset, **case.dataset_options)
    number, split = graphs.choose_split(graph, case.split)
    labels = KnownLabels.of(graph, split.train & graph.labelled, getattr(torch, case.precision))
    build = partial(build_method, case, graph)
    unseen = split.held_out if case.inductive else None
    metric = Metric.of(case.metric, labels)
    return assemble(build, graph, labels, seed=case.seed, unseen=unseen), scorer(graph, split, metric), number


def build_method(case: StudyCase, graph: Graph, generator: Generator) -> Method:
    """Return the method of `case` over its backbone, for graphs like `graph`, with fresh weights from `generator`."""
    network = without_name(case.backbone)
    statistics = network.pop("statistics", None)
    options = without_name(case.method) | {"backbone_options": network}
    options |= {"edge_types": graph.edge_types, "generator": generator}
    if "name" in case.backbone:
        options["backbone"] = case.backbone["name"]
    method = methods.build(case.method["name"], graph.num_features, graph.num_classes, **options)
    if statistics is not None:
        use_statistics(method, statistics)
    return method


def settings_of(training: Mapping[str, Any]) -> Training:
    """Return training settings from plain values."""
    known = Training.__dataclass_fields__
    for key in training:
        if key not in known:
            raise ConfigError(f"training: there is no setting {key!r}; {did_you_mean(key, known)}")
    return Training(**training)


def perform(case: StudyCase) -> dict[str, Any]:
    """Return the result of a run, with its wall and processor time, peak memory and number of threads."""
    peak.reset()
    wall, processor = time.perf_counter(), time.process_time()
    tasks = {"train": _train, "classify": classify, "labels_added": labels_added, "nearest_rows": nearest_rows}
    tasks |= {"label_transitions": _transitions}
    result = tasks[case.task](case)
    seconds = {"seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - processor}
    return result | seconds | {"peak_memory_mib": peak.resident("VmHWM"), "threads": torch.get_num_threads()}


def _transitions(case: StudyCase) -> dict[str, Any]:
    graph = datasets.load(case.dataset, **case.dataset_options)
    return {"transitions": measures.label_transitions(graph).tolist(), "class_names": graph.class_names}


def _train(case: StudyCase) -> dict[str, Any]:
    assembly, score, split = assembled(case)
    training = settings_of(case.training)
    history = assembly.train(score, training)
    if history.best < 0:
        raise LignnError(f"training ended in its first epoch: {history.end}")
    result = {
        "split": split,
        "scores": history.final,
        "scores_at_best_epoch": {name: history.best_record[name] for name in history.final},
        "best_epoch": history.best,
        "epochs": len(history.epochs),
        "end": str(history.end),
        "solves": solver_statistics(history),
        "settings": _settings(assembly.method, training),
    }
    return result | ({"curve": [record["test"] for record in history.epochs]} if case.curve else {})


def _settings(method: Method, training: Training) -> dict[str, Any]:
    """Return what the options of a run came to, such as a tolerance that depends on the number of classes."""
    parts = ("masking", "solver", "inference", "gradient")
    built = {part: _plain(getattr(method, part)) for part in parts if hasattr(method, part)}
    return {"training": asdict(training), "method": built}


def _plain(value: Any) -> Any:
    if not is_dataclass(value):
        return value
    return {"class": type(value).__name__} | {one.name: _plain(getattr(value, one.name)) for one in fields(value)}


def solver_statistics(history: History) -> dict[str, Any]:
    """Return how the training, adjoint and evaluation solves ended, their steps, and K̂ at the best epoch."""
    found = {}
    for solve in ("forward", "backward", "evaluation"):
        accounts = [record[solve] for record in history.epochs if record.get(solve)]
        if not accounts:
            continue
        steps = [account["steps"] for account in accounts]
        at_best = history.best_record.get(solve) or {}
        found[solve] = {
            "status": dict(Counter(account["status"] for account in accounts)),
            "mean_steps": sum(steps) / len(steps),
            "max_steps": max(steps),
            "steps_at_best": at_best.get("steps"),
            "contraction_at_best": _finite(at_best.get("contraction")),
        }
    return found


def _finite(value: float | None) -> float | None:
    """Return None for infinity, which JSON does not have."""
    return value if value is not None and math.isfinite(value) else None
