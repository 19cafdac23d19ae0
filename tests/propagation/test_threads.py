import numpy as np
import pytest

from lignn.propagation import threads as division


def test_blocks_of_rows_cover_every_row_once_and_share_the_entries(threads):
    threads(4)
    indptr = np.array([0, 100, 101, 102, 200, 300, 400])
    blocks = []
    division.run_over_rows(lambda *block: blocks.append(block), indptr, multiplications=division.PARALLEL_ABOVE + 1)
    assert sorted(blocks) == [(0, 1), (1, 4), (4, 5), (5, 6)]
    blocks.clear()
    division.run_over_rows(lambda *block: blocks.append(block), indptr, multiplications=division.PARALLEL_ABOVE)
    assert blocks == [(0, 6)]


def test_an_error_in_another_thread_is_raised_here(threads):
    threads(2)

    def fail_late(first, last):
        if first:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        division.run_over_rows(fail_late, np.arange(11), multiplications=division.PARALLEL_ABOVE + 1)


@pytest.mark.parametrize("openmp", [True, False])
def test_every_thread_is_called_with_the_task(openmp, threads, monkeypatch):
    threads(3)
    if not openmp:
        monkeypatch.setattr(division, "_gomp_parallel", lambda: None)
    calls = []
    division.run_in_threads(division.ThreadFunction(calls.append), 42, 3)
    assert calls == [42, 42, 42]
