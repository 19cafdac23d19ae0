import io
import re
import sys
from pathlib import Path

import pytest
import typer

from lignn.cli import _show_warning, progress
from lignn.graph.files import open_file, watcher
from lignn.training import History


def history(epochs: int) -> History:
    made = History()
    for epoch in range(epochs):
        solves = {"forward": {"steps": 9}, "backward": {"steps": 4}}
        made.add({"epoch": epoch, "loss": 0.5, "train": 1.0, "val": epoch / 10, **solves})
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_plain_lines_in_a_log_come_every_ten_seconds(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with progress.of_training(100, quiet=False) as tell:
        assert tell is not None
        for epoch in range(1, 31):
            clock[0] = epoch * 0.9
            tell(history(epoch))
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert [line.split()[1] for line in lines] == ["1/100", "13/100", "25/100"]
    assert lines[1] == (
        "epoch 13/100  loss 0.5000  validation 1.2000 (best 1.2000)  solver steps 9+4  at most 1:18 left"
    )


def test_time_left_counts_from_where_a_resumed_run_goes_on(clock: list[float]) -> None:
    words = progress._Clock(100)
    clock[0] = 2.0
    assert words.describe(history(81)).endswith("solver steps 9+4")
    clock[0] = 4.0
    assert words.describe(history(82)).endswith("at most 0:36 left")


def test_the_first_epoch_which_compiles_promises_nothing(clock: list[float]) -> None:
    words = progress._Clock(1000)
    clock[0] = 6.0
    assert "left" not in words.describe(history(1))
    clock[0] = 6.1
    assert words.describe(history(2)).endswith("at most 1:39 left")


def test_without_held_out_labels_there_is_no_score_to_tell(clock: list[float]) -> None:
    made = History()
    made.add({"epoch": 0, "loss": 0.25})
    assert progress._Clock(1).describe(made) == "loss 0.2500"


def test_an_interruption_says_how_far_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        with progress.of_runs(3, quiet=True) as tell:
            tell("one")
            raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as end:
        interrupted()
    assert end.value.exit_code == 130
    assert capsys.readouterr().err == "interrupted after 1 of 3 runs; nothing was written\n"


def test_quiet_means_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.of_training(100, quiet=True) as tell:
        assert tell is None
    with progress.of_runs(3, quiet=True) as step:
        step("anything")
    assert capsys.readouterr() == ("", "")


def test_runs_are_counted_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.of_runs(2, quiet=False) as tell:
        tell("LPA, 80.00%")
        tell("GCN, 90.00%")
    assert capsys.readouterr().err.splitlines() == ["1/2  LPA, 80.00%", "2/2  GCN, 90.00%"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_live_line(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    with progress.of_training(100, quiet=False) as tell:
        assert tell is not None
        clock[0] = 1.0
        tell(history(7))
    shown = screen.getvalue()
    assert "7/100" in shown
    assert "solver steps 9+4" in shown
    assert "\x1b[" in shown


def test_a_narrow_terminal_shows_all_of_it(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    with progress.of_training(1000, quiet=False) as tell:
        assert tell is not None
        for epoch in (7, 8):
            clock[0] = epoch
            tell(history(epoch))
    shown = screen.getvalue()
    assert "…" not in shown
    assert all(words in shown for words in ("8/1000", "validation", "steps 9+4", "at most", "left"))


def test_a_warning_does_not_run_into_the_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    with progress.of_training(100, quiet=False) as tell:
        assert tell is not None
        tell(history(7))
        _show_warning("mind the gap")
    line = next(line for line in screen.getvalue().splitlines() if "mind the gap" in line)
    assert re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).split("\r")[-1] == "warning: mind the gap"


def test_reading_is_shown_on_a_terminal_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nodes.csv"
    file.write_bytes(b"x" * 3000)
    with progress.of_reading([file], quiet=False), open_file(file) as content:
        assert len(content.read()) == 3000
    assert capsys.readouterr() == ("", "")
    assert watcher.get() is None
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    with progress.of_reading([file], quiet=False), open_file(file) as content:
        assert len(content.read()) == 3000
    assert watcher.get() is None
    assert "reading" in screen.getvalue()
    assert "3.0/3.0 kB" in screen.getvalue()
