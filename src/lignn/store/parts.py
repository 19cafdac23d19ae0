"""The parts of a matrix of a store: their rows as two CSR matrices, memory-mapped and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from lignn.errors import InputError


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
