"""The list of datasets, with the functions that make and download each. It imports nothing heavy."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
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


CHAINS = Entry("chains-<length>", "chains that differ in their first node only", "generated", "embedded.chains")


_FAMILIES = {
    "PyG Planetoid": ("stored.citations", "stored.planetoid"),
    "PyG WikipediaNetwork": ("stored.both_directions", "stored.wikipedia"),
    "PyG Amazon": ("stored.word_counts", "stored.gnn_benchmark"),
    "PyG Coauthor": ("stored.word_counts", "stored.gnn_benchmark"),
    "PyG Flickr": ("stored.undirected", "stored.flickr"),
    "OGB ogbn-arxiv": ("stored.both_directions", "stored.ogb"),
    "PyG HeterophilousGraphDataset": ("stored.undirected", "stored.heterophilous"),
}
"""Functions that make and download the datasets of each source."""


def _stored(name: str, summary: str, source: str) -> Entry:
    return Entry(name, summary, source, *_FAMILIES[source])


ENTRIES = (
    Entry("weekday", "days 1980-2019 by the digits of the date, 4 nearest days", "generated", "embedded.weekday"),
    CHAINS,
    Entry("digits", "8×8 images of handwritten digits, nearest neighbours", "scikit-learn", "embedded.digits"),
    Entry("karate", "friendships in Zachary's karate club", "PyG KarateClub", "embedded.karate"),
    _stored("cora", "machine-learning papers that cite each other", "PyG Planetoid"),
    _stored("citeseer", "computer-science papers that cite each other", "PyG Planetoid"),
    _stored("pubmed", "diabetes papers that cite each other", "PyG Planetoid"),
    _stored("chameleon", "Wikipedia pages on chameleons, by traffic", "PyG WikipediaNetwork"),
    _stored("squirrel", "Wikipedia pages on squirrels, by traffic", "PyG WikipediaNetwork"),
    _stored("amazon_photo", "photo products bought together", "PyG Amazon"),
    _stored("amazon_computers", "computer products bought together", "PyG Amazon"),
    _stored("coauthor_cs", "computer scientists who wrote together", "PyG Coauthor"),
    _stored("coauthor_physics", "physicists who wrote together", "PyG Coauthor"),
    _stored("flickr", "photos that share a place, gallery or friend", "PyG Flickr"),
    _stored("ogbn_arxiv", "arXiv computer-science papers that cite each other", "OGB ogbn-arxiv"),
    _stored("roman_empire", "words of the Wikipedia article, by syntactic role", "PyG HeterophilousGraphDataset"),
    _stored("amazon_ratings", "products bought together, by rating", "PyG HeterophilousGraphDataset"),
    _stored("minesweeper", "cells of a grid, mine or not", "PyG HeterophilousGraphDataset"),
    _stored("tolokers", "crowd workers with shared tasks, banned or not", "PyG HeterophilousGraphDataset"),
    _stored("questions", "users who answered each other, active or not", "PyG HeterophilousGraphDataset"),
)


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
