"""Memory bandwidth of the sparse products beside that of a copy, and the parts of an epoch's time."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import torch

from lignn.bench.sides import HIDDEN, Lignn, Task, load_task
from lignn.bench.timing import Record, Timing, record, timed
from lignn.propagation import Adjacency

COPIED = 2**28
"""Bytes of the copy, far more than fit into any cache."""
COLUMNS = 8
"""Besides the number of classes and that of hidden units."""
SPARSE, OTHER = "lignn::spmm", "aten::"
"""Names of operators: of sparse products, and how those of PyTorch begin."""


def run(quick: bool) -> Iterator[Record]:
    """Time a copy as in the STREAM benchmark, products with labels and hidden states, and the parts of an epoch."""
    rounds = 3 if quick else 15
    limit = _copy(rounds, COPIED // 64 if quick else COPIED)
    yield limit
    sources: list[str | int] = [10_000] if quick else ["chameleon", "amazon_photo", "coauthor_physics", 10**6]
    for source in sources:
        problem = load_task(source)
        for width in sorted({problem.graph.num_classes, COLUMNS, HIDDEN}):
            yield _product(problem, width, rounds, limit["gigabytes_per_second"])
        yield from _parts(problem, 2 if quick else 10)


def _copy(rounds: int, size: int) -> Record:
    """Time the copy of an array; bytes read and bytes written both count."""
    source = torch.ones(size // 4)
    target = torch.empty_like(source)
    timing = timed(lambda: target.copy_(source), rounds)
    figures = timing.figures(timing) | _speeds(2 * size, 2 * size, timing)
    return record("copy of a large array", "torch", {"bytes": size}, **figures)


def _product(problem: Task, width: int, rounds: int, limit: float) -> Record:
    """Time `Ã X`, and count the bytes it moves in two ways.

    Every array is moved once at least; `gathered` assumes that each gathered row comes from memory, not from a cache.
    """
    adj = Adjacency.normalized(problem.graph)
    n = adj.shape[0]
    x = torch.randn(n, width, generator=torch.Generator().manual_seed(0))
    timing = timed(lambda: adj @ x, 5 * rounds)
    matrix = adj.nnz * 8 + n * 4
    figures = timing.figures(timing) | _speeds(matrix + 2 * x.nbytes, matrix + x.nbytes + adj.nnz * width * 4, timing)
    figures["share"] = figures["gigabytes_per_second"] / limit
    return record(f"product, {width} columns, {problem.graph.name}", "lignn", {"entries": adj.nnz}, **figures)


def _speeds(once: int, gathered: int, timing: Timing) -> Record:
    return {"gigabytes_per_second": once / timing.median / 1e9, "gathered_per_second": gathered / timing.median / 1e9}


def _parts(problem: Task, epochs: int) -> Iterator[Record]:
    """Yield the shares of the operators in profiled epochs.

    The rest is what the profiler does not see: compiled solves and steps, Python, dispatch and the profiler itself.
    """
    from torch.profiler import ProfilerActivity, profile

    side = Lignn(problem)
    side.epoch()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        start = perf_counter()
        for _ in range(epochs):
            side.epoch()
        whole = perf_counter() - start
    spent = {event.key: event.self_cpu_time_total / 1e6 for event in profiler.key_averages()}
    parts = {
        "sparse products": spent.get(SPARSE, 0.0),
        "other operators": sum(seconds for key, seconds in spent.items() if key.startswith(OTHER)),
    }
    parts["compiled solves and the rest"] = whole - sum(parts.values())
    for part, seconds in parts.items():
        figures = {"median": seconds / epochs, "spread": 0.0, "ratio": 1.0, "share": seconds / whole}
        yield record(f"epoch, {part}, {problem.graph.name}", "lignn", {}, **figures)
