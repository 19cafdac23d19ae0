"""The process of a command: closed streams, and locales without Unicode."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lignn
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
