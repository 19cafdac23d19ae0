"""Which rows each process sends to the others before a product, and the count of the bytes that travel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from lignn.processes import Processes


class Exchange:
    """The rows of other processes that this one needs for its products with one matrix.

    Attributes:
        first: position of this process's first row in the store.
        own: number of rows of this process.
        nodes: positions of the rows of other processes that are needed, ascending.
        bytes: bytes that this process has received so far.
    """

    def __init__(self, needed: list[np.ndarray], first: int, bounds: np.ndarray, processes: Processes) -> None:
        """Tell the other processes what is needed.

        Args:
            needed: positions of the nodes that each part needs.
            first: position of the first row of this process.
            bounds: first position of the rows of each process, and the number of all rows.
            processes: all processes.
        """
        self.first, self.processes = first, processes
        self.own = int(bounds[processes.rank + 1] - bounds[processes.rank])
        outside = [nodes[(nodes < first) | (nodes >= first + self.own)] for nodes in needed]
        self.nodes = np.unique(np.concatenate([np.zeros(0, np.int32), *outside]))
        self.bytes = 0
        if processes.count == 1:
            return
        take = np.diff(np.searchsorted(self.nodes, bounds))
        give = torch.empty(processes.count, dtype=torch.int64)
        ones = [1] * processes.count
        processes.exchange(torch.from_numpy(take), give, (ones, ones))()
        self.counts = give.tolist(), take.tolist()
        wanted = torch.empty(int(give.sum()), dtype=torch.int64)
        processes.exchange(torch.from_numpy(self.nodes.astype(np.int64)), wanted, self.counts[::-1])()
        self.given = wanted - first

    def start(self, buffer: Tensor, transposed: bool = False) -> Callable[[], None]:  # noqa: ARG002
        """Start to fill the last rows of `buffer` from the other processes; return a function that waits for them.

        Args:
            buffer: the own rows, then those of `nodes`.
            transposed: whether the product is one of a gradient.
        """
        if self.processes.count == 1:
            return lambda: None
        remote = buffer[self.own :]
        self.bytes += remote.nbytes
        # The rows to send are kept in `sent` until the end of the exchange.
        sent = buffer.index_select(0, self.given)
        wait = self.processes.exchange(sent, remote, (self.counts[0], self.counts[1]))
        return lambda: (wait(), sent)[0]

    def places(self, nodes: np.ndarray) -> Tensor:
        """Return the row of the buffer in which each of the nodes is."""
        if self.processes.count == 1:
            return torch.from_numpy(nodes)
        mine = (nodes >= self.first) & (nodes < self.first + self.own)
        places = np.where(mine, nodes - self.first, self.own + np.searchsorted(self.nodes, nodes))
        return torch.from_numpy(places.astype(np.int32))
