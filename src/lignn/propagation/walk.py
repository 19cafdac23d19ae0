"""Many steps of label propagation, `Z ↦ A_λ clamp(Z)`, with `A_λ = (1-λ) I + λ S A S` and A a matrix of zeros and ones.

In `W = S Z` a step is `W ↦ (1-λ) W + λ S² (A W)`, which needs no entries of the matrix: each row adds up rows of W. The
state stays in that form for all steps, and its nodes in the order of their degrees. Then the rows of hubs, which are
gathered most, lie side by side, and neighbouring rows have equally many entries, so that the processor predicts where a
row ends. Matrices of other forms, and other devices, take steps with ordinary products.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lignn.propagation import threads

if TYPE_CHECKING:
    from lignn.propagation.adjacency import Adjacency

WIDEST = 128  # columns; the kernel keeps a row in registers
SHARES_PER_THREAD = 4


@cache
def _kernels() -> ModuleType:
    return import_module("lignn.propagation.walk_kernels")  # imports Numba, so not before the first step


@dataclass(frozen=True, eq=False)
class Walk:
    """The matrix `keep I + S A S` of an undirected graph without weights, with nodes in the order of their degrees.

    Attributes:
        indptr: row pointers of A.
        indices: column of each entry of A.
        scale: the diagonal of S.
        factors: the diagonal of `S²`.
        keep: one number.
        order: the node of each row.
    """

    indptr: Tensor
    indices: Tensor
    scale: Tensor
    factors: Tensor
    keep: Tensor
    order: Tensor

    @classmethod
    def of(cls, pattern: sp.csr_array, scale: np.ndarray, keep: float) -> Walk:
        """Return the walk of the matrix whose entries have the positions of `pattern`."""
        order = np.argsort(-np.diff(pattern.indptr), kind="stable").astype(pattern.indices.dtype)
        place = np.empty_like(order)
        place[order] = np.arange(len(order), dtype=order.dtype)
        rows = pattern[order]
        indptr, indices = rows.indptr.astype(order.dtype), place[rows.indices]
        ordered = torch.from_numpy(scale[order])
        sizes = torch.from_numpy(indptr), torch.from_numpy(indices)
        return cls(*sizes, ordered, ordered.square(), ordered.new_tensor([keep]), torch.from_numpy(order))

    def steps(self, start: Tensor, nodes: Tensor, rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Return the states before and after the last of `count` steps; see `propagate`."""
        place = torch.empty_like(self.order)
        place[self.order] = torch.arange(len(self.order), dtype=place.dtype)
        known = place[nodes].long()
        clamped = rows * self.scale[known, None]
        state = (start[self.order] * self.scale[:, None]).contiguous()
        other = torch.empty_like(state)
        function = _kernels().kernel(state.shape[1], self.indices.dtype, state.dtype)
        pack_task = _kernels().pack_task
        team = threads.threads_for(len(self.indices) * state.shape[1])
        shares = team * SHARES_PER_THREAD if team > 1 else 1
        arrays = self.indptr, self.indices, self.factors, self.keep
        fixed = (*(array.data_ptr() for array in arrays), len(self.order), len(self.indices), shares)
        for step in range(count):
            if step == count - 1:
                before_last = state[known]
            state.index_copy_(0, known, clamped)
            task = ctypes.create_string_buffer(pack_task(0, *fixed, state.data_ptr(), other.data_ptr()))
            threads.run_in_threads(function, ctypes.addressof(task), team)
            state, other = other, state
        other[known] = before_last
        return tuple((values / self.scale[:, None])[place.long()] for values in (other, state))  # type: ignore[return-value]


def propagate(lazy: Adjacency, start: Tensor, nodes: Tensor, rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the states before and after the last of `count` steps `Z ↦ A_λ clamp(Z)`.

    Args:
        lazy: A_λ.
        start: the state before the first step, n × c.
        nodes: the known nodes, on the CPU.
        rows: the rows that known nodes are reset to before every step.
        count: number of steps, at least one.
    """
    walk = lazy.walk
    if walk is not None and start.is_cpu and start.shape[1] <= WIDEST and count:
        return walk.steps(start, nodes, rows, count)
    last = state = start
    nodes = nodes.to(start.device)
    for _ in range(count):
        last, state = state, lazy @ state.index_copy(0, nodes, rows)
    return last, state
