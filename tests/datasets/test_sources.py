import os
from pathlib import Path

import pytest

from lignn import Graph
from lignn.datasets.sources import Source
from lignn.errors import DatasetError, DataWarning, InputError


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_folder_with_the_name_of_a_dataset_is_not_passed_over() -> None:
    Path("karate").mkdir()
    assert not Source("karate").is_path
    Graph([[0], [1]], y=[0, 1]).write("karate")
    with pytest.raises(InputError, match=r"karate: is a dataset and a folder here; write \./karate for the folder"):
        Source("karate").read()
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


def test_missing_labels_are_part_of_the_name() -> None:
    Path("mine").mkdir()
    Path("mine/nodes.csv").write_text("id,label\na,red\nb,blue\nc,gone\n")
    Path("mine/edges.csv").write_text("source,target\na,b\nb,c\n")
    assert Source("mine").read().class_names == ("blue", "gone", "red")
    with pytest.warns(DataWarning, match=r"read as unknown labels: 'gone' \(1\)"):
        assert Source("mine", missing=("gone",)).read().class_names == ("blue", "red")
    assert Source("mine").read().class_names == ("blue", "gone", "red")
    with pytest.raises(
        InputError, match="--missing: is for tables; the unknown labels of the dataset karate are known"
    ):
        Source("karate", missing=()).read()


def test_roles_and_two_files() -> None:
    Path("who.csv").write_text("key,kind,x\na,red,1\nb,blue,2\n")
    Path("links.csv").write_text("source,target\na,b\n")
    source = Source("who.csv", edges="links.csv", columns=(("label", "kind"),), ignore=("x",))
    assert source.is_path
    graph = source.read()
    assert graph.class_names == ("blue", "red")
    assert graph.reading is not None
    assert graph.reading.columns == {"id": "key", "label": "kind", "source": "source", "target": "target"}
    Path("links.csv").write_text("source,target\nb,a\n")
    os.utime("links.csv", (1, 1))
    assert source.read().edge_index.tolist() == [[1], [0]]
    with pytest.raises(InputError, match="--ignore: is for tables"):
        Source("karate", ignore=("x",)).read()
