import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from lignn.propagation import SparseMatrix, product
from lignn.propagation import threads as pool
from lignn.propagation.threads import PARALLEL_ABOVE, ThreadFunction, run_in_threads, run_over_rows

THREADING_LAYERS = ["workqueue", "omp", "tbb"]

CONCURRENT = """
import numba, numpy as np, scipy.sparse as sp, torch
from concurrent.futures import ThreadPoolExecutor
from lignn.propagation import SparseMatrix

matrix = SparseMatrix.from_scipy(sp.random_array((3000, 3000), density=0.03, rng=np.random.default_rng(0)))
x = torch.rand(3000, 64, dtype=torch.float64)
with ThreadPoolExecutor(4) as pool:
    results = list(pool.map(lambda _: matrix @ x, range(40)))
assert all(torch.equal(result, results[0]) for result in results)
assert np.allclose(results[0], matrix.to_scipy() @ x.numpy())
print("same")
"""


@pytest.fixture
def large():
    """Return the factors of a product that is large enough for several threads; one node is a hub."""
    matrix = sp.random_array((2000, 2000), density=0.04, rng=np.random.default_rng(0), format="lil")
    matrix[11, :] = matrix[:, 11] = 1
    dense = torch.rand(2000, 70, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return SparseMatrix.from_scipy(matrix), dense


def test_number_of_threads_changes_no_bit(large, threads):
    matrix, dense = large
    assert matrix.nnz * dense.shape[1] > PARALLEL_ABOVE
    results = []
    for count in (1, 2, 3, 7):
        threads(count)
        results += [matrix @ dense, matrix @ dense]
    assert all(torch.equal(result, results[0]) for result in results)
    torch.testing.assert_close(results[0], torch.from_numpy(matrix.to_scipy() @ dense.numpy()))


def test_a_pool_of_threads_where_openmp_is_not_gnu_changes_no_bit(large, threads, monkeypatch):
    threads(3)
    matrix, dense = large
    expected = matrix @ dense
    monkeypatch.setattr(pool, "_gomp_parallel", lambda: None)
    assert torch.equal(matrix @ dense, expected)


@pytest.mark.parametrize(("module", "setting"), [(product, "PREFETCH_ABOVE"), (pool, "HUGE_PAGES_ABOVE")])
def test_prefetching_and_huge_pages_change_no_bit(module, setting, large, monkeypatch):
    matrix, dense = large
    results = []
    for value in (1 << 60, 0):
        monkeypatch.setattr(module, setting, value)
        results.append(replace(matrix) @ dense)  # a new matrix, whose product has not been chosen yet
    assert torch.equal(*results)


def test_no_thread_of_numba_is_started():
    code = CONCURRENT + "\ntry:\n    numba.threading_layer()\nexcept ValueError:\n    print('none')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "same\nnone\n"


@pytest.mark.parametrize("layer", THREADING_LAYERS)
def test_concurrent_calls_are_safe_with_every_threading_layer(layer):
    """A parallel function of the user starts the layer, then products run in several threads."""
    code = f"""
import numba
numba.config.THREADING_LAYER = {layer!r}

@numba.njit(parallel=True)
def total(n):
    s = 0
    for i in numba.prange(n):
        s += i
    return s

try:
    assert total(1000) == 499500
except ValueError:
    print("absent")
    raise SystemExit
{CONCURRENT}
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    if run.stdout == "absent\n":
        pytest.skip(f"this Numba has no threading layer {layer}")
    assert run.stdout == "same\n"


def test_concurrent_calls_of_one_process_agree(large):
    matrix, dense = large
    expected = matrix @ dense
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: torch.equal(matrix @ dense, expected), range(20)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_threads_that_it_has_not_inherited(large, threads):
    threads(2)
    matrix, dense = large
    expected = (matrix @ dense).numpy()  # the threads are running now
    context = multiprocessing.get_context("fork")
    answer = context.Queue()

    def product():
        answer.put(np.array_equal((matrix @ dense).numpy(), expected))

    child = context.Process(target=product, daemon=True)
    child.start()
    assert answer.get(timeout=60)
    child.join(timeout=60)
    assert child.exitcode == 0


@pytest.mark.parametrize("place", ["writable", "not writable"])
def test_kernels_are_cached_on_disk_where_possible(place, tmp_path):
    folder = tmp_path / "cache"
    if place == "not writable":
        folder.write_text("a file where the folder should be")
    code = (
        "import scipy.sparse as sp, torch; from lignn.propagation import SparseMatrix; "
        "assert (SparseMatrix.from_scipy(sp.eye_array(2)) @ torch.ones(2).double()).tolist() == [1, 1]"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    for _ in range(2 if place == "writable" else 1):
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)
    if place == "writable":
        assert len(list(folder.rglob("*.nbi"))) == len(list(folder.rglob("*.nbc"))) == 1


def test_blocks_of_rows_cover_every_row_once_and_share_the_entries(threads):
    threads(4)
    indptr = np.array([0, 100, 101, 102, 200, 300, 400])
    blocks = []
    run_over_rows(lambda *block: blocks.append(block), indptr, multiplications=PARALLEL_ABOVE + 1)
    assert sorted(blocks) == [(0, 1), (1, 4), (4, 5), (5, 6)]
    blocks.clear()
    run_over_rows(lambda *block: blocks.append(block), indptr, multiplications=PARALLEL_ABOVE)
    assert blocks == [(0, 6)]


def test_an_error_in_another_thread_is_raised_here(threads):
    threads(2)

    def fail_late(first, last):
        if first:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_over_rows(fail_late, np.arange(11), multiplications=PARALLEL_ABOVE + 1)


@pytest.mark.parametrize("openmp", [True, False])
def test_every_thread_is_called_with_the_task(openmp, threads, monkeypatch):
    threads(3)
    if not openmp:
        monkeypatch.setattr(pool, "_gomp_parallel", lambda: None)
    calls = []
    run_in_threads(ThreadFunction(calls.append), 42, 3)
    assert calls == [42, 42, 42]
