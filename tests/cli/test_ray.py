"""Commands on a Ray cluster: runs as its tasks, processes as its actors; the numbers are those of this machine."""

import json
import os

import numpy as np
import pytest

from lignn.errors import InputError
from lignn.runs import workers
from lignn.runs.workers import Failure
from tests.cli.commands import outcome, run
from tests.problems import random_graph
from tests.studies import tiny

pytest.importorskip("ray", reason="Ray is not installed: pip install 'lignn[ray]'")
pytestmark = [
    pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of Ray's own sockets
]


def half(number):
    if number == 0:
        raise InputError("zero has no half here")
    if number == 1:
        raise RuntimeError("one neither")
    if number == 2:
        os._exit(7)
    return number / 2


def test_tasks_of_a_cluster_give_results_and_failures():
    with workers.on_ray("local"):
        found = dict(workers.each(half, range(6), jobs=2))
    assert {task: found[task] for task in (3, 4, 5)} == {3: 1.5, 4: 2.0, 5: 2.5}
    assert all(isinstance(found[task], Failure) for task in (0, 1, 2))
    assert isinstance(found[0].error, InputError)
    assert "RuntimeError: one neither" in found[1]
    assert "the Ray task ended" in found[2]
    assert dict(workers.each(half, [4], jobs=2)) == {4: 2.0}  # on this machine again


def test_comparisons_are_the_same(tmp_path):
    random_graph(60).write(tmp_path / "g.npz")
    fast = ("--runs", 1, "--only", "lpa", "--max-epochs", 3, "--json")
    common = ("compare", tmp_path / "g.npz", "-o", tmp_path / "page.html", *fast)
    here, there = (json.loads(run(*common, *more)) for more in (("--jobs", 2), ("--ray", "local")))
    assert [row["test"] for row in here["rows"]] == [row["test"] for row in there["rows"]]


def test_searches_are_the_same(tmp_path):
    random_graph(60).write(tmp_path / "g.npz")
    common = ("tune", tmp_path / "g.npz", "--trials", 2, "--runs", 1, "--max-epochs", 2, "--hidden", 4, "--json")
    ways = {"jobs": ("--jobs", 2), "ray": ("--ray", "local")}
    here, there = (json.loads(run(*common, "--storage", tmp_path / name, *more)) for name, more in ways.items())
    assert _without_times(here) == _without_times(there)


def test_records_of_studies_are_the_same(tmp_path):
    (tmp_path / "tiny.toml").write_text(tiny.TEXT)
    ways = {"jobs": ("--jobs", 2), "ray": ("--ray", "local")}
    found = []
    for name, more in ways.items():
        run("reproduce", tmp_path / "tiny.toml", "--out", tmp_path / name, *more)
        lines = (tmp_path / name / "tiny.jsonl").read_text().splitlines()
        found.append(sorted((_without_times(json.loads(line)) for line in lines), key=lambda record: record["id"]))
    assert found[0] == found[1]
    assert len(found[0]) == 4


def _without_times(value):
    """What a command printed or recorded, without what differs each time: times and memory."""
    if isinstance(value, list):
        return [_without_times(each) for each in value]
    if not isinstance(value, dict):
        return value
    measured = ("seconds", "processor_seconds", "peak_memory_mib", "storage")
    return {name: _without_times(each) for name, each in value.items() if name not in measured}


def test_processes_of_a_cluster_fit_a_store(tmp_path):
    random_graph(40).write(tmp_path / "g.npz")
    store, model = tmp_path / "s", tmp_path / "m"
    run("store", "build", tmp_path / "g.npz", store, "--parts", 4, "--json")
    fast = ("--max-epochs", 2, "--hidden", 4, "--precision", "float64")
    result = outcome("fit", store, "-o", model, "--workers", 2, "--ray", "local", *fast)
    assert result.code == 0, result.err
    assert "streamed by each product" in result.err
    run("fit", store, "-o", tmp_path / "alone", *fast)
    found = [json.loads(run("predict", each, "--json"))["predictions"] for each in (model, tmp_path / "alone")]
    numbers = [np.array([list(row.values())[5:] for row in rows], float) for rows in found]
    assert np.allclose(*numbers, rtol=0, atol=1e-8)


def test_no_cluster_is_one_sentence(tmp_path):
    random_graph(40).write(tmp_path / "g.npz")
    result = outcome("compare", tmp_path / "g.npz", "--ray", "127.0.0.1:1", "-o", tmp_path / "page.html")
    assert result.code == 2
    assert "--ray 127.0.0.1:1: no Ray cluster answers there" in result.err
