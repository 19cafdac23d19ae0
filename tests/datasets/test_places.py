"""Files of stored datasets: where they are looked for, and how missing ones are downloaded."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lignn
from lignn import Graph
from lignn.datasets import places
from lignn.errors import DatasetError, InputError, TableError
from tests.datasets import archives


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA", "LIGNN_DATA"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("platform", "folder"),
    [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")],
)
def test_cache_folder_of_each_platform(home: Path, monkeypatch: pytest.MonkeyPatch, platform: str, folder: str) -> None:
    monkeypatch.setattr("sys.platform", platform)
    assert places.cache_folder() == home / folder / "lignn" / "datasets"


def test_xdg_cache_home_goes_first_unless_relative(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "elsewhere"))
    assert places.cache_folder() == home / "elsewhere" / "lignn" / "datasets"
    monkeypatch.setenv("XDG_CACHE_HOME", "elsewhere")
    assert places.cache_folder() == home / ".cache" / "lignn" / "datasets"


def test_the_first_folder_that_has_the_file_wins(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, told = home / "root", home / "told"
    monkeypatch.setenv("LIGNN_DATA", str(told))
    root.mkdir()
    told.mkdir()
    order = [root, told, places.cache_folder()]
    assert places.folders(root) == order
    assert places.find("cora", root) is None
    for folder in reversed(order):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cora.npz").touch()
        assert places.find("cora", root) == folder / "cora.npz"
    assert places.find("cora") == told / "cora.npz"


def test_a_folder_of_that_name_is_not_the_file(home: Path) -> None:
    (home / "cora.npz").mkdir()
    assert places.find("cora", home) is None


def test_folders_that_are_named_must_exist(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DatasetError, match=r"^root: there is no folder .*nowhere; create it or name another$"):
        places.find("cora", home / "nowhere")
    monkeypatch.setenv("LIGNN_DATA", str(home / "nowhere"))
    with pytest.raises(DatasetError, match=r"^\$LIGNN_DATA: there is no folder .*nowhere"):
        places.find("cora")


def test_offline_and_absent_says_which_file_to_put_where(
    internet: dict[str, bytes], cache: Path, tmp_path: Path
) -> None:
    with pytest.raises(DatasetError) as error:
        lignn.datasets.load("minesweeper", root=tmp_path)
    assert str(error.value) == (
        f"minesweeper: there is no minesweeper.npz in {tmp_path} or {cache}, and the download through PyG "
        "HeterophilousGraphDataset failed (<urlopen error offline>); "
        "put minesweeper.npz into one of these folders, or try again online"
    )
    assert list(cache.iterdir()) == []


def test_a_download_that_breaks_off_leaves_nothing(internet: dict[str, bytes], cache: Path) -> None:
    internet["chameleon/out1_node_feature_label.txt"] = internet["chameleon/out1_graph_edges.txt"] = b"half"
    with pytest.raises(
        DatasetError, match=r"the download through PyG WikipediaNetwork failed \(<urlopen error offline>"
    ):
        lignn.datasets.load("chameleon")
    assert list(cache.iterdir()) == []


def test_a_download_of_something_else_leaves_nothing(internet: dict[str, bytes], cache: Path) -> None:
    internet["chameleon"] = b"<html>\n<p>moved</p>\n</html>"
    with pytest.raises(DatasetError, match="the download through PyG WikipediaNetwork failed"):
        lignn.datasets.load("chameleon")
    assert list(cache.iterdir()) == []


def test_a_killed_download_leaves_nothing_under_the_final_name(cache: Path) -> None:
    code = """
import os, signal
from lignn.datasets import stored
def download(name, folder):
    (folder / "flickr.npz").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
stored.flickr = download
import lignn
lignn.datasets.load("flickr")
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert not (cache / "flickr.npz").exists()
    assert [path.name.startswith(".flickr-") for path in cache.iterdir()] == [True]


def test_a_file_that_is_there_is_read_and_nothing_fetched(
    internet: dict[str, bytes], cache: Path, tmp_path: Path
) -> None:
    Graph([[0, 1, 2], [1, 2, 2]], x=[[1.0], [2.0], [3.0]], y=[0, 1, 0]).write(tmp_path / "minesweeper.npz")
    graph = lignn.datasets.load("minesweeper", root=tmp_path)
    assert (graph.name, graph.num_nodes, graph.num_edges) == ("minesweeper", 3, 4)
    assert not cache.exists()


def test_nothing_is_unpickled(cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "flickr.npz").write_bytes(archives.npz(edge_index=np.array([{"a": 1}], dtype=object)))
    with pytest.raises(
        TableError, match=re.escape(f"{cache / 'flickr.npz'}: the array 'edge_index' holds Python objects")
    ):
        lignn.datasets.load("flickr")


@pytest.mark.parametrize("name", ["cora", "coauthor_cs"])
def test_a_file_without_the_features_it_should_have(cache: Path, tmp_path: Path, name: str) -> None:
    Graph([[0, 1], [1, 0]], y=[0, 1]).write(tmp_path / f"{name}.npz")
    with pytest.raises(DatasetError, match=f"the file of {name} has no features"):
        lignn.datasets.load(name, root=tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="a file in the way of the folder gives other errors elsewhere")
def test_a_cache_folder_that_cannot_be_made(cache: Path) -> None:
    cache.parent.parent.mkdir(parents=True)
    cache.parent.touch()
    with pytest.raises(InputError, match=r"cora cannot be downloaded into the cache folder .*; set XDG_CACHE_HOME"):
        lignn.datasets.load("cora")
