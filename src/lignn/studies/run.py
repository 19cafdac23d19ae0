"""One run: from a config to its result, as plain values."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Generator

from lignn import datasets, methods
from lignn.errors import ConfigError, LignnError, did_you_mean
from lignn.graph import Graph, Split, measures, splits
from lignn.methods import Method, Problem
from lignn.studies.config import RunConfig
from lignn.studies.resolved import resolved
from lignn.training import History, Scorer, Settings, scorer, train


@dataclass(frozen=True, eq=False)
class Parts:
    """What `training.train` takes, and the number of the split."""

    method: Method
    training: Problem
    inference: Problem
    scorer: Scorer
    generator: Generator
    settings: Settings
    split: int


def assemble(config: RunConfig) -> Parts:
    """The method, problems and settings that `config` describes."""
    dtype = getattr(torch, config.precision)
    graph = datasets.load(config.dataset, **config.dataset_options)
    number, split = choose_split(graph, config.split)
    generator = torch.Generator().manual_seed(config.seed)
    known = split.train & graph.labelled
    inference = Problem.of(graph, known, dtype)
    training = Problem.of(graph.without_edges_at(split.held_out), known, dtype) if config.inductive else inference
    method = build_method(config, graph.num_features, graph.num_classes, generator).to(dtype)
    settings = settings_of(config.training)
    return Parts(method, training, inference, scorer(graph, split), generator, settings, number)


def build_method(config: RunConfig, num_features: int, num_classes: int, generator: Generator) -> Method:
    """The method of `config` over its backbone, with fresh weights from `generator`."""
    options = {key: value for key, value in config.method.items() if key != "name"}
    network = {key: value for key, value in config.backbone.items() if key != "name"}
    backbone = {"backbone": config.backbone["name"]} if "name" in config.backbone else {}
    return methods.build(
        config.method["name"],
        num_features,
        num_classes,
        backbone_options=network,
        generator=generator,
        **backbone,
        **options,
    )


def settings_of(training: Mapping[str, Any]) -> Settings:
    """Training settings from plain values."""
    known = Settings.__dataclass_fields__
    for key in training:
        if key not in known:
            raise ConfigError(f"training: there is no setting {key!r}; {did_you_mean(key, known)}")
    return Settings(**training)


def choose_split(graph: Graph, split: Mapping[str, Any]) -> tuple[int, Split]:
    """Number and split that `RunConfig.split` describes; public ones start over when there are fewer than runs."""
    number = split["number"]
    if split["kind"] == "paper":
        return number, splits.per_class(graph, seed=splits.PAPER_SEED, runs=number + 1)[number]
    if split["kind"] == "stratified":
        return number, splits.stratified(graph, split["fractions"], seed=number)
    if not graph.splits:
        raise ConfigError(f"{graph.name} has no public split; choose another kind")
    number %= len(graph.splits)
    return number, graph.splits[number]


def perform(config: RunConfig) -> dict[str, Any]:
    """The result of a run, with its wall and processor time, peak memory and number of threads."""
    _reset_peak_memory()
    wall, processor = time.perf_counter(), time.process_time()
    result = _transitions(config) if config.task == "label_transitions" else _train(config)
    seconds = {"seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - processor}
    return result | seconds | {"peak_memory_mib": _peak_memory(), "threads": torch.get_num_threads()}


def _transitions(config: RunConfig) -> dict[str, Any]:
    graph = datasets.load(config.dataset, **config.dataset_options)
    return {"transitions": measures.label_transitions(graph).tolist(), "class_names": graph.class_names}


def _train(config: RunConfig) -> dict[str, Any]:
    parts = assemble(config)
    settings = resolved(config, parts.method, parts.settings)  # before training, which changes the method
    history = train(parts.method, parts.training, parts.inference, parts.scorer, parts.generator, parts.settings)
    if history.best < 0:
        raise LignnError(f"training ended in its first epoch: {history.end}")
    names = tuple(history.final)
    result = {
        "split": parts.split,
        "scores": history.final,
        "scores_at_best_epoch": {name: history.best_record[name] for name in names},
        "best_epoch": history.best,
        "epochs": len(history.epochs),
        "end": str(history.end),
        "solves": solver_statistics(history),
        "settings": settings,
    }
    return result | ({"curve": [record["test"] for record in history.epochs]} if config.curve else {})


def solver_statistics(history: History) -> dict[str, Any]:
    """Of the training, adjoint and evaluation solves: how they ended, their steps, and K̂ at the best epoch."""
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
    """JSON has no infinity."""
    return value if value is not None and math.isfinite(value) else None


def _reset_peak_memory() -> None:
    with suppress(OSError):  # only Linux can; elsewhere the peak is not recorded
        Path("/proc/self/clear_refs").write_text("5")


def _peak_memory() -> float | None:
    """Largest resident size of this process in MiB since the reset; None where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
