"""Equality of graphs."""

import numpy as np
import scipy.sparse as sp
import torch

from lignn import Graph


def assert_same(a: Graph, b: Graph) -> None:
    """Assert that all parts are equal, bit for bit and in type; the name is not compared."""
    assert a.num_nodes == b.num_nodes
    assert torch.equal(a.edge_index, b.edge_index)
    for ours, theirs in ((a.y, b.y), (a.edge_weight, b.edge_weight), (a.edge_type, b.edge_type)):
        _assert_same_tensors(ours, theirs)
    assert type(a.x) is type(b.x)
    if isinstance(a.x, sp.csr_array):
        assert a.x.shape == b.x.shape
        assert a.x.dtype == b.x.dtype
        assert all(np.array_equal(getattr(a.x, part), getattr(b.x, part)) for part in ("data", "indices", "indptr"))
    else:
        _assert_same_tensors(a.x, b.x)
    assert (a.node_ids is None) == (b.node_ids is None)
    assert a.node_ids is None or a.node_ids.tolist() == b.node_ids.tolist()
    assert a.class_names == b.class_names
    assert a.feature_names == b.feature_names
    assert a.edge_types == b.edge_types
    assert (a.table is None) == (b.table is None)
    assert a.table is None or a.table.equals(b.table)
    for ours, theirs in ((a.time, b.time), (a.group, b.group)):
        assert (ours is None) == (theirs is None)
        assert ours is None or np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f")
    assert len(a.splits) == len(b.splits)
    for one, other in zip(a.splits, b.splits, strict=True):
        assert all(torch.equal(getattr(one, part), getattr(other, part)) for part in ("train", "val", "test"))


def _assert_same_tensors(a: torch.Tensor | None, b: torch.Tensor | None) -> None:
    assert (a is None) == (b is None)
    if a is not None:
        assert a.dtype == b.dtype
        assert torch.equal(a, b)
