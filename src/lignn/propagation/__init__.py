"""Sparse operators on node signals: normalised adjacency and sparse features, with fast differentiable products."""

from lignn.propagation.adjacency import Adjacency, PerOperator
from lignn.propagation.sparse import SparseMatrix

__all__ = ["Adjacency", "PerOperator", "SparseMatrix"]
