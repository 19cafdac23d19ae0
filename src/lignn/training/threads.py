"""How many threads a training run uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from lignn.methods import Problem
from lignn.propagation import SparseMatrix

SMALL = 1 << 20
"""Multiplications of one pass over the graph, 64 columns wide, up to which one thread is as fast as several."""


@contextmanager
def enough_threads(problem: Problem) -> Iterator[None]:
    """Use one thread on a small graph until the context ends: idle threads of PyTorch spin, and only cost energy.

    The choice depends on the size of the graph alone, so that a seed gives the same result in every run.
    """
    nodes, x = len(problem.labels.mask), problem.x
    entries = 0 if x is None else x.nnz if isinstance(x, SparseMatrix) else x.numel()
    before = torch.get_num_threads()
    small = problem.device.type == "cpu" and 64 * (problem.edges.num_edges + nodes + entries) <= SMALL
    try:
        if small and before > 1:
            torch.set_num_threads(1)
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
