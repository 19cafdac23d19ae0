"""Sparse matrices with fast differentiable products: the normalised adjacency matrix and sparse features."""

from lignn.propagation.adjacency import Adjacency, PerOperator, TypedAdjacency
from lignn.propagation.rows import Rows
from lignn.propagation.sparse import SparseMatrix
from lignn.propagation.stored import StoredRows

__all__ = ["Adjacency", "PerOperator", "Rows", "SparseMatrix", "StoredRows", "TypedAdjacency"]
