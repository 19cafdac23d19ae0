import json
import re
from pathlib import Path

import pytest

from tests.cli.commands import outcome, run

TINY = ("--jobs", "1", "--runs", "1", "--trials", "3", "--max-epochs", "2")


def test_the_best_settings_fit(place: Path) -> None:
    out = run("tune", "mine", *TINY, "--hidden", 4, "-o", "best.toml")
    assert out.splitlines()[0].split() == ["validation", "F1-micro", "(%)", "splits", "seconds", "a", "run", "settings"]
    assert "The best of 3 validation scores is too optimistic" in out
    assert "hidden = 4\n" in (place / "best.toml").read_text()
    run("fit", "mine", "--config", "best.toml", "-o", "new")


def test_json_and_nothing_else(place: Path) -> None:
    result = outcome("tune", "mine", *TINY, "--json")
    record = json.loads(result.out)
    assert result.err == ""
    assert len(record["trials"]) == 3
    scores = [trial["val"] for trial in record["trials"]]
    assert scores == sorted(scores, reverse=True)
    assert record["best"] == {"max_epochs": 2, **record["trials"][0]["settings"]}
    assert set(record["test"]) == {"best", "preset"}
    assert (place / record["storage"]).is_file()


def test_the_page_and_a_time_that_is_over(place: Path) -> None:
    run("tune", "mine", *TINY, "--report", "tune.html", "--storage", "mine.journal")
    assert "What mattered" in (place / "tune.html").read_text(encoding="utf-8")
    result = outcome("tune", "mine", *TINY, "--timeout", "soon")
    assert (result.code, result.err) == (2, "error: --timeout soon: a duration such as 90s, 2m or 1h is needed\n")


def test_numbers_stay_whole_on_a_narrow_terminal(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("tune", "mine", *TINY).splitlines()
    assert sum(re.match(r" +\d+\.\d\d +\d +\d+\.\d +\w", line) is not None for line in lines) == 3
