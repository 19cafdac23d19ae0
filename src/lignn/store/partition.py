"""Which part a node belongs to: METIS, blocks of an order with a small bandwidth, or blocks of a given order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from lignn.errors import ConfigError, InputError, unknown

METHODS = ("metis", "blocks")
_ROW = 64
"""Work of a row, in entries: a step makes 2 c multiplications for an entry, and 2 c h for a row with h hidden units."""


def by_name(method: str, links: Callable[[], sp.csr_array], degree: np.ndarray, parts: int) -> tuple[np.ndarray, list]:
    """Return the node at each position, and the number of nodes of each part.

    Args:
        method: "metis" or "blocks".
        links: returns the symmetric pattern of the edges without self-loops.
        degree: number of incoming edges of each node.
        parts: number of parts.
    """
    if method not in METHODS:
        raise unknown("partition", method, METHODS)
    if method == "blocks":
        return in_blocks(reverse_cuthill_mckee(links(), symmetric_mode=True), degree, parts)
    try:
        import pymetis
    except ImportError as error:
        message = "partition 'metis' needs pymetis: pip install 'lignn[store]', or use --partition blocks"
        raise ConfigError(message) from error
    matrix = links()
    if parts == 1:
        return np.arange(len(degree)), [len(degree)]
    weights = (degree + _ROW).astype(np.int64)  # a part's work: its entries and its rows
    options = pymetis.Options(seed=0)
    graph = pymetis.CSRAdjacency(matrix.indptr, matrix.indices)
    _, part = pymetis.part_graph(parts, graph, vweights=weights, options=options)
    sizes = np.bincount(part, minlength=parts)
    return np.argsort(part, kind="stable"), sizes.tolist()


def in_blocks(order: np.ndarray, degree: np.ndarray, parts: int) -> tuple[np.ndarray, list]:
    """Cut an order of the nodes into parts of about the same work: entries and rows."""
    work = np.cumsum(degree[order] + _ROW)
    cuts = [0]
    for part in range(1, parts):
        wanted = int(np.searchsorted(work, work[-1] * part / parts))
        cuts.append(min(max(wanted, cuts[-1] + 1), len(order) - parts + part))  # every part has a node
    return order, np.diff([*cuts, len(order)]).tolist()


def read_order(path: Path, number_of: Callable[[list[str]], np.ndarray], nodes: int) -> np.ndarray:
    """Return the order in a text file with one id per line; each node must be there once."""
    try:
        ids = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a list of ids ({error})") from error
    order = number_of([line.strip() for line in ids if line.strip()])
    wrong = np.flatnonzero(order < 0)
    if len(wrong):
        raise InputError(f"{path}, line {wrong[0] + 1}: is not the id of a node")
    if len(order) != nodes or len(np.unique(order)) != nodes:
        raise InputError(f"{path}: names {len(np.unique(order))} of the {nodes} nodes; each must be there once")
    return order
