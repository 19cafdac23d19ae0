"""The list of datasets from `catalogue.toml`, with the functions that make and download each.

It imports nothing heavy.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module, resources
from typing import Any

from lignn.errors import DatasetError, did_you_mean

PAPER_LENGTHS = range(10, 101, 10)
"""Lengths of the chains in the paper's Figure 4."""


@dataclass(frozen=True)
class Entry:
    """One dataset: an embedded one, made on the spot, or a stored one, read from a file.

    Functions are given by their path in this package (`module.function`) and imported when they are called. An embedded
    dataset is made by `make(*arguments, **options)`. A stored dataset is downloaded by `download(name, folder)` and
    stored unchanged; `make(graph, **options)` converts it to the paper's convention at every load.
    """

    name: str
    summary: str
    source: str
    make: str
    download: str | None = None
    arguments: tuple[int, ...] = ()

    @property
    def is_stored(self) -> bool:
        """Whether the dataset is read from a file, which may have to be downloaded."""
        return self.download is not None

    def maker(self) -> Callable[..., Any]:
        """Return the function that makes the graph; its keyword-only parameters are the dataset's options."""
        return _function(self.make)

    def downloader(self) -> Callable[..., Any]:
        """Return the function that downloads the graph from its source."""
        if self.download is None:
            raise DatasetError(f"{self.name} is embedded, there is nothing to download")
        return _function(self.download)


def _function(path: str) -> Callable[..., Any]:
    module, function = path.split(".")
    return getattr(import_module(f"lignn.datasets.{module}"), function)


FAMILIES = tomllib.loads((resources.files("lignn.datasets") / "catalogue.toml").read_text(encoding="utf-8"))
"""The content of `catalogue.toml`."""
ENTRIES = tuple(
    Entry(name, summary, family["source"], family["make"], family.get("download"))
    for family in FAMILIES.values()
    for name, summary in family["datasets"].items()
)
CHAINS = next(entry for entry in ENTRIES if entry.name == "chains-<length>")


def names() -> list[str]:
    """Return the names of all datasets; the chains are listed with the paper's lengths, but any length is accepted."""
    chains = [f"chains-{length}" for length in PAPER_LENGTHS]
    return [name for entry in ENTRIES for name in (chains if entry is CHAINS else [entry.name])]


def find(name: str) -> Entry:
    """Return the entry called `name`."""
    if length := re.fullmatch(r"chains-(\d{1,9})", name):
        return replace(CHAINS, name=name, arguments=(int(length[1]),))
    for entry in ENTRIES:
        if entry.name == name and entry is not CHAINS:
            return entry
    if name.startswith("chains"):
        raise DatasetError(f"unknown dataset {name!r}; chains are called {CHAINS.name}, e.g. chains-10")
    raise DatasetError(f"unknown dataset {name!r}; {did_you_mean(name, names())}")
