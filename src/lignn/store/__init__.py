"""Graphs on the disk, in parts: larger than memory, or shared by several processes."""

from lignn.store.graph import Part, StoredGraph, read_reference
from lignn.store.layout import describe, is_store, verify

__all__ = ["Part", "StoredGraph", "describe", "is_store", "read_reference", "verify"]
