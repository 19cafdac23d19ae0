"""Graphs, splits, their files, converters and measures."""

from lignn.graph import measures, splits
from lignn.graph.graph import Graph
from lignn.graph.split import Split

__all__ = ["Graph", "Split", "measures", "splits"]
