import json
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from lignn.cli import main
from lignn.cli.report import report
from lignn.cli.reproduce import reproduce
from lignn.errors import InputError
from lignn.runs import records
from lignn.studies import study
from tests.cli.commands import outcome
from tests.cli.test_progress import Terminal
from tests.studies import tiny

app = typer.Typer()
app.command()(reproduce)
app.command()(report)


def run(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "tiny.toml").write_text(tiny.TEXT)
    return tmp_path / "tiny.toml"


def test_list():
    assert [line.split()[0] for line in run("reproduce").splitlines()] == study.names()
    listed = json.loads(run("reproduce", "list", "--json"))
    assert {one["name"]: one["cases"] for one in listed}["figure2"] == 45


def test_a_plan_runs_nothing(own, tmp_path):
    text = run("reproduce", own, "--dry-run", "--out", tmp_path / "out", "--runs", "3")
    assert text.splitlines() == [
        "tiny: 6 runs to do, 0 recorded",
        "    3 × GCN / chains-10",
        "    3 × LI-GCN (β 0.5) / chains-10",
    ]
    assert not (tmp_path / "out").exists()


def test_a_plan_leaves_out_absent_data(own, tmp_path, monkeypatch):
    monkeypatch.delenv("LIGNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    own.write_text(tiny.TEXT.replace('["chains-10"]', '["flickr", "chains-10"]'))
    text = run("reproduce", own, "--dry-run", "--out", tmp_path)
    assert text.splitlines() == [
        "tiny: 4 runs to do, 0 recorded",
        "    2 × GCN / chains-10",
        "    2 × LI-GCN (β 0.5) / chains-10",
        "  left out: 4 runs on flickr, which has to be downloaded first",
    ]
    (plan,) = json.loads(run("reproduce", own, "--dry-run", "--out", tmp_path, "--json"))
    assert (plan["to_do"], plan["not_here"]) == (4, {"flickr": 4})


def test_run_resume_and_report(own, tmp_path):
    out = tmp_path / "out"
    arguments = ("reproduce", own, "--out", out, "--only", "GCN")
    assert run(*arguments) == f"tiny: 2 new runs, 0 recorded before; records: {out / 'tiny.jsonl'}\n"
    assert run(*arguments) == f"tiny: 0 new runs, 2 recorded before; records: {out / 'tiny.jsonl'}\n"
    files = json.loads(run("report", out, "--json"))
    assert str(out / "report.html") in files


def test_a_pipe_gets_the_summary_alone(own, tmp_path):
    told = outcome("reproduce", own, "--out", tmp_path)
    assert (told.code, told.err) == (0, "")
    assert told.out == f"tiny: 4 new runs, 0 recorded before; records: {tmp_path / 'tiny.jsonl'}\n"


def test_a_terminal_gets_each_run_before_the_summary(own, tmp_path, monkeypatch, capsys):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(SystemExit):
        main(["reproduce", str(own), "--out", str(tmp_path)])
    assert "4/4" in screen.getvalue()
    assert capsys.readouterr().out.startswith("tiny: 4 new runs")


def test_runs_that_are_done_again_are_compared_with_their_records(own, tmp_path):
    arguments = ("reproduce", own, "--only", "GCN")
    run(*arguments, "--out", tmp_path / "old")
    old = records.read(tmp_path / "old" / "tiny.jsonl")
    records.append(tmp_path / "old" / "tiny.jsonl", old[0] | {"scores": {"test": 0.0}})
    *_, line = run(*arguments, "--out", tmp_path / "new", "--compare", tmp_path / "old").splitlines()
    scores = [100 * record["scores"]["test"] for record in old]
    assert line.startswith("  GCN / chains-10: 2 runs in both, 1 with the same score; ")
    assert f"mean {sum(scores) / 2:.2f}, before {scores[1] / 2:.2f}, difference +{scores[0] / 2:.2f} [" in line
    with pytest.raises(InputError, match="there are no records of tiny to compare with"):
        run(*arguments, "--out", tmp_path / "new", "--compare", tmp_path / "nowhere")


def test_a_failure_is_told_and_gives_exit_code_1(own, tmp_path):
    own.write_text(tiny.TEXT.replace("hidden = 4", "hiden = 4"))
    text = run("reproduce", own, "--out", tmp_path, "--runs", "1", "--only", "GCN", code=1)
    assert "  failed: GCN, chains-10, run 0: backbone GCN has no option 'hiden'" in text


def test_earlier_failures_are_told_again_until_they_are_repeated(own, tmp_path):
    for config in (planned for planned in tiny.STUDY.plan(1)):
        failed = {"status": "failed", "reason": "no luck"} if config.method["name"] == "lignn" else {}
        records.append(tmp_path / "tiny.jsonl", tiny.record("GCN", 0, 0.5, id=config.id) | failed)
    arguments = ("reproduce", own, "--out", tmp_path, "--runs", "1")
    assert run(*arguments, code=1).splitlines() == [
        f"tiny: 0 new runs, 2 recorded before (1 of them failed); records: {tmp_path / 'tiny.jsonl'}",
        "  failed before: GCN, chameleon, run 0: no luck",
        "  add --retry to repeat failed runs",
    ]
    assert run(*arguments, "--dry-run").startswith("tiny: 0 runs to do, 2 recorded (1 of them failed)")
    assert "1 new runs, 1 recorded before;" in run(*arguments, "--retry")
    assert run(*arguments).startswith("tiny: 0 new runs, 2 recorded before;")


def test_another_process_at_the_same_study_gives_exit_code_2(own, tmp_path):
    with records.locked(tmp_path / "tiny.jsonl"):
        told = outcome("reproduce", own, "--out", tmp_path)
        plan = outcome("reproduce", own, "--out", tmp_path, "--dry-run")
    assert (told.code, told.out) == (2, "")
    assert told.err == (
        f"error: {tmp_path / 'tiny.jsonl'}: another process is adding records; "
        "wait until it is done, or choose another folder\n"
    )
    assert plan.code == 0


def test_an_interrupt_gives_exit_code_130(own, tmp_path, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lignn.studies.runner.execute", interrupted)
    run("reproduce", own, "--out", tmp_path, code=130)


def test_a_filter_that_matches_nothing_is_refused(own, tmp_path):
    with pytest.raises(InputError, match="no run matches x; rows of tiny are GCN, LI-GCN"):
        run("reproduce", own, "--out", tmp_path, "--only", "x")
