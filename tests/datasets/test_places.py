from pathlib import Path

import pytest

from lignn.datasets import places
from lignn.errors import DatasetError


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
