"""Graphs on the disk, in parts: larger than memory, or shared by several processes."""

from lignn.store.graph import StoredGraph, in_source_order, read_reference, rows_of, share_of, whole_of
from lignn.store.layout import describe, is_store, verify
from lignn.store.parts import Part
from lignn.store.share import Batch, Share

__all__ = [
    "Batch",
    "Part",
    "Share",
    "StoredGraph",
    "describe",
    "in_source_order",
    "is_store",
    "read_reference",
    "rows_of",
    "share_of",
    "verify",
    "whole_of",
]
