import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lignn import Graph, datasets
from lignn.cli.datasets import app
from lignn.errors import ConfigError, DatasetError


@pytest.fixture(autouse=True)
def _no_other_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIGNN_DATA", raising=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Graph([[0, 1, 2], [1, 2, 0]], x=[[1.0], [0.0], [1.0]], y=[0, 1, 0]).write(tmp_path / "tolokers.npz")
    return tmp_path


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_listing_says_what_is_where(root: Path) -> None:
    records = {record["name"]: record for record in json.loads(run("--root", root, "--json"))}
    assert set(datasets.names()) - set(records) == {name for name in datasets.names() if name.startswith("chains-")}
    assert set(records) - set(datasets.names()) == {"chains-<length>"}
    assert records["tolokers"]["file"] == str(root / "tolokers.npz")
    assert [name for name, record in records.items() if record["file"]] == ["tolokers"]
    embedded = [name for name, record in records.items() if record["embedded"]]
    assert embedded == ["weekday", "chains-<length>", "typed", "digits", "karate"]


def test_listing_as_a_table(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = {line.split()[0]: line for line in run("--root", root).splitlines()}
    assert lines["weekday"].rstrip().endswith("embedded")
    assert lines["tolokers"].rstrip().endswith(str(root))
    assert lines["flickr"].rstrip().endswith("to download")


def test_listing_does_not_import_torch() -> None:
    code = """
import sys
from typer.testing import CliRunner
from lignn.cli.datasets import app
assert CliRunner().invoke(app, []).exit_code == 0
assert not {"torch", "numpy", "torch_geometric", "numba"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_info_prints_the_papers_statistics() -> None:
    lines = [line.split() for line in run("info", "chains-10").splitlines()]
    assert lines[0] == ["chains-10"]
    assert lines[1] == ["#nodes", "2,000"]
    assert lines[2] == ["#edges,", "as", "the", "paper", "counts", "1,800"]
    assert lines[3:7] == [["average", "degree", "1.80"], ["#features", "100"], ["#classes", "10"], lines[6]]
    assert lines[6] == ["intra-class", "edges", "100.00%"]


@pytest.mark.parametrize("order", [("--json", "info", "tolokers"), ("info", "tolokers", "--json")])
def test_info_as_json(root: Path, order: tuple[str, ...]) -> None:
    record = json.loads(run("--root", root, *order))
    assert (record["name"], record["nodes"], record["edges"], record["classes"]) == ("tolokers", 3, 3, 2)
    assert record["intra_class_edges"] == pytest.approx(1 / 3)
    assert record["class_names"] is None
    assert record["plot"] is None


def test_info_draws(tmp_path: Path) -> None:
    picture = tmp_path / "karate.png"
    assert f"label transitions: {picture}" in run("info", "karate", "--plot", picture).replace("\n", "")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_bad_input_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="did you mean 'karate'"):
        run("info", "karatte")
    with pytest.raises(ConfigError, match=r"use \.png, \.svg or \.pdf"):
        run("info", "flickr", "--plot", tmp_path / "a.txt")
