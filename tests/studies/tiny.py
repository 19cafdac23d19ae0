"""A study that takes a second, and records with known numbers."""

from __future__ import annotations

from typing import Any

from lignn.studies import study

TEXT = """
title = "Tiny"
report = "accuracy"
runs = 2
datasets = ["chains-10"]

[base]
dataset_options = { num_classes = 2, chains_per_class = 3, num_features = 4 }
split = { kind = "public" }
backbone = { name = "gcn", hidden = 4 }
training = { max_epochs = 2 }

[[case]]
row = "GCN"
method = { name = "backbone" }

[[case]]
row = "LI-GCN (β {method.mask_rate})"
against = "GCN"
method = { name = "lignn", max_steps = 5 }
vary = { "method.mask_rate" = [0.5] }
"""

STUDY = study.parse("tiny", TEXT)


def record(row: str, seed: int, test: float, **changes: Any) -> dict[str, Any]:
    """A record as the runner writes them, with the scores val = test = `test`."""
    versions = {"lignn": "0.1.0", "python": "3.11"}
    return {
        "id": f"{changes.get('dataset', 'chameleon')}/{row}/{seed}/{changes.get('config')}",
        "study": "table2",
        "row": row,
        "against": None if row == "GCN" else "GCN",
        "dataset": "chameleon",
        "method": "lignn",
        "backbone": "gcn",
        "split": seed,
        "seed": seed,
        "status": "ok",
        "scores": {"val": test, "test": test},
        "best_epoch": 2,
        "epochs": 4,
        "end": "all epochs done",
        "solves": {},
        "seconds": 2.0,
        "processor_seconds": 1.5,
        "peak_memory_mib": 100.0,
        "threads": 1,
        "config": {"backbone": {"name": "gcn"}, "method": {"name": "lignn"}},
        "versions": versions,
        "commit": {"hash": "0123456789abcdef", "dirty": True},
        "machine": {"system": "Linux", "processor": "x86_64", "cpus": 2},
        **changes,
    }


def planned(name: str, row: str, seed: int, test: float, dataset: str = "chameleon", **changes: Any) -> dict[str, Any]:
    """A record of a run that the shipped study plans."""
    runs = study.load(name).plan(seed + 1)
    run = next(run for run in runs if run.cell == (row, dataset) and run.seed == seed)
    settings = {"id": run.id, "against": run.against, "config": run.plain()}
    return record(row, seed, test, dataset=dataset, study=name, **settings | changes)
