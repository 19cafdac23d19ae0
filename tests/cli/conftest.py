"""A small graph of one's own, and a model of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lignn.datasets import sources
from tests.cli.commands import run

NODES = """\
id,label,x0,x1
a,red,1,0
b,blue,0,1
c,red,1,0.5
d,blue,0,1
e,red,1,0
f,blue,0.5,1
g,,1,0
h,,0,1
i,red,1,0
j,blue,0,1
k,red,1,1
l,blue,0,1
"""
EDGES = """\
source,target
a,b
b,c
c,d
d,e
e,f
f,g
g,h
h,i
i,j
j,k
k,l
l,a
"""


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files change under the same name from test to test, and tables are as wide as wanted."""
    sources._read.cache_clear()
    monkeypatch.setenv("COLUMNS", "200")


def write_tables(folder: Path, nodes: str | bytes = NODES, edges: str | bytes = EDGES) -> Path:
    """A folder of tables."""
    folder.mkdir(exist_ok=True)
    for name, text in (("nodes.csv", nodes), ("edges.csv", edges)):
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the graph `mine` and the model `model` of it; not to be changed."""
    folder = tmp_path_factory.mktemp("trained")
    write_tables(folder / "mine")
    run("fit", folder / "mine", "-o", folder / "model", "--max-epochs", 3)
    return folder


@pytest.fixture
def place(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a copy of `mine`, `model` and its settings."""
    shutil.copytree(trained, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"
