"""The process of a command: closed streams, locales without Unicode, and signals that end it."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lignn
from lignn.errors import InputError
from tests.cli.commands import outcome
from tests.cli.conftest import EDGES, NODES, write_tables

pytestmark = pytest.mark.skipif(os.name != "posix", reason="descriptors, locales and signals as in POSIX")

ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
COMMANDS = """
import json, os, sys
from lignn.cli import main

for command in json.loads(sys.argv[1]):
    try:
        main([os.fsdecode(word.encode()) for word in command.split()])
    except SystemExit as end:
        assert not end.code, (command, end.code)
    print(end="\\0", flush=True)
"""


def printed(*commands: str) -> list[str]:
    """Return what commands print in a locale without Unicode; they run in one process, whose start is slow."""
    script = [sys.executable, "-c", COMMANDS, json.dumps(commands)]
    done = subprocess.run(script, capture_output=True, env=os.environ | ASCII, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().split("\0")[:-1]


def test_names_are_printed_in_a_locale_without_unicode(place: Path) -> None:
    nodes = NODES.replace("red", "röt→").replace("x0", "größe").replace("\na,", "\nä,")
    write_tables(place / "données", nodes, EDGES.replace("a,b", "ä,b").replace("l,a", "l,ä"))
    few = "--max-epochs 1 --jobs 1 --runs 1"
    fit, predict, as_json, to_csv, to_parquet, compare, tune, datasets, usage = printed(
        "fit données -o modèle --max-epochs 1",
        "predict modèle",
        "predict modèle --json",
        "predict modèle -o prévu.csv",
        "predict modèle -o prévu.parquet",
        f"compare données --only lpa {few}",
        f"tune données --trials 2 -o réglé.toml {few}",
        "datasets",
        "fit --help",
    )
    assert "predict by: lignn predict 'modèle'" in fit
    rows = list(csv.DictReader(io.StringIO(predict)))
    assert rows[0]["id"] == "ä"
    assert {row["given"] for row in rows} == {"röt→", "blue", ""}
    assert json.loads(as_json)["predictions"][0]["id"] == "ä"
    assert "prévu.csv" in to_csv
    assert "prévu.parquet" in to_parquet
    assert "compare-données.html" in compare
    assert "réglé.toml" in tune
    assert "×" in datasets
    assert "…" in usage
    names = {"modèle", "prévu.csv", "prévu.parquet", "compare-données.html", "réglé.toml"}
    assert names <= {path.name for path in place.iterdir()}


@pytest.mark.parametrize("closed", [">&-", "<&- >&-"])
def test_a_closed_output_is_an_error(place: Path, closed: str) -> None:
    command = f'"{sys.executable}" -m lignn predict model {closed}'
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("error: the standard output is closed")


def test_a_closed_error_stream_spoils_no_file(place: Path) -> None:
    command = f'"{sys.executable}" -m lignn fit mine -o new --max-epochs 1 <&- 2>&-'
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0
    assert lignn.load("new").n_iter_ == 1


@pytest.fixture(autouse=True)
def hangups() -> Iterator[None]:
    """Let commands be ended by SIGHUP, though the tests may run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def long_fit(place: Path, terminal: int | None = None) -> subprocess.Popen[str]:
    """Start a fit that takes very long, in a terminal of its own if one is given."""
    command = [sys.executable, "-m", "lignn", "fit", "mine", "-o", "new", "--max-epochs", "100000"]
    more = {} if terminal is None else {"stdin": terminal, "stdout": terminal, "stderr": terminal}
    if terminal is not None:
        # The shell opens the terminal once more, which makes it the terminal of the new session.
        command = ["/bin/sh", "-c", 'exec "$@" <"$0"', os.ttyname(terminal), *command]
    options = {"start_new_session": True, "text": True, "stderr": subprocess.PIPE} | more
    return subprocess.Popen([*command, "--patience", "99999"], cwd=place, **options)  # type: ignore[call-overload]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_of_schedulers_leave_the_best_model(place: Path, number: signal.Signals) -> None:
    with long_fit(place) as process:
        assert process.stderr is not None
        assert [process.stderr.readline().split(":")[0] for _ in range(2)] == ["nodes.csv", "edges.csv"]
        assert process.stderr.readline().startswith("epoch 1/100000")
        process.send_signal(number)
        process.send_signal(number)
        rest = process.stderr.read()
        assert process.wait(timeout=60) == 128 + number
    assert "go on with: lignn fit mine -o new --resume" in rest
    assert "Traceback" not in rest
    assert lignn.load(place / "new").n_iter_ >= 1
    assert (place / "new.checkpoint").exists()


def test_a_closed_terminal_leaves_the_best_model(place: Path) -> None:
    ours, theirs = pty.openpty()
    with long_fit(place, theirs) as process:
        os.close(theirs)
        shown = b""
        while b"validation" not in shown:
            shown += os.read(ours, 4096)
        os.close(ours)
        assert process.wait(timeout=60) == 128 + signal.SIGHUP
    assert lignn.load(place / "new").n_iter_ >= 1
    assert (place / "new.checkpoint").exists()


def test_a_command_started_by_nohup_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def hangup(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        raise InputError("goes on")

    monkeypatch.setattr("lignn.classifier.load", hangup)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert outcome("diagnose", "model").err == "error: goes on\n"
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
