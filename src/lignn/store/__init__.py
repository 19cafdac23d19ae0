"""Graphs on the disk, in parts: larger than memory, or shared by several processes."""

from lignn.store.graph import Part, StoredGraph, in_source_order, read_reference, rows_of, whole_of
from lignn.store.layout import describe, is_store, verify

__all__ = [
    "Part",
    "StoredGraph",
    "describe",
    "in_source_order",
    "is_store",
    "read_reference",
    "rows_of",
    "verify",
    "whole_of",
]
