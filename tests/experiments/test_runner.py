from pathlib import Path

import pytest

from lignn.experiments import records, runner, study
from tests.experiments import tiny

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
    planned = tiny.STUDY.plan()[1].config
    assert (record["id"], record["config"]) == (planned.identity, planned.plain())
    assert (record["study"], record["against"], record["method"], record["threads"]) == ("tiny", "GCN", "lignn", 1)
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


def test_a_failed_run_is_a_record_and_the_study_goes_on(tmp_path):
    wrong = study.parse("wrong", tiny.TEXT.replace("max_steps = 5", "max_steps = -1"))
    new = runner.execute(runner.agenda(wrong, tmp_path, runs=1))
    assert [(record["row"], record["status"]) for record in new] == [("GCN", "ok"), ("LI-GCN (β 0.5)", "failed")]
    assert new[1]["reason"] == "tol and max_steps must not be negative, got 5e-05 and -1"
    assert not runner.agenda(wrong, tmp_path, runs=1).todo
    assert [run.row for run in runner.agenda(wrong, tmp_path, runs=1, retry=True).todo] == ["LI-GCN (β 0.5)"]


def test_a_number_that_json_does_not_have_fails_its_run_alone(tmp_path, monkeypatch):
    def results(_: object, tasks: list, __: int):
        yield tasks[0], {"scores": {"test": 0.5}, "solves": {"forward": {"contraction": float("nan")}}}
        yield tasks[1], {"scores": {"test": 0.5}}

    monkeypatch.setattr("lignn.experiments.workers.each", results)
    new = runner.execute(runner.agenda(tiny.STUDY, tmp_path, runs=1))
    assert [record["status"] for record in new] == ["failed", "ok"]
    assert new[0]["reason"].startswith("solves cannot be recorded: Out of range float values")
    assert len(records.read(tmp_path / "tiny.jsonl")) == 2


def test_absent_data_is_noted_once_and_other_datasets_are_run(tmp_path, monkeypatch):
    def fetch(name: str, folder: Path) -> None:
        raise OSError("offline")

    monkeypatch.setattr("lignn.datasets.flickr.download", fetch)
    partly = study.parse("partly", tiny.TEXT.replace('["chains-10"]', '["flickr", "chains-10"]'))
    for expected in (["unavailable", "ok"], ["unavailable"]):
        work = runner.agenda(partly, tmp_path, runs=1, only=["GCN"])
        assert [record["status"] for record in runner.execute(work)] == expected
    lines = records.read(work.file)
    assert lines[0] == {"id": "partly/flickr", "study": "partly", "dataset": "flickr", "status": "unavailable"}
    assert len(lines) == work.file.read_bytes().count(b"\n") == 2
