"""What `lignn reproduce` shows while it runs: a live display on a terminal, nothing in a pipe."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from lignn.cli import main
from lignn.cli.reproduce import _Display
from lignn.runs.records import Record
from lignn.studies.runner import Agenda
from lignn.studies.study import Run
from tests.cli.commands import outcome
from tests.studies import tiny

LI_GCN = "LI-GCN (β 0.5)"


def record(run: Run, test: float, seconds: float) -> Record:
    config = run.config
    names = {"id": config.identity, "study": "tiny", "dataset": config.dataset, "method": config.method["name"]}
    return tiny.record(run.row, config.seed, test, seconds=seconds, **names)


def text(display: _Display) -> str:
    console = Console(record=True, width=160, file=io.StringIO())
    console.print(display.render())
    return " ".join(console.export_text().split())


def test_runs_done_current_means_and_time_left():
    planned = tiny.STUDY.plan(3)  # GCN and LI-GCN in turn
    display = _Display(tiny.STUDY, Agenda(Path("x"), planned[1:], [record(planned[0], 0.4, 60.0)]), jobs=1)
    assert "1/6 time left: 5 min" in text(display)
    display.add(record(planned[1], 0.7, 120.0))
    shown = text(display)
    assert f"{LI_GCN} chains-10 1 70.00" in shown
    assert "2/6 time left: 6 min" in shown
    display.add(record(planned[2], 0.5, 60.0))
    shown = text(display)
    assert f"{LI_GCN} chains-10 1 70.00 GCN chains-10 2 45.00 ± 7.07" in shown
    assert "3/6 time left: 5 min" in shown
    display.add(record(planned[3], 0.0, 1.0) | {"status": "failed", "reason": "no luck"})
    assert "4/6" in text(display)


def test_runs_on_absent_data_are_neither_done_nor_awaited():
    planned = tiny.STUDY.plan(1)
    display = _Display(tiny.STUDY, Agenda(Path("x"), planned, []), jobs=1)
    assert "0/2 time left: unknown" in text(display)
    display.add({"id": "tiny/chains-10", "study": "tiny", "dataset": "chains-10", "status": "unavailable"})
    assert "0/0 time left: 0 s" in text(display)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study whose runs take no time."""

    def execute(work: Agenda, jobs: int, report: Callable[[Record], None] = lambda _: None) -> list[Record]:
        new = [record(run, 0.5, 1.0) for run in work.todo]
        for each in new:
            report(each)
        return new

    monkeypatch.setattr("lignn.studies.runner.execute", execute)
    (tmp_path / "tiny.toml").write_text(tiny.TEXT)
    return tmp_path / "tiny.toml"


def test_a_pipe_gets_the_summary_alone(own, tmp_path):
    told = outcome("reproduce", own, "--out", tmp_path)
    assert (told.code, told.err) == (0, "")
    assert told.out == f"tiny: 4 new runs, 0 recorded before; records: {tmp_path / 'tiny.jsonl'}\n"


def test_a_terminal_gets_the_display_before_the_summary(own, tmp_path, monkeypatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(SystemExit):
        main(["reproduce", str(own), "--out", str(tmp_path)])
    assert "4/4" in screen.getvalue()
    assert "50.00 ± 0.00" in screen.getvalue()
    assert capsys.readouterr().out.startswith("tiny: 4 new runs")
