"""The graphs of the studies: those of the catalogue, and some that only studies use."""

from __future__ import annotations

from lignn import datasets
from lignn.graph import Graph
from lignn.studies import payments
from lignn.studies.auto import TABULAR, tabular

OWN = {TABULAR: tabular, payments.NAME: payments.graph}
"""Graphs that are not in the catalogue."""


def load(name: str) -> Graph:
    """Return a graph by its name."""
    return OWN[name]() if name in OWN else datasets.load(name)


def is_here(name: str) -> bool:
    """Return whether one of the own graphs can be made."""
    return name != payments.NAME or payments.find() is not None
