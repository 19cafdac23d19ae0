import json
import re
from pathlib import Path
from typing import Any

import pytest

from lignn.classifier.race import fold_fits
from lignn.cli.options import seconds
from lignn.errors import ConfigError
from tests.cli.commands import outcome, run

TINY = (
    "--method",
    "auto",
    "--quality",
    "fast",
    "--max-epochs",
    2,
    "--hidden",
    4,
    "--jobs",
    1,
    "--backbones",
    "gcn,mlp",
    "--directed",
)


def test_a_model_is_found_told_and_predicts(place: Path) -> None:
    result = outcome("fit", "mine", *TINY, "-o", "found", "--report", "found.html")
    assert result.code == 0, result.err
    assert "The model is " in result.out
    assert "always the most frequent label" in result.out
    last = result.out.strip().splitlines()[-3:]
    assert " on 10 held-out labels" in last[0], last
    assert "a table of features alone has" in last[1]
    assert last[2].startswith("Next best: ")
    assert ", by lignn fit mine --directed -o found --method " in last[2]
    assert not any(word in result.out for word in ("K̂", "residual", "budget", "start of the solve"))
    assert "Which model for mine?" in (place / "found.html").read_text(encoding="utf-8")
    run("predict", "found", "-o", "p.csv")
    assert (place / "p.csv").read_text().count("\n") == 13
    run("diagnose", "found")
    run("fit", "mine", "--config", "found", "-o", "again")  # the settings of what was found, without a search
    assert not (place / "found.checkpoint").exists()


def test_numbers_stay_whole_on_a_narrow_terminal(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("fit", "mine", *TINY, "-o", "found").splitlines()
    assert lines[0].split() == ["F1-micro", "(%)", "folds", "s", "uses", "weight"]
    assert (
        sum(re.search(r"  \d+\.\d\d( ± \d+\.\d\d)? +\d+ +\d+\.\d +F?E?L?( |$)", line) is not None for line in lines)
        >= 8
    )


def test_json_and_nothing_else(place: Path) -> None:
    result = outcome("fit", "mine", *TINY, "-o", "found", "--json")
    record = json.loads(result.out)
    assert result.err == ""
    assert {row["name"] for row in record["leaderboard"]["rows"]} >= {"lpa", "gcn", "mlp", "logistic", "boosted"}
    assert sum(row["weight"] for row in record["leaderboard"]["rows"]) == pytest.approx(1)


def test_an_interrupted_search_goes_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = json.loads(run("fit", "mine", *TINY, "-o", "whole", "--json"))
    calls, perform = [], fold_fits.perform

    def interrupted(setup: Any, task: Any) -> Any:
        if len(calls) == 4:
            raise KeyboardInterrupt
        calls.append(task)
        return perform(setup, task)

    monkeypatch.setattr(fold_fits, "perform", interrupted)
    result = outcome("fit", "mine", *TINY, "-o", "found")
    assert result.code == 130
    assert "go on with: lignn fit mine --directed -o found --resume" in result.err
    assert "interrupted; the best so far is found (" in result.err
    run("predict", "found", "-o", "p.csv")
    monkeypatch.setattr(fold_fits, "perform", lambda setup, task: calls.append(task) or perform(setup, task))
    again = outcome("fit", "mine", *TINY, "-o", "found")
    assert (again.code, "an interrupted run; add --resume" in again.err) == (2, True)
    found = json.loads(run("fit", "mine", "--directed", "-o", "found", "--resume", "--jobs", 1, "--json"))
    assert len(calls) == len(set(calls))  # nothing twice
    rows = [[(row["name"], row["score"]) for row in one["leaderboard"]["rows"]] for one in (whole, found)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--method", "lpa", "--quality", "fast"), "quality: method 'lpa' has no such parameter, only auto"),
        ((*TINY[:2], "--quality", "superb"), "quality 'superb' is unknown; choose from best, fast, good"),
        ((*TINY, "--time", "later"), "--time later: a duration such as 90s, 2m or 1h is needed"),
        (
            (*TINY, "--workers", 2),
            "--workers: is for a store, and this graph is read into memory",
        ),
        ((*TINY, "--backbone", "gcn"), "backbone: auto chooses it; leave it out, or name a method"),
    ],
)
def test_bad_input(place: Path, arguments: tuple[str | int, ...], message: str) -> None:
    result = outcome("fit", "mine", *arguments, "-o", "found")
    assert (result.code, result.err) == (2, f"error: {message}\n")
    assert not (place / "found").exists()


def test_durations() -> None:
    assert [seconds(text) for text in ("90", "90s", "2m", "1.5h")] == [90, 90, 120, 5400]
    with pytest.raises(ConfigError):
        seconds("0m")
