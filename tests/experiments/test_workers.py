import os

import torch

from lignn.errors import LignnError
from lignn.experiments import workers


def task(number: int) -> int:
    if number == 3:
        raise LignnError("three is not allowed")
    if number == 4:
        raise KeyError("four")
    if number == 5:
        os._exit(7)
    return 10 * number + torch.get_num_threads()


def test_every_task_has_one_result_whatever_happens_to_the_others():
    results = dict(workers.each(task, range(8), jobs=2))
    assert [results[number] for number in (0, 1, 2, 6, 7)] == [1, 11, 21, 61, 71]
    assert results[3] == "three is not allowed"
    assert results[4].startswith("KeyError: 'four' (test_workers.py, line ")
    assert results[5] == "the worker process ended with exit code 7"
    assert all(isinstance(results[number], workers.Failure) for number in (3, 4, 5))


def test_no_tasks_need_no_workers():
    assert list(workers.each(task, [], jobs=2)) == []
