"""`Share`: the nodes whose rows a process holds, and random numbers and sums that do not depend on who holds them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from lignn.processes import ALONE, Processes

BLOCK = 2**13
"""Rows of a block: hidden layers of usual width then stay in the cache."""


def entries_kept(size: int, p: float, generator: Generator | None) -> Tensor:
    """Draw which of so many entries dropout keeps, each with probability 1 - p.

    Four entries share a random number of 64 bits, which is three times faster than a number each; p is rounded to a
    multiple of 2^-16. If all but the last call draw a multiple of four, several calls draw what one would.
    """
    words = torch.empty(-(-size // 4), dtype=torch.int64, device="cpu").random_(-(2**63), None, generator=generator)
    return words.view(torch.int16)[:size] >= round(p * 2**16) - 2**15


@dataclass(frozen=True, eq=False)
class Share:
    """The nodes whose rows this process holds.

    Attributes:
        number: number of each row's node in the source; random numbers are drawn in the order of the source, so that
            they depend neither on the partition nor on the number of processes.
        total: number of nodes of all processes.
        processes: all processes.
    """

    number: Tensor
    total: int
    processes: Processes = ALONE

    def __len__(self) -> int:
        return len(self.number)

    def blocks(self) -> Iterator[slice]:
        """Yield the blocks of rows."""
        for first in range(0, len(self), BLOCK):
            yield slice(first, min(first + BLOCK, len(self)))

    def rand(self, generator: Generator | None) -> Tensor:
        """Draw a uniform number for each row."""
        return torch.rand(self.total, generator=generator)[self.number]

    def of_all(self, mask: Tensor) -> Tensor:
        """Return a mask over the nodes of all processes, in the order of the source, from one over the rows."""
        whole = torch.zeros(self.total, dtype=torch.uint8)
        whole[self.number] = mask.to(torch.uint8)
        return self.processes.sum(whole).bool()

    def total_of(self, x: Tensor) -> Tensor:
        """Return the sum of `x` over all processes; gradients flow to the own `x`."""
        return x if self.processes.count == 1 else _Sum.apply(x, self.processes)

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows in the order of the source, and their numbers."""
        sorter = np.argsort(self.number.numpy()).astype(np.int32 if len(self) < 2**31 else np.int64)
        return sorter, self.number.numpy()[sorter]

    def drawn(self, width: int, draw: Callable[[int], Tensor]) -> np.ndarray:
        """Draw for each entry of a matrix whether it is kept, in the order of the source; packed to bits.

        Args:
            width: number of columns.
            draw: draws whether each of so many entries is kept.
        """
        rows, number = self._sorted
        bits = np.empty((len(self), -(-width // 8)), np.uint8)
        for first in range(0, self.total, BLOCK):
            last = min(first + BLOCK, self.total)
            kept = draw((last - first) * width).view(last - first, width).numpy()
            mine = slice(*np.searchsorted(number, [first, last]))
            bits[rows[mine]] = np.packbits(kept[number[mine] - first], axis=1)
        return bits


@dataclass(frozen=True, eq=False)
class Batch(Share):
    """The rows of some parts, as if they were a store of their own: random numbers are drawn for them alone.

    Attributes:
        stretches: positions of the rows of each part in the store, ascending.
    """

    stretches: tuple[slice, ...] = ()

    @classmethod
    def of(cls, whole: Share, stretches: Sequence[slice]) -> Batch:
        """Return the batch of these stretches of the rows of a whole store."""
        numbers = torch.cat([whole.number[stretch] for stretch in stretches])
        return cls(numbers.argsort().argsort(), len(numbers), whole.processes, tuple(stretches))

    @cached_property
    def starts(self) -> list[int]:
        """The first row of each stretch, and the number of rows."""
        return list(accumulate((stretch.stop - stretch.start for stretch in self.stretches), initial=0))

    @cached_property
    def positions(self) -> Tensor:
        """Position of each row in the store."""
        return torch.cat([torch.arange(stretch.start, stretch.stop) for stretch in self.stretches])

    def blocks(self) -> Iterator[slice]:
        """Yield the blocks of rows, none of which is of two parts: each can be read as a stretch of the store."""
        for first, last in pairwise(self.starts):
            for start in range(first, last, BLOCK):
                yield slice(start, min(start + BLOCK, last))

    def in_store(self, block: slice) -> slice:
        """Return the positions of a block."""
        part = bisect_right(self.starts, block.start) - 1
        offset = self.stretches[part].start - self.starts[part]
        return slice(block.start + offset, block.stop + offset)

    def places(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which of some positions are rows of the batch, and the number of the row of each that is."""
        first, last = (np.array([getattr(each, end) for each in self.stretches]) for end in ("start", "stop"))
        part = np.maximum(np.searchsorted(first, nodes, "right") - 1, 0)
        inside = (nodes >= first[part]) & (nodes < last[part])
        return inside, nodes - first[part] + np.array(self.starts)[part]


class _Sum(torch.autograd.Function):
    """A sum over processes. Each process differentiates its own share of it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, processes: Processes) -> Tensor:  # noqa: ARG004
        return processes.sum(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # noqa: ARG004
        return grad, None
