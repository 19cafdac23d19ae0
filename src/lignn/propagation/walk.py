"""Many steps of label propagation, `Z ↦ A_λ clamp(Z)`, with `A_λ = (1-λ) I + λ S A S` and A a matrix of zeros and ones.

In `W = S Z` a step is `W ↦ (1-λ) W + λ S² (A W)`, which needs no entries of the matrix: each row adds up rows of W. The
state stays in that form for all steps, and its nodes in the order of their degrees. Then the rows of hubs, which are
gathered most, lie side by side, and neighbouring rows have equally many entries, so that the processor predicts where a
row ends. A self-loop is a part of the factor of a node's own row. Matrices of other forms, and other devices, take
steps with ordinary products.
"""

from __future__ import annotations

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
BURST = 1 << 31
"""Additions after which the steps return to Python for a moment, so that Ctrl-C is noticed."""


@cache
def _kernels() -> ModuleType:
    return import_module("lignn.propagation.walk_kernels")  # imports Numba, so not before the first step


@dataclass(frozen=True, eq=False)
class Walk:
    """The matrix `keep I + S A S` of an undirected graph without weights, with nodes in the order of their degrees.

    Attributes:
        indptr: row pointers of A without self-loops.
        indices: column of each of its entries.
        scale: the diagonal of S.
        factors: the diagonal of `S²`.
        keep: factor of the own row of each node, which contains its self-loop.
        order: the node of each row.
        place: the row of each node.
        inverse: the entry of S⁻¹ of each node.
    """

    indptr: Tensor
    indices: Tensor
    scale: Tensor
    factors: Tensor
    keep: Tensor
    order: Tensor
    place: Tensor
    inverse: Tensor

    @classmethod
    def of(cls, pattern: sp.csr_array, scale: np.ndarray, keep: float) -> Walk:
        """Return the walk of the matrix whose entries have the positions of `pattern`."""
        order = np.argsort(-np.diff(pattern.indptr), kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order), dtype=order.dtype)
        rows = pattern[order]
        columns, row = place[rows.indices], np.repeat(np.arange(len(order)), np.diff(rows.indptr))
        loops = np.bincount(row[columns == row], minlength=len(order))
        columns = columns[columns != row]
        # Half as much to read. Kernels take int16 for uint16, because PyTorch cannot unpickle tensors of uint16.
        half = len(order) <= 1 << 16
        columns = columns.astype(np.uint16).view(np.int16) if half else columns.astype(rows.indices.dtype)
        indptr = rows.indptr - np.concatenate([[0], loops.cumsum()])
        arrays = indptr.astype(pattern.indices.dtype), columns, order, place
        starts, indices, nodes, places = (torch.from_numpy(array) for array in arrays)
        ordered, inverse = torch.from_numpy(scale[order]), torch.from_numpy(1 / scale)
        factors = ordered.square()
        return cls(starts, indices, ordered, factors, keep + factors * torch.from_numpy(loops), nodes, places, inverse)

    def last_states(self, start: Tensor | None, nodes: Tensor, rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Return the states before and after the last of `count` steps; see `propagate`."""
        before, after = self._steps(start, nodes, rows, count, alone=1)
        return self._values(before, rows.shape[1]), self._values(after, rows.shape[1])

    def last_state(self, start: Tensor | None, nodes: Tensor, rows: Tensor, count: int) -> Tensor:
        """Return the state after `count` steps."""
        return self._values(self._steps(start, nodes, rows, count, alone=0)[1], rows.shape[1])

    def _steps(
        self, start: Tensor | None, nodes: Tensor, rows: Tensor, count: int, alone: int
    ) -> tuple[Tensor, Tensor]:
        """Take `count` steps, the last ones `alone`; return W before them, if there is one, and after them."""
        n, known = len(self.order), self.place[nodes]
        clamped = _padded(rows * self.scale[known, None])
        resets = np.full(n, -1, np.int32)
        resets[known.numpy()] = np.arange(len(known), dtype=np.int32)
        state, other = (rows.new_empty((n, clamped.shape[1])) for _ in range(2))
        if start is None:
            state.zero_()
        else:
            _take_rows(start, self.order, self.scale, state)
        burst = max(BURST // max(len(self.indices) * state.shape[1], 1), 1)
        done = 0
        while done < count:
            before = state[known]  # rows that are not clamped yet, of the last state at the end
            state.index_copy_(0, known, clamped)
            taken = min(burst, max(count - alone - done, 1))
            self._walk(state, other, resets, clamped, taken)
            if taken % 2:
                state, other = other, state
            done += taken
        other[known] = before
        return other, state

    def _values(self, state: Tensor, columns: int) -> Tensor:
        """Return `S⁻¹ W` with the nodes in their own order."""
        values = state.new_empty((len(state), columns))
        _take_rows(state, self.place, self.inverse, values)
        return values

    def _walk(self, state: Tensor, other: Tensor, resets: np.ndarray, clamped: Tensor, count: int) -> None:
        """Take `count` steps between two buffers; the rows of known nodes are reset before every step but the first."""
        kernels = _kernels()
        team = threads.threads_for(len(self.indices) * state.shape[1])
        shared = np.zeros(kernels.TEAM, np.int64)
        task = np.zeros(1, kernels.TASK)
        numbers = {
            "indptr": self.indptr.data_ptr(), "indices": self.indices.data_ptr(), "factors": self.factors.data_ptr(),
            "keep": self.keep.data_ptr(), "resets": resets.ctypes.data, "known": clamped.data_ptr(),
            "rows": len(self.order), "entries": len(self.indices),
            "shares": team * SHARES_PER_THREAD if team > 1 else 1,
            "state": state.data_ptr(), "out": other.data_ptr(), "count": count, "own": task.ctypes.data,
            "step": kernels.step(state.shape[1], self.indptr.dtype, self.indices.dtype, state.dtype),
            "team": shared.ctypes.data, "yield_thread": threads.sched_yield(),
        }  # fmt: skip
        for name, number in numbers.items():
            task[name] = number
        threads.run_in_threads(kernels.walk(), task.ctypes.data, team)


def _take_rows(source: Tensor, nodes: Tensor, factors: Tensor, out: Tensor) -> None:
    """Set row i of `out` to `factors[i] · source[nodes[i]]`, in one pass and one thread.

    On a busy machine, PyTorch's threads wait for each other longer than this takes.
    """
    arrays = source.detach().contiguous(), nodes, factors, out
    _kernels().take_rows(*(array.numpy() for array in arrays))


def _padded(rows: Tensor) -> Tensor:
    """Return rows of few columns and zeros, so that a row is one vector, and never in two cache lines."""
    columns = rows.shape[1]
    width = 1 << (columns - 1).bit_length() if columns < 8 else columns
    padded = rows.new_zeros((len(rows), width))
    padded[:, :columns] = rows
    return padded


def propagate(lazy: Adjacency, start: Tensor | None, nodes: Tensor, rows: Tensor, count: int) -> Tensor:
    """Return the state after `count` steps `Z ↦ A_λ clamp(Z)`.

    Args:
        lazy: A_λ.
        start: the state before the first step, n × c; None for zeros.
        nodes: the known nodes, on the CPU.
        rows: the rows that known nodes are reset to before every step.
        count: number of steps.
    """
    walk = _walk_of(lazy, rows, count)
    return (
        last_states(lazy, start, nodes, rows, count)[1] if walk is None else walk.last_state(start, nodes, rows, count)
    )


def last_states(
    lazy: Adjacency, start: Tensor | None, nodes: Tensor, rows: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """Return the states before and after the last of `count` steps, see `propagate`."""
    walk = _walk_of(lazy, rows, count)
    if walk is not None:
        return walk.last_states(start, nodes, rows, count)
    last = state = rows.new_zeros((lazy.shape[0], rows.shape[1])) if start is None else start
    nodes = nodes.to(state.device)
    for _ in range(count):
        last, state = state, lazy @ state.index_copy(0, nodes, rows)
    return last, state


def _walk_of(lazy: Adjacency, rows: Tensor, count: int) -> Walk | None:
    """Return the compiled steps of A_λ; None if it has none, or not for such rows."""
    return lazy.walk if rows.is_cpu and rows.shape[1] <= WIDEST and count else None
