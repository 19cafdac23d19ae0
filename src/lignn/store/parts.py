"""The parts of a matrix of a store: written from edges that come sorted, and read memory-mapped and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lignn.errors import InputError
from lignn.store.layout import Writer


@dataclass(frozen=True, eq=False)
class Csr:
    """A matrix of a part: row pointers, columns, and weights (None: all are 1)."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of one part in one direction.

    Attributes:
        rows: its rows, counted from the first row that this process holds.
        local: columns are the part's own rows.
        halo: columns are numbers in `nodes`.
        nodes: positions of nodes outside of the part, in the whole store.
    """

    rows: slice
    local: Csr
    halo: Csr
    nodes: np.ndarray


def parts(
    where: str, arrays: dict[str, np.ndarray], told: Sequence[dict[str, int]], bounds: np.ndarray, held: range
) -> list[Part]:
    """Return some parts of a matrix.

    Args:
        where: what errors call the store.
        arrays: the arrays of the matrix, see `layout`.
        told: number of entries of `local` and `halo`, and of nodes outside, of each part.
        bounds: first position of each part, and the number of nodes.
        held: numbers of the parts.
    """
    starts = {kind: np.concatenate([[0], np.cumsum([part[kind] for part in told])]) for kind in told[0]}
    return [_part(f"{where}: part {number}", number, arrays, starts, bounds, held.start) for number in held]


def _part(
    where: str,
    number: int,
    arrays: dict[str, np.ndarray],
    starts: dict[str, np.ndarray],
    bounds: np.ndarray,
    from_: int,
) -> Part:
    first, last = (int(bound) for bound in bounds[number : number + 2])
    blocks = []
    for block, columns in (("local", last - first), ("halo", int(np.diff(starts["nodes"])[number]))):
        entries = slice(*starts[block][number : number + 2].tolist())
        indptr = arrays[f"{block}_indptr"][first + number : last + number + 1]
        indices = arrays[f"{block}_indices"][entries]
        values = arrays[f"{block}_values"][entries] if f"{block}_values" in arrays else None
        _check(where, indptr, indices, columns)
        blocks.append(Csr(indptr, indices, values))
    nodes = arrays["halo_nodes"][slice(*starts["nodes"][number : number + 2].tolist())]
    if len(nodes) and not (nodes.min() >= 0 and nodes.max() < bounds[-1]):
        raise InputError(f"{where} has unknown nodes; build the store again")
    offset = int(bounds[from_])
    return Part(slice(first - offset, last - offset), blocks[0], blocks[1], nodes)


def _check(where: str, indptr: np.ndarray, indices: np.ndarray, columns: int) -> None:
    """Raise unless the arrays form a CSR matrix: compiled code trusts them."""
    rises = indptr[0] == 0 and indptr[-1] == len(indices) and not (indptr[1:] < indptr[:-1]).any()
    if not rises or (len(indices) and not (indices.min() >= 0 and indices.max() < columns)):
        raise InputError(f"{where} is damaged: its indices do not fit; copy or build the store again")


def whole_rows(part: Part, total: int) -> sp.csr_array:
    """Return the rows of a part of a whole store as a matrix over all nodes."""
    first, rows = part.rows.start, part.rows.stop - part.rows.start
    blocks = []
    for block, column in ((part.local, part.local.indices.astype(np.int64) + first), (part.halo, None)):
        columns = part.nodes[part.halo.indices] if column is None else column
        values = np.ones(len(columns)) if block.values is None else block.values
        blocks.append(sp.csr_array((values, columns, block.indptr), shape=(rows, total)))
    return blocks[0] + blocks[1]


LARGEST = 2**31 - 1
"""Entries of a part, whose row pointers are 32 bits wide."""


class MatrixWriter:
    """Writes the rows of one matrix, see `layout`; repeated edges are merged, and their weights added.

    Args:
        folder: where to write.
        name: name of the matrix.
        sizes: number of nodes of each part.
        weighted: whether the edges have weights.
        counts: whether a repeated edge without weights has its count as its weight, or else 1.
    """

    def __init__(self, folder: Path, name: str, sizes: list[int], weighted: bool, counts: bool = True) -> None:
        self.folder, self.name, self.weighted, self.counts = folder, name, weighted, counts
        self.bounds = np.concatenate([[0], np.cumsum(sizes)])
        self.parts: list[dict[str, int]] = []
        self.pending: list[tuple[np.ndarray, ...]] = []
        blocks = [f"{block}_{kind}" for block in ("local", "halo") for kind in ("indptr", "indices")]
        self.writers = {name: self._writer(name, np.int32) for name in (*blocks, "halo_nodes")}
        self.writers |= {"degree": self._writer("degree", np.float64), "loop": self._writer("loop", np.bool_)}
        self.forth = self.back = np.uint64(0)

    def _writer(self, name: str, dtype: Any) -> Writer:
        return Writer(self.folder, f"{self.name}_{name}", dtype)

    def append(self, row: np.ndarray, column: np.ndarray, weight: np.ndarray | None = None) -> None:
        """Take the next edges; every part that is complete is written."""
        weight = np.ones(len(row)) if weight is None else weight
        while len(row) and len(self.parts) < len(self.bounds) - 1:
            end = int(np.searchsorted(row, self.bounds[len(self.parts) + 1]))
            self.pending.append((row[:end], column[:end], weight[:end]))
            row, column, weight = row[end:], column[end:], weight[end:]
            if len(row):  # the first row of a later part
                self._finish_part()

    def close(self) -> dict[str, Any]:
        """Write what is left, and return the facts about the matrix."""
        while len(self.parts) < len(self.bounds) - 1:
            self._finish_part()
        if self.weighted:
            self._pad_values()
        arrays = {writer.name: writer.entry() for writer in self.writers.values()}
        entries, outside = (sum(part[kind] for part in self.parts) for kind in ("local", "halo"))
        return {
            "entries": entries + outside,
            "outside": outside,
            "symmetric": bool(self.forth == self.back),
            "weighted": self.weighted,
            "parts": self.parts,
            "arrays": arrays,
        }

    def _finish_part(self) -> None:
        first, last = self.bounds[len(self.parts) : len(self.parts) + 2]
        empty = (np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))
        row, column, weight = map(np.concatenate, zip(empty, *self.pending, strict=True))
        self.pending = []
        new = np.ones(len(row), bool)
        new[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
        if not new.all():
            weight = np.add.reduceat(weight, np.flatnonzero(new)) if self.weighted or self.counts else weight[new]
            row, column = row[new], column[new]
            self.weighted = self.weighted or self.counts
        if len(row) > LARGEST:
            raise InputError(f"parts: part {len(self.parts)} has {len(row)} edges, more than {LARGEST}; use more parts")
        with np.errstate(over="ignore"):
            self.forth += _mixed(row, column, weight)
            self.back += _mixed(column, row, weight)
        loop = np.zeros(last - first, bool)
        loop[row[row == column] - first] = True
        self.writers["loop"].append(loop)
        self.writers["degree"].append(np.bincount(row - first, weight, last - first))
        self._write_part(row - first, column, weight, int(first), int(last))

    def _write_part(self, row: np.ndarray, column: np.ndarray, weight: np.ndarray, first: int, last: int) -> None:
        local = (column >= first) & (column < last)
        nodes, halo = np.unique(column[~local], return_inverse=True)
        self.parts.append({"local": int(local.sum()), "halo": len(halo), "nodes": len(nodes)})
        self.writers["halo_nodes"].append(nodes)
        for block, mask, indices in (("local", local, column[local] - first), ("halo", ~local, halo)):
            counts = np.bincount(row[mask], minlength=last - first)
            self.writers[f"{block}_indptr"].append(np.concatenate([[0], np.cumsum(counts)]))
            self.writers[f"{block}_indices"].append(indices)
            if self.weighted:
                self._pad_values(len(indices), block)
                self.writers[f"{block}_values"].append(weight[mask])

    def _pad_values(self, coming: int = 0, block: str | None = None) -> None:
        """Create the files of weights when the first is met; all edges before it have the weight 1."""
        for each in ("local", "halo") if block is None else (block,):
            name = f"{each}_values"
            if name not in self.writers:
                self.writers[name] = self._writer(name, np.float64)
            writer = self.writers[name]
            missing = self.writers[f"{each}_indices"].rows - coming - writer.rows
            while missing > 0:
                ones = np.ones(min(missing, 2**20))
                writer.append(ones)
                missing -= len(ones)


def _mixed(one: np.ndarray, other: np.ndarray, weight: np.ndarray) -> np.uint64:
    """Return a sum of hashes of ordered pairs: equal for edges and reversed edges only if these are the same set."""
    value = one.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
    value ^= value >> np.uint64(29)
    value = value * np.uint64(0xBF58476D1CE4E5B9) + other.astype(np.uint64)
    value ^= value >> np.uint64(32)
    value *= np.uint64(0x94D049BB133111EB)
    value ^= weight.astype(np.float64).view(np.uint64) * np.uint64(0xD6E8FEB86659FD93)
    value ^= value >> np.uint64(29)
    return (value * np.uint64(0xBF58476D1CE4E5B9)).sum(dtype=np.uint64)
