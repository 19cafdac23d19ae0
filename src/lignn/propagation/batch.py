"""Ã of a batch of parts: rows of nodes outside of the batch are taken from the last product that they had a part in.

A product with Ã needs the halo of the batch. One of several processes receives these rows; here they are read from a
`History`, into which each product writes the rows of its batch (historical embeddings: Fey et al., "GNNAutoScale", ICML
2021). Gradients of the halo are dropped: the transposed product has zeros there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from lignn.propagation.stored import StoredRows
from lignn.propagation.streamed import StreamedAdjacency
from lignn.store import Batch, Part


class History:
    """What the products of one epoch have multiplied, n×w for each product of each map.

    Every visit of a batch makes the same products in the same order, so that a product is known by its map and its
    number. The first visit has to be of all parts.

    Attributes:
        nodes: number of nodes of the store.
    """

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self._products: dict[tuple[str, int], Tensor] = {}
        self._place = ("features", 0)

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """Count the products of the map of this name from its first one, until the context ends."""
        outer, self._place = self._place, (name, 0)
        yield
        self._place = outer

    def visit(self) -> None:
        """Start another visit, whose first products are of features."""
        self._place = ("features", 0)

    def next(self, rows: Tensor) -> Tensor:
        """Return what the next product has multiplied so far; `rows` are those that it multiplies now."""
        name, number = place = self._place
        self._place = name, number + 1
        if place not in self._products:
            assert len(rows) == self.nodes, "the first visit is of all parts"
            self._products[place] = torch.empty_like(rows)
        return self._products[place]


class Recall:
    """The rows outside of a batch that its products with one matrix need; it has the interface of `Exchange`.

    Attributes:
        batch: the rows of the batch.
        history: what products have multiplied.
        nodes: positions of the rows outside, ascending.
    """

    def __init__(self, needed: list[np.ndarray], batch: Batch, history: History) -> None:
        self.batch, self.history = batch, history
        outside = [nodes[~batch.places(nodes)[0]] for nodes in needed]
        self.nodes = np.unique(np.concatenate([np.zeros(0, np.int32), *outside]))
        self._index = torch.from_numpy(self.nodes)

    def start(self, buffer: Tensor, transposed: bool = False) -> Callable[[], None]:
        """Fill the last rows of `buffer`, and remember the first ones; return a function that has nothing to wait for.

        Args:
            buffer: the rows of the batch, then those of `nodes`.
            transposed: whether the product is one of a gradient, which has zeros outside.
        """
        own, outside = buffer[: len(self.batch)], buffer[len(self.batch) :]
        if transposed:
            outside.zero_()
        else:
            past = self.history.next(own)
            for stretch, (first, last) in zip(self.batch.stretches, pairwise(self.batch.starts), strict=True):
                past[stretch] = own[first:last]
            torch.index_select(past, 0, self._index, out=outside)
        return lambda: None

    def places(self, nodes: np.ndarray) -> Tensor:
        """Return the row of the buffer in which each of the nodes is."""
        inside, own = self.batch.places(nodes)
        outside = len(self.batch) + np.searchsorted(self.nodes, nodes)
        return torch.from_numpy(np.where(inside, own, outside).astype(np.int32))


class BatchAdjacency(StreamedAdjacency):
    """The rows of Ã of a batch.

    Attributes:
        whole: all rows.
    """

    def __init__(self, whole: StreamedAdjacency, batch: Batch, history: History) -> None:
        vars(self).update(vars(whole))
        rows = batch.positions
        self.whole, self.share, self.history = whole, batch, history
        self.left, self.right, self.loops = (
            None if each is None else each[rows] for each in (whole.left, whole.right, whole.loops)
        )
        self.exchanges, self._parts = {}, {}

    def parts(self, direction: str) -> list[tuple[Part, Tensor]]:
        """Return the parts of the batch, each with the rows of a product's buffer that its halo is in."""
        if direction not in self._parts:
            batch = self.share
            assert isinstance(batch, Batch)
            places = map(slice, batch.starts, batch.starts[1:])
            rows = {(each.start, each.stop): place for each, place in zip(batch.stretches, places, strict=True)}
            every = [(part, rows.get((part.rows.start, part.rows.stop))) for part, _ in self.whole.parts(direction)]
            found = [replace(part, rows=place) for part, place in every if place is not None]
            recall = Recall([part.nodes for part in found], batch, self.history)
            self.exchanges[direction] = recall  # type: ignore[assignment]
            self._parts[direction] = [(part, recall.places(part.nodes)) for part in found]
        return self._parts[direction]


class BatchRows(StoredRows):
    """Features of a batch, read as those of the whole store are.

    Attributes:
        whole: features of all rows.
    """

    def __init__(self, whole: StoredRows, batch: Batch) -> None:
        def read(rows: slice) -> object:
            return whole.block(batch.in_store(rows), {}, {})

        super().__init__(
            batch, read, whole.shape[1], whole.dtype, whole.keep, whole.folder, whole.starts, whole.entries
        )
        self.whole, self.batch = whole, batch

    def propagated(self, operator: BatchAdjacency, product: Callable[[Tensor], Tensor]) -> BatchRows:  # noqa: ARG002
        """Return the rows of the whole product, which is exact and written to a file once."""
        whole = operator.whole @ self.whole
        assert isinstance(whole, StoredRows)
        return BatchRows(whole, self.batch)
