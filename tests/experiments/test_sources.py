from pathlib import Path

import pytest

from lignn import Graph
from lignn.errors import DatasetError
from lignn.experiments.sources import Source


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_dataset_wins_over_a_folder_of_its_name() -> None:
    Graph([[0], [1]], y=[0, 1]).write("karate")
    assert not Source("karate").is_path
    assert Source("./karate").is_path
    assert Source("./karate").read().num_nodes == 2


@pytest.mark.parametrize("name", ["mine", "mine.npz"])
def test_folders_and_files(name: str) -> None:
    Graph([[0, 1], [1, 2]], y=[0, 1, 0]).write(name)
    assert Source(name).is_path
    assert Source(name).read().name == "mine"
    assert Source(name).read().num_edges == 2
    assert Source(name, undirected=True).read().num_edges == 4


def test_neither() -> None:
    with pytest.raises(DatasetError, match=r"weekdy: there is no such folder or file; .* did you mean 'weekday'"):
        _ = Source("weekdy").is_path
