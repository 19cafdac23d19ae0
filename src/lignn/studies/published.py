"""The numbers that the paper reports, from `published.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def _all() -> dict[str, Any]:
    return tomllib.loads((resources.files("lignn.studies") / "published.toml").read_text(encoding="utf-8"))


def citation() -> str:
    """Return authors and title of the paper."""
    return _all()["citation"]["text"]


def accuracy(study: str, row: str, dataset: str) -> tuple[float, float] | None:
    """Return mean and standard deviation of the test F1-micro in percent; None if the paper does not report it."""
    values = _all()["accuracy"].get(study, {}).get(row, {}).get(dataset)
    return None if values is None else (values[0], values[1])


def reading_of(row: str) -> str:
    """Return the published row of which `row` is another reading: `L-GCN` for `L-GCN (α input)`; else `row`."""
    return next((row.removesuffix(end) for end in _all()["readings"]["ends"] if row.endswith(end)), row)


def chosen(study: str, row: str, dataset: str) -> dict[str, Any] | None:
    """Return the hyper-parameters that the paper's search chose; None if the paper does not report them."""
    return _all()["search"].get(study, {}).get(row, {}).get(dataset)


def claim(study: str) -> str | None:
    """Return what the text of the paper says about a figure; None if nothing is quoted here."""
    return _all()["claims"].get(study)


def chance(dataset: str) -> float:
    """Return the F1-micro of a random guess in percent; 0 if it is not known."""
    return _all()["chance"].get(dataset, 0.0)
