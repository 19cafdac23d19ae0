"""`Split`: a division of nodes into training, validation and test sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from lignn.errors import SplitError

PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Split:
    """Three pairwise disjoint sets of nodes, each a boolean mask of length n.

    The labels of `train` are known to the method, those of `val` choose the epoch, and those of `test` only give the
    final score.
    """

    train: Tensor
    val: Tensor
    test: Tensor

    def __post_init__(self) -> None:
        for part in PARTS:
            mask = torch.as_tensor(getattr(self, part))
            if mask.dtype != torch.bool or mask.ndim != 1:
                raise SplitError(
                    f"{part}: a boolean mask over the nodes is needed, got {mask.dtype} of shape {tuple(mask.shape)}; "
                    "use Split.from_indices for node indices"
                )
            object.__setattr__(self, part, mask)
        lengths = {part: len(getattr(self, part)) for part in PARTS}
        if len(set(lengths.values())) > 1:
            raise SplitError(f"the masks have different lengths: {lengths}")
        for a, b in combinations(PARTS, 2):
            shared = (getattr(self, a) & getattr(self, b)).nonzero().flatten()
            if len(shared):
                raise SplitError(f"{len(shared)} nodes are both in {a} and in {b}, first node {shared[0].item()}")

    @classmethod
    def from_indices(cls, num_nodes: int, train: Iterable[int], val: Iterable[int], test: Iterable[int]) -> Split:
        """Return the split with the given node indices."""
        masks = []
        for part, nodes in zip(PARTS, (train, val, test), strict=True):
            index = torch.as_tensor(nodes if isinstance(nodes, Tensor) else list(nodes), dtype=torch.int64)
            outside = index[(index < 0) | (index >= num_nodes)]
            if len(outside):
                raise SplitError(f"{part}: node {outside[0].item()} is outside of 0 … {num_nodes - 1}")
            mask = torch.zeros(num_nodes, dtype=torch.bool)
            mask[index] = True
            masks.append(mask)
        return cls(*masks)

    @property
    def num_nodes(self) -> int:
        """Number of nodes, the length of the masks."""
        return len(self.train)

    @property
    def held_out(self) -> Tensor:
        """Mask of the validation and test nodes, which an inductive method does not see in training."""
        return self.val | self.test

    def __repr__(self) -> str:
        sizes = ", ".join(f"{part}={int(getattr(self, part).sum())}" for part in PARTS)
        return f"Split({sizes})"
