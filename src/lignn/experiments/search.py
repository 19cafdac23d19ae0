"""Grid search: which settings the validation score chooses, beside the paper's choice (Tables 3 and 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from lignn.experiments import published
from lignn.experiments.page import Block, Table
from lignn.experiments.records import Record
from lignn.experiments.summary import mean_and_deviation

Settings = dict[str, Any]


def candidates(records: Sequence[Record]) -> list[tuple[Settings, list[Record]]]:
    """Runs of one row on one dataset by the settings in which they differ, best mean validation score first."""
    flat = [_flat(record["config"]) for record in records]
    varied = [name for name in flat[0] if len({json.dumps(settings.get(name)) for settings in flat}) > 1]
    groups: dict[str, tuple[Settings, list[Record]]] = {}
    for settings, record in zip(flat, records, strict=True):
        own = {name.rpartition(".")[2]: settings[name] for name in varied}
        groups.setdefault(json.dumps(own), (own, []))[1].append(record)
    return sorted(groups.values(), key=lambda group: -mean(record["scores"]["val"] for record in group[1]))


def _flat(config: Mapping[str, Any]) -> Settings:
    """Settings of network and method by dotted name; seed and split are not searched."""
    return {f"{part}.{key}": value for part in ("backbone", "method") for key, value in config[part].items()}


def view(study: str, records: Sequence[Record], rows: Sequence[str], datasets: Sequence[str]) -> list[Block]:
    """One line a row and dataset: what was chosen, its scores, and those of the paper's choice."""
    lines = []
    for dataset in datasets:
        for row in rows:
            own = [record for record in records if (record["row"], record["dataset"]) == (row, dataset)]
            if own:
                lines.append((f"{dataset}, {row}", *_line(candidates(own), published.chosen(study, row, dataset))))
    header = ("", "settings tried", "chosen here", "val", "test", "paper's choice", "val", "test")
    caption = "Settings with the best mean validation F1-micro (%); mean ± standard deviation (runs)"
    return [Table(caption, header, lines)] if lines else ["not run"]


def _line(groups: list[tuple[Settings, list[Record]]], paper: Settings | None) -> tuple[str, ...]:
    chosen, runs = groups[0]
    theirs = next((records for settings, records in groups if paper and settings == paper), None)
    choice = "" if paper is None else _named(paper)
    return (str(len(groups)), _named(chosen), *_scores(runs), choice, *(_scores(theirs) if theirs else ("", "")))


def _named(settings: Settings) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "all the same"


def _scores(records: Sequence[Record]) -> tuple[str, str]:
    val, test = (mean_and_deviation([100 * record["scores"][part] for record in records]) for part in ("val", "test"))
    return val, f"{test} ({len(records)})"
