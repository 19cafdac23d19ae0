"""The memory of a training update does not depend on the number of steps, forward or backward."""

from collections.abc import Callable
from itertools import accumulate

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from lignn.bench.sides import HIDDEN, Lignn, load_task


def peak_of_tensors(work: Callable[[], object]) -> int:
    """Return the largest number of bytes that tensors allocated by `work` hold at once, from the profiler's events."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    events = profiler.profiler.kineto_results.events()
    return max(accumulate((event.nbytes() for event in events if event.name() == "[memory]"), initial=0))


def test_what_is_freed_does_not_count():
    assert peak_of_tensors(lambda: [torch.zeros(1000) for _ in range(3)]) == pytest.approx(12_000, abs=500)
    assert peak_of_tensors(lambda: [torch.zeros(1000).sum() for _ in range(3)]) < 6000


def test_ten_times_the_steps_take_the_same_memory():
    task = load_task(1000)
    Lignn(task).update()  # compiles the kernels
    few, many = (peak_of_tensors(Lignn(task, steps).update) for steps in (10, 100))
    assert few > task.graph.num_nodes * HIDDEN * 4  # the hidden layer at least
    assert many <= 1.02 * few
