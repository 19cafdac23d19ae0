"""The numbers that the paper reports, from one file."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def _all() -> dict[str, Any]:
    return tomllib.loads((resources.files("lignn.studies") / "published.toml").read_text(encoding="utf-8"))


def citation() -> str:
    """Which paper it is."""
    return _all()["citation"]["text"]


def accuracy(study: str, row: str, dataset: str) -> tuple[float, float] | None:
    """Mean and standard deviation of the test F1-micro in percent; None where the paper has none."""
    values = _all()["accuracy"].get(study, {}).get(row, {}).get(dataset)
    return None if values is None else (values[0], values[1])


def reading_of(row: str) -> str:
    """The published row that `row` reads in another way, such as `L-GCN` for `L-GCN (α input)`; else itself."""
    return next((row.removesuffix(end) for end in _all()["readings"]["ends"] if row.endswith(end)), row)


def chosen(study: str, row: str, dataset: str) -> dict[str, Any] | None:
    """The hyper-parameters that the paper's search chose; None where it gives none."""
    return _all()["search"].get(study, {}).get(row, {}).get(dataset)


def claim(study: str) -> str | None:
    """What the text says of a figure."""
    return _all()["claims"].get(study)


def chance(dataset: str) -> float:
    """F1-micro of a random guess in percent; 0 where it is not known."""
    return _all()["chance"].get(dataset, 0.0)
