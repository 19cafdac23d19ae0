"""`Split`: three disjoint masks."""

import dataclasses

import numpy as np
import pytest
import torch

from lignn import Split
from lignn.errors import SplitError


def mask(*nodes: int, n: int = 4) -> torch.Tensor:
    return torch.tensor([i in nodes for i in range(n)])


def test_masks_and_sizes():
    split = Split(mask(0), np.array([False, True, False, False]), mask(2, 3).tolist())
    assert split.num_nodes == 4
    assert split.held_out.tolist() == [False, True, True, True]
    assert repr(split) == "Split(train=1, val=1, test=2)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        split.train = mask(1)


@pytest.mark.parametrize("kind", [list, tuple, torch.tensor, np.array, set, iter])
def test_from_indices(kind):
    split = Split.from_indices(4, kind([2, 0]), kind([1]), kind([]))
    assert torch.equal(split.train, mask(0, 2))
    assert torch.equal(split.val, mask(1))
    assert not split.test.any()


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        ((mask(0), mask(1, 0), mask(2)), "1 nodes are both in train and in val, first node 0"),
        ((mask(0), mask(1), mask(3, 1)), "1 nodes are both in val and in test, first node 1"),
        ((mask(0, 2, 3), mask(1), mask(2, 3)), "2 nodes are both in train and in test, first node 2"),
        ((mask(0), mask(1, n=5), mask(2)), r"different lengths: \{'train': 4, 'val': 5, 'test': 4\}"),
        ((torch.tensor([0]), mask(1), mask(2)), r"train: a boolean mask .* got torch.int64 of shape \(1,\); use Split"),
        ((mask(0), mask(1), mask(2)[None]), r"test: a boolean mask .* got torch.bool of shape \(1, 4\)"),
    ],
)
def test_refused(masks, message):
    with pytest.raises(SplitError, match=message):
        Split(*masks)


@pytest.mark.parametrize("node", [-1, 4])
def test_indices_outside_are_refused(node):
    with pytest.raises(SplitError, match=rf"val: node {node} is outside of 0 … 3"):
        Split.from_indices(4, [0], [node], [])


def test_overlapping_indices_are_refused():
    with pytest.raises(SplitError, match="both in train and in test, first node 3"):
        Split.from_indices(4, [3], [0], [1, 3])
