"""One run: from a config to its result in plain values."""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from lignn import datasets, methods
from lignn.classifier import NodeClassifier
from lignn.datasets import places
from lignn.declarations import DEFAULT_METRIC
from lignn.errors import (
    ConfigError,
    ConvergenceWarning,
    DatasetError,
    ImbalanceWarning,
    LignnError,
    did_you_mean,
)
from lignn.evaluation import peak
from lignn.graph import Graph, Split, measures, splits
from lignn.labels import KnownLabels
from lignn.methods import Method
from lignn.studies import graphs, payments
from lignn.studies.config import RunConfig
from lignn.studies.normalisation import use_statistics
from lignn.training import Assembly, History, Metric, Scorer, Training, assemble, scorer


def assembled(config: RunConfig) -> tuple[Assembly, Scorer, int]:
    """Return the training run that `config` describes, its scorer, and the number of its split."""
    graph = datasets.load(config.dataset, **config.dataset_options)
    number, split = choose_split(graph, config.split)
    labels = KnownLabels.of(graph, split.train & graph.labelled, getattr(torch, config.precision))
    build = partial(build_method, config, graph)
    unseen = split.held_out if config.inductive else None
    metric = Metric.of(config.metric, labels)
    return assemble(build, graph, labels, seed=config.seed, unseen=unseen), scorer(graph, split, metric), number


def build_method(config: RunConfig, graph: Graph, generator: Generator) -> Method:
    """Return the method of `config` over its backbone, for graphs like `graph`, with fresh weights from `generator`."""
    network = without_name(config.backbone)
    statistics = network.pop("statistics", None)
    options = without_name(config.method) | {"backbone_options": network}
    options |= {"edge_types": graph.edge_types, "generator": generator}
    if "name" in config.backbone:
        options["backbone"] = config.backbone["name"]
    method = methods.build(config.method["name"], graph.num_features, graph.num_classes, **options)
    if statistics is not None:
        use_statistics(method, statistics)
    return method


def without_name(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a backbone or method."""
    return {key: value for key, value in named.items() if key != "name"}


def settings_of(training: Mapping[str, Any]) -> Training:
    """Return training settings from plain values."""
    known = Training.__dataclass_fields__
    for key in training:
        if key not in known:
            raise ConfigError(f"training: there is no setting {key!r}; {did_you_mean(key, known)}")
    return Training(**training)


def choose_split(graph: Graph, split: Mapping[str, Any]) -> tuple[int, Split]:
    """Return number and split that `RunConfig.split` describes; public splits are reused if there are too few."""
    number, kind = split["number"], split["kind"]
    if kind == "per_class":
        sizes = split["labels"], split.get("val", 0), split.get("test", 0)
        drawn = splits.per_class(graph, *sizes, split["seed"], number + 1)[number]
        others = graph.labelled & ~(drawn.train | drawn.val)
        return number, drawn if "test" in split else Split(drawn.train, drawn.val, others)
    if kind == "random":
        return number, payments.published_split(graph, split["states"][number])
    if kind == "by_time":
        kept = 0.8**number  # all but the test parts of the splits before
        return number, splits.by_time(graph, (0.8 * kept, 0.0, 0.2 * kept))
    if kind == "paper":
        return number, splits.per_class(graph, seed=splits.PAPER_SEED, runs=number + 1)[number]
    if kind == "stratified":
        return number, splits.stratified(graph, split["fractions"], seed=split.get("seed", number))
    if kind == "published":
        return 0, _published_split(graph)
    if not graph.splits:
        raise ConfigError(f"{graph.name} has no public split; choose another kind")
    number %= len(graph.splits)
    return number, graph.splits[number]


def _published_split(graph: Graph) -> Split:
    """Return the split behind "Classic GNNs are strong baselines", from a file beside the datasets."""
    file = places.find("splits_60_20_20")
    with np.load(file) if file else nullcontext({}) as arrays:
        if f"{graph.name}/train" not in arrays:
            where = " or ".join(map(str, places.folders()))
            raise DatasetError(f"{graph.name}: there is no published split in a splits_60_20_20.npz in {where}")
        parts = [torch.from_numpy(arrays[f"{graph.name}/{part}"]) for part in ("train", "val", "test")]
    return Split(*(torch.zeros(graph.num_nodes, dtype=torch.bool).index_fill(0, part, True) for part in parts))


def perform(config: RunConfig) -> dict[str, Any]:
    """Return the result of a run, with its wall and processor time, peak memory and number of threads."""
    peak.reset()
    wall, processor = time.perf_counter(), time.process_time()
    tasks = {"train": _train, "classify": _classify, "label_transitions": _transitions}
    result = tasks[config.task](config)
    seconds = {"seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - processor}
    return result | seconds | {"peak_memory_mib": peak.resident("VmHWM"), "threads": torch.get_num_threads()}


def _transitions(config: RunConfig) -> dict[str, Any]:
    graph = datasets.load(config.dataset, **config.dataset_options)
    return {"transitions": measures.label_transitions(graph).tolist(), "class_names": graph.class_names}


def _train(config: RunConfig) -> dict[str, Any]:
    assembly, score, split = assembled(config)
    training = settings_of(config.training)
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
    return result | ({"curve": [record["test"] for record in history.epochs]} if config.curve else {})


def _classify(config: RunConfig) -> dict[str, Any]:
    """Fit a classifier without the labels that are to be found, and score it on these by several metrics."""
    graph = graphs.load(config.graph)
    number, split = choose_split(graph, config.split)
    hidden = graph.labelled & ~(split.train | split.val)
    assert graph.y is not None
    given = graph.replace(y=torch.where(hidden, -1, graph.y), splits=())
    if config.split["kind"] != "by_time":
        given = given.replace(time=None)  # else the latest labels would be held back
    parameters = dict(config.training) | {"method": config.method["name"], "precision": config.precision}
    classifier = NodeClassifier(**parameters, method_options=without_name(config.method), seed=config.seed)
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, ImbalanceWarning):  # the record says the same in numbers
            warnings.simplefilter("ignore", kind)
        classifier.fit(given, split if split.val.any() else None)
    probabilities, truth = torch.from_numpy(classifier.predict_proba())[split.test], graph.y[split.test]
    scores = {
        name: Metric(name, positive=_rarer(truth))(probabilities, probabilities.argmax(1), truth)
        for name in ("f1_micro", "roc_auc", "average_precision")
    }
    solution = classifier._fitted.prediction.solution
    return {
        "split": number,
        "scores": {"test": scores[config.training.get("metric", DEFAULT_METRIC)], **scores},
        "nodes": len(truth),
        "chosen": getattr(classifier.method_, "chosen", None),
        "solve": None if solution is None else solution.record(),
    }


def _rarer(truth: Tensor) -> int | None:
    """Return the rarer of two classes, None for more."""
    counts = truth.bincount().tolist()
    return int(counts[0] >= counts[1]) if len(counts) == 2 else None


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
