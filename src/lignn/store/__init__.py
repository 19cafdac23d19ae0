"""Graphs on the disk, in parts: larger than memory, or shared by several processes."""

from lignn.store.graph import Part, StoredGraph
from lignn.store.layout import is_store, verify

__all__ = ["Part", "StoredGraph", "is_store", "verify"]
