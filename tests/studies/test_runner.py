from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from lignn import Graph, Split
from lignn.errors import DatasetError, InputError
from lignn.runs import records
from lignn.studies import runner, study
from tests.studies import tiny

COSTS = {"seconds", "processor_seconds", "peak_memory_mib"}


@pytest.fixture(autouse=True)
def _offline(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIGNN_DATA", raising=False)


def results(file: Path) -> dict[str, dict]:
    return {r["id"]: {key: r[key] for key in r if key not in COSTS} for r in records.read(file)}


def test_results_depend_neither_on_jobs_nor_on_a_kill(tmp_path):
    work = runner.agenda(tiny.STUDY, tmp_path / "one")
    assert (len(work.todo), work.done) == (4, [])
    record = runner.execute(work, jobs=1)[1]
    planned = tiny.STUDY.plan()[1]
    assert (record["id"], record["config"]) == (planned.id, planned.plain())
    assert (record["study"], record["against"], record["method"], record["threads"]) == ("tiny", "GCN", "lignn", 1)
    both = [(r["split"], r["seed"]) for r in records.read(work.file) if r["row"] == "GCN"]
    assert both == [(0, 0), (0, 1)]  # chains have one split: runs differ in their seed
    assert {"versions", "commit", "machine", "scores", "epochs", "end", "solves", *COSTS} <= set(record)

    class KilledError(Exception):
        pass

    def kill(record: records.Record) -> None:
        raise KilledError

    interrupted = runner.agenda(tiny.STUDY, tmp_path / "two")
    with pytest.raises(KilledError):
        runner.execute(interrupted, jobs=2, report=kill)
    before = interrupted.file.read_bytes()
    interrupted.file.write_bytes(before + b'{"id": "torn')

    resumed = runner.agenda(tiny.STUDY, tmp_path / "two")
    assert (len(resumed.todo), len(resumed.done)) == (3, 1)
    assert len(runner.execute(resumed, jobs=1)) == 3
    assert resumed.file.read_bytes().startswith(before)
    assert resumed.file.read_bytes().count(b"\n") == 4
    assert results(resumed.file) == results(work.file)
    assert runner.execute(runner.agenda(tiny.STUDY, tmp_path / "two")) == []


def test_another_process_at_the_same_study(tmp_path):
    """It keeps others out while it runs; what it has done meanwhile is not repeated."""
    work = runner.agenda(tiny.STUDY, tmp_path, runs=1)
    with records.locked(work.file), pytest.raises(InputError, match="another process is adding records"):
        runner.execute(work)
    for run in work.todo:
        records.append(work.file, {"id": run.id, "status": "ok"})
    assert runner.execute(work) == []


def test_a_failed_run_is_a_record_and_the_study_goes_on(tmp_path):
    wrong = study.parse("wrong", tiny.TEXT.replace("max_steps = 5", "max_steps = -1"))
    new = runner.execute(runner.agenda(wrong, tmp_path, runs=1))
    assert [(record["row"], record["status"]) for record in new] == [("GCN", "ok"), ("LI-GCN (β 0.5)", "failed")]
    assert new[1]["reason"] == "tol and max_steps must not be negative or infinite, got 5e-05 and -1"
    assert not runner.agenda(wrong, tmp_path, runs=1).todo
    assert [run.row for run in runner.agenda(wrong, tmp_path, runs=1, retry=True).todo] == ["LI-GCN (β 0.5)"]


def test_a_number_that_json_does_not_have_fails_its_run_alone(tmp_path, monkeypatch):
    def results(_: object, rounds: Iterator[list], *__: object):
        (tasks,) = rounds
        yield tasks[0], {"scores": {"test": 0.5}, "solves": {"forward": {"contraction": float("nan")}}}
        yield tasks[1], {"scores": {"test": 0.5}}

    monkeypatch.setattr("lignn.runs.workers.in_rounds", results)
    new = runner.execute(runner.agenda(tiny.STUDY, tmp_path, runs=1))
    assert [record["status"] for record in new] == ["failed", "ok"]
    assert new[0]["reason"].startswith("solves cannot be recorded: Out of range float values")
    assert len(records.read(tmp_path / "tiny.jsonl")) == 2


PARTLY = study.parse("partly", tiny.TEXT.replace('["chains-10"]', '["flickr", "chains-10"]'))


@pytest.fixture
def _no_download(monkeypatch):
    def fetch(name: str, folder: Path) -> None:
        raise OSError("offline")

    monkeypatch.setattr("lignn.datasets.stored.flickr", fetch)


@pytest.mark.usefixtures("_no_download")
def test_absent_data_is_noted_once_and_other_datasets_are_run(tmp_path):
    for expected in (["unavailable", "ok"], ["unavailable"]):
        work = runner.agenda(PARTLY, tmp_path, runs=1, only=["GCN"])
        assert [record["status"] for record in runner.execute(work)] == expected
    lines = records.read(work.file)
    assert lines[0] == {"id": "partly/flickr", "study": "partly", "dataset": "flickr", "status": "unavailable"}
    assert len(lines) == work.file.read_bytes().count(b"\n") == 2


@pytest.mark.usefixtures("_no_download")
def test_data_that_have_arrived_are_run_and_a_damaged_file_fails_with_its_reason(tmp_path, monkeypatch):
    flickr = study.parse("flickr", tiny.TEXT.replace("chains-10", "flickr").replace("dataset_options", "# "))

    def execute() -> list[records.Record]:
        return runner.execute(runner.agenda(flickr, tmp_path, runs=1, only=["GCN"], retry=True))

    assert [record["status"] for record in execute()] == ["unavailable"]
    monkeypatch.setenv("LIGNN_DATA", str(tmp_path))
    (tmp_path / "flickr.npz").write_bytes(b"not a graph")
    (damaged,) = execute()
    assert (damaged["row"], damaged["status"]) == ("GCN", "failed")
    assert "flickr.npz" in damaged["reason"]
    nodes = torch.arange(9)
    own = Split(nodes < 3, (nodes >= 3) & (nodes < 6), nodes >= 6)
    Graph([[0, 1], [1, 2]], x=torch.eye(9), y=nodes % 3, splits=[own]).write(tmp_path / "flickr.npz")
    assert [record["status"] for record in execute()] == ["ok"]


def test_whether_data_are_here_is_known_without_reading_them(tmp_path, monkeypatch):
    monkeypatch.setattr("lignn.datasets.load", None)
    monkeypatch.setenv("LIGNN_DATA", str(tmp_path))
    assert runner.is_here("chains-7")
    assert not runner.is_here("cora")
    (tmp_path / "cora.npz").touch()
    assert runner.is_here("cora")
    assert runner.unavailable(["cora", "chains-7", "cora"]) == []
    with pytest.raises(DatasetError, match="unknown dataset 'corra'; did you mean 'cora'"):
        runner.unavailable(["corra"])
